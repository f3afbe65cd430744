//! A set of tools that speak one dialect.

use crate::tool::Erased;
use crate::{Action, DynTool, Notice, Tool, ToolError};
use serde_json::{Value, json};
use std::{borrow::Cow, collections::BTreeMap, str::FromStr, sync::Arc};

/// How a toolset wraps its answers and its errors.
pub trait Dialect: Send + Sync {
    /// Wraps a tool's result. The caller knows the call by the correlation id.
    fn success(&self, result: &str, correlation: &str) -> Vec<u8>;
    /// Wraps an error.
    fn failure(&self, error: &ToolError, correlation: &str) -> Vec<u8>;
    /// The HTTP status of an error.
    fn status(&self, error: &ToolError) -> u16;
    /// What a notice says, with its paths in the form that the toolset takes.
    fn notice(&self, notice: &Notice) -> String {
        notice.text.clone()
    }
    /// Whether every call has to bring a correlation id.
    fn needs_correlation(&self) -> bool {
        false
    }
}

/// Tools under one name and one dialect.
pub struct Toolset {
    name: &'static str,
    dialect: Arc<dyn Dialect>,
    tools: Vec<Box<dyn DynTool>>,
}

impl Toolset {
    /// Makes an empty toolset.
    #[must_use]
    pub fn new(name: &'static str, dialect: Arc<dyn Dialect>) -> Self {
        Self { name, dialect, tools: Vec::new() }
    }

    /// Adds a tool.
    #[must_use]
    pub fn with(mut self, tool: impl Tool) -> Self {
        self.tools.push(Box::new(Erased::new(tool)));
        self
    }

    /// The toolset's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// How it answers.
    pub fn dialect(&self) -> &dyn Dialect {
        &*self.dialect
    }

    /// The tool of that name, in its own spelling or in the one for models.
    pub fn find(&self, tool: &str) -> Option<&dyn DynTool> {
        self.tools().find(|known| known.name() == tool || name_for_models(known.name()) == tool)
    }

    /// The tools, in the order of their registration.
    pub fn tools(&self) -> impl Iterator<Item = &dyn DynTool> {
        self.tools.iter().map(|tool| &**tool)
    }

    /// The tools with their schemas, as the given kind of client wants them.
    pub fn catalogue(&self, format: CatalogueFormat) -> Value {
        let tools: Vec<Value> = self
            .tools()
            .map(|tool| {
                let description = tool.description();
                let name = match format {
                    CatalogueFormat::Native => Cow::Borrowed(tool.name()),
                    CatalogueFormat::OpenAi | CatalogueFormat::Anthropic | CatalogueFormat::Mcp => {
                        name_for_models(tool.name())
                    }
                };
                match format {
                    CatalogueFormat::Native => json!({
                        "name": name,
                        "description": description,
                        "input_schema": tool.input_schema(),
                        "output_schema": tool.output_schema(),
                    }),
                    CatalogueFormat::OpenAi => json!({
                        "type": "function",
                        "function": { "name": name, "description": description, "parameters": tool.input_schema() },
                    }),
                    CatalogueFormat::Anthropic => json!({
                        "name": name,
                        "description": description,
                        "input_schema": tool.input_schema(),
                    }),
                    CatalogueFormat::Mcp => json!({
                        "name": name,
                        "description": description,
                        "inputSchema": tool.input_schema(),
                        "outputSchema": tool.output_schema(),
                        "annotations": {
                            "readOnlyHint": tool.action() == Action::Read,
                            "destructiveHint": tool.action() == Action::Delete,
                            "openWorldHint": false,
                        },
                    }),
                }
            })
            .collect();
        json!({ "toolset": self.name, "tools": tools })
    }
}

/// The spelling of a tool's name that model APIs accept: they refuse everything outside `[a-zA-Z0-9_-]`.
fn name_for_models(name: &str) -> Cow<'_, str> {
    if name.contains('.') { name.replace('.', "_").into() } else { name.into() }
}

/// The clients that a catalogue can be written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatalogueFormat {
    /// Everything there is.
    #[default]
    Native,
    /// OpenAI's function definitions.
    OpenAi,
    /// Anthropic's tool definitions.
    Anthropic,
    /// The Model Context Protocol's tool list.
    Mcp,
}

impl FromStr for CatalogueFormat {
    type Err = ToolError;

    fn from_str(text: &str) -> Result<Self, ToolError> {
        match text {
            "native" => Ok(Self::Native),
            "openai" => Ok(Self::OpenAi),
            "anthropic" => Ok(Self::Anthropic),
            "mcp" => Ok(Self::Mcp),
            other => Err(ToolError::argument(
                "format",
                format!("Unknown catalogue format '{other}'; use native, openai, anthropic or mcp"),
            )),
        }
    }
}

/// All toolsets of a server, by name.
#[derive(Default)]
pub struct Toolsets(BTreeMap<&'static str, Toolset>);

impl Toolsets {
    /// Adds a toolset.
    #[must_use]
    pub fn with(mut self, toolset: Toolset) -> Self {
        self.0.insert(toolset.name(), toolset);
        self
    }

    /// The toolset of that name.
    pub fn find(&self, name: &str) -> Option<&Toolset> {
        self.0.get(name)
    }

    /// The toolsets, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Toolset> {
        self.0.values()
    }
}
