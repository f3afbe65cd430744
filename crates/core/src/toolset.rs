//! Toolsets, and the format of their answers.

use crate::tool::Erased;
use crate::{Annotations, Approval, CallOutcome, DynTool, Notice, Result, Tool, ToolError};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, collections::BTreeMap, str::FromStr, sync::Arc};

/// The format of a toolset's answers and errors.
pub trait Dialect: Send + Sync {
    /// Writes the answer for a result.
    fn success(&self, success: &Success<'_>) -> Vec<u8>;
    /// Writes the answer for an error. `correlation` is the caller's id for the call.
    fn failure(&self, error: &ToolError, correlation: &str) -> Vec<u8>;
    /// Writes the answer for a call that waits for a person. Every format has `approval` with its id and URL at the top.
    fn pending(&self, error: &ToolError, waiting: &WaitingCall<'_>, correlation: &str) -> Vec<u8> {
        let mut body: Value = serde_json::from_slice(&self.failure(error, correlation)).unwrap_or_default();
        if let Some(body) = body.as_object_mut() {
            body.insert("approval".to_owned(), waiting.link());
            self.add_pending_fields(body, waiting);
        }
        body.to_string().into_bytes()
    }
    /// Adds the fields that a toolset has for a call that waits.
    fn add_pending_fields(&self, _body: &mut Map<String, Value>, _waiting: &WaitingCall<'_>) {}
    /// Returns the HTTP status of an error.
    fn status(&self, error: &ToolError) -> u16;
    /// Returns the text of a notice, with paths in the form of the toolset.
    fn notice(&self, notice: &Notice) -> String {
        notice.text.clone()
    }
    /// Returns the schema of a successful answer, around that of the result.
    fn answer_schema(&self, result: Value) -> Value {
        result
    }
    /// Whether the answers are texts for models, with the data beside them: the field `text` of every answer. Over the Model
    /// Context Protocol they are given as texts only.
    fn is_text(&self) -> bool {
        false
    }
    /// Whether every call needs a correlation id.
    fn needs_correlation(&self) -> bool {
        false
    }
    /// Renders the outcome of a call, with its warnings.
    fn render(&self, outcome: &CallOutcome, correlation: &str) -> Result<Vec<u8>> {
        let warnings: Vec<String> = outcome.warnings.iter().map(|warning| self.notice(warning)).collect();
        let success = Success::new(outcome.json()?, &warnings, correlation)?;
        outcome.within_limit(&success.result)?;
        Ok(self.success(&success))
    }
}

/// A call that waits for a person, to be put into the format of a toolset.
pub struct WaitingCall<'a> {
    /// The approval.
    pub approval: &'a Approval,
    /// The path at which the approval is served.
    pub url: &'a str,
}

impl WaitingCall<'_> {
    fn link(&self) -> Value {
        let Approval { id, revision, state, expires_at, .. } = self.approval;
        json!({ "id": id, "url": self.url, "state": state, "revision": revision, "expires_at": expires_at })
    }
}

/// A successful answer, to be put into the format of a toolset.
pub struct Success<'a> {
    /// The result as JSON. If it is an object, it has the warnings in its field `warnings`.
    pub result: String,
    /// The warnings as a JSON array, if the result cannot hold them because it is not an object. A format that wraps
    /// the result puts them beside it.
    pub warnings: Option<String>,
    /// The caller's id for the call.
    pub correlation: &'a str,
}

impl<'a> Success<'a> {
    fn new(mut result: String, warnings: &[String], correlation: &'a str) -> Result<Self> {
        if warnings.is_empty() {
            return Ok(Self { result, warnings: None, correlation });
        }
        let warnings = serde_json::to_string(warnings).map_err(ToolError::internal)?;
        if !result.ends_with('}') {
            return Ok(Self { result, warnings: Some(warnings), correlation });
        }
        result.pop();
        result.push_str(if result.ends_with('{') { "\"warnings\":" } else { ",\"warnings\":" });
        result.push_str(&warnings);
        result.push('}');
        Ok(Self { result, warnings: None, correlation })
    }

    /// Returns the warnings that stand beside the result, as a further member of the object around it: empty, or a
    /// comma and the member.
    pub fn warnings_member(&self) -> String {
        self.warnings.as_ref().map_or(String::new(), |warnings| format!(",\"warnings\":{warnings}"))
    }
}

/// A named set of tools with one format of answers.
pub struct Toolset {
    name: &'static str,
    dialect: Arc<dyn Dialect>,
    tools: Vec<Box<dyn DynTool>>,
}

impl Toolset {
    /// Creates an empty toolset.
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

    /// Returns the toolset's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the format of its answers.
    pub fn dialect(&self) -> &dyn Dialect {
        &*self.dialect
    }

    /// Finds a tool by its name, in its own spelling or in the spelling for models.
    pub fn find(&self, tool: &str) -> Option<&dyn DynTool> {
        self.tools().find(|known| known.name() == tool || name_for_models(known.name()) == tool)
    }

    /// Returns the tools in the order of their registration.
    pub fn tools(&self) -> impl Iterator<Item = &dyn DynTool> {
        self.tools.iter().map(|tool| &**tool)
    }

    /// Returns the tools as functions for OpenAI's interface: `name`, `description` and `parameters` of each, as the registry
    /// of specification 002 does.
    pub fn to_openai_functions(&self) -> Vec<Value> {
        let function = |tool: &dyn DynTool| {
            json!({
                "name": name_for_models(tool.name()),
                "description": tool.description(),
                "parameters": tool.input_schema(),
            })
        };
        self.tools().map(function).collect()
    }

    /// Returns the tools with their schemas, in the format of a kind of client.
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
                    // Strict functions have no optional arguments.
                    CatalogueFormat::OpenAi => json!({
                        "type": "function",
                        "function": {
                            "name": name,
                            "description": description,
                            "parameters": tool.input_schema(),
                            "strict": false,
                        },
                    }),
                    CatalogueFormat::Anthropic => json!({
                        "name": name,
                        "description": description,
                        "input_schema": tool.input_schema(),
                    }),
                    CatalogueFormat::Mcp => {
                        let mut listed = json!({
                            "name": name,
                            "description": description,
                            "inputSchema": tool.input_schema(),
                        });
                        if !self.dialect.is_text() {
                            listed["outputSchema"] = tool.output_schema().clone();
                        }
                        if tool.annotations() != Annotations::default() {
                            listed["annotations"] = json!(tool.annotations());
                        }
                        listed
                    }
                }
            })
            .collect();
        json!({ "toolset": self.name, "tools": tools })
    }
}

/// Returns the spelling of a tool's name for model APIs, which accept only `[a-zA-Z0-9_-]`.
pub fn name_for_models(name: &str) -> Cow<'_, str> {
    if name.contains('.') { name.replace('.', "_").into() } else { name.into() }
}

/// The formats of a catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatalogueFormat {
    /// Everything, including the schemas of answers.
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

    fn from_str(text: &str) -> Result<Self> {
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

    /// Finds a toolset by its name.
    pub fn find(&self, name: &str) -> Option<&Toolset> {
        self.0.get(name)
    }

    /// Returns the toolsets, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Toolset> {
        self.0.values()
    }

    /// Returns the mask of the toolsets with these names. Names that are not toolsets are left out.
    pub fn mask<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> ToolsetMask {
        ToolsetMask(names.into_iter().fold(0, |mask, name| mask | self.bit(name)))
    }

    /// Returns the bit of a toolset in a mask; zero if there is no such toolset.
    fn bit(&self, name: &str) -> u64 {
        let place = self.0.keys().position(|known| *known == name);
        place.and_then(|place| 1_u64.checked_shl(u32::try_from(place).ok()?)).unwrap_or(0)
    }
}

/// A set of toolsets, as a bit for each toolset of [`Toolsets`] in their order. It is only valid with the same toolsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ToolsetMask(u64);

impl ToolsetMask {
    /// Whether the toolset of that name is in the set.
    pub fn contains(self, toolsets: &Toolsets, name: &str) -> bool {
        self.0 & toolsets.bit(name) != 0
    }

    /// Returns the names of the toolsets in the set.
    pub fn names(self, toolsets: &Toolsets) -> impl Iterator<Item = &'static str> {
        toolsets.iter().map(Toolset::name).filter(move |name| self.contains(toolsets, name))
    }
}
