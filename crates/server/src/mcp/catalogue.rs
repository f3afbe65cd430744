//! The tools that a client is offered, and their names.

use super::resources;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use toolrest_core::{Action, Annotations, DynTool, Key, Toolset, Toolsets, name_for_models};

/// The toolset that is offered if none is named, and the one that a key gets that may not use it.
pub(super) const DEFAULT_TOOLSET: &str = "agent";
const OTHER_TOOLSET: &str = "coding";
/// The tool that is offered with the latter, which runs no programs.
const OTHER_TOOL: (&str, &str) = ("system", "run_code");

/// Maximum length of a tool's name in the APIs of models.
#[cfg(test)]
const MAX_NAME_BYTES: usize = 64;

/// Which tools a client is offered.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// The names of the toolsets; empty for the default tools.
    pub toolsets: Vec<String>,
    /// Whether only tools that change nothing are offered.
    pub read_only: bool,
    /// Whether tools have output schemas, and answers also have the JSON.
    pub structured: bool,
}

/// A toolset that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("there is no toolset '{name}'; there are {known}")]
pub struct OfferError {
    name: String,
    known: String,
}

/// A tool as it is offered.
pub(crate) struct OfferedTool {
    pub(crate) toolset: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) definition: Tool,
}

/// The schemas of all tools as the protocol library has them, made once.
pub(crate) struct Schemas(HashMap<(&'static str, &'static str), InputAndOutput>);

type InputAndOutput = (Arc<JsonObject>, Arc<JsonObject>);

impl Schemas {
    pub(crate) fn new(toolsets: &Toolsets) -> Self {
        let all = toolsets.iter().flat_map(|toolset| toolset.tools().map(|tool| (toolset.name(), tool)));
        let schemas = |tool: &dyn DynTool| (object(tool.input_schema()), object(tool.output_schema()));
        Self(all.map(|(toolset, tool)| ((toolset, tool.name()), schemas(tool))).collect())
    }

    fn of(&self, toolset: &'static str, tool: &'static str) -> InputAndOutput {
        self.0.get(&(toolset, tool)).cloned().unwrap_or_default()
    }
}

/// The tools that are offered, by their names.
#[derive(Clone)]
pub(crate) struct OfferedTools {
    tools: Arc<Vec<OfferedTool>>,
    by_name: Arc<HashMap<String, usize>>,
    pub(crate) structured: bool,
    /// Whether tools of the toolset `agent` are offered.
    pub(crate) has_agent_tools: bool,
    /// Whether the files are offered as resources.
    pub(crate) has_files: bool,
}

impl OfferedTools {
    /// Selects tools. A key is offered only what its scope allows.
    pub(crate) fn new(
        toolsets: &Toolsets,
        schemas: &Schemas,
        offer: &Offer,
        key: Option<Key>,
    ) -> Result<Self, OfferError> {
        if let Some(name) = offer.toolsets.iter().find(|name| toolsets.find(name).is_none()) {
            let known: Vec<&str> = toolsets.iter().map(Toolset::name).collect();
            return Err(OfferError { name: name.clone(), known: known.join(", ") });
        }
        let has_default = key.is_none_or(|key| key.toolsets.contains(toolsets, DEFAULT_TOOLSET));
        let default_toolset = if has_default { DEFAULT_TOOLSET } else { OTHER_TOOLSET };
        let is_selected = |toolset: &str, tool: &str| match &offer.toolsets[..] {
            [] => toolset == default_toolset || (!has_default && (toolset, tool) == OTHER_TOOL),
            named => named.iter().any(|name| name == toolset),
        };
        let is_allowed = |toolset: &str, action: Action| {
            let in_scope = key.is_none_or(|key| key.check_tool(toolsets, toolset, action).is_ok());
            in_scope && (action.is_read_only() || !offer.read_only)
        };
        let selected: Vec<(&'static str, &dyn DynTool)> = toolsets
            .iter()
            .flat_map(|toolset| toolset.tools().map(|tool| (toolset.name(), tool)))
            .filter(|(toolset, tool)| is_selected(toolset, tool.name()) && is_allowed(toolset, tool.action()))
            .collect();
        let is_text = |toolset: &str| toolsets.find(toolset).is_some_and(|toolset| toolset.dialect().is_text());
        let names = names(&selected);
        let tools: Vec<OfferedTool> = selected
            .into_iter()
            .zip(&names)
            .map(|((toolset, tool), name)| OfferedTool {
                toolset,
                tool: tool.name(),
                definition: definition(
                    tool,
                    name.clone(),
                    schemas.of(toolset, tool.name()),
                    offer.structured && !is_text(toolset),
                ),
            })
            .collect();
        let has_agent_tools = tools.iter().any(|tool| tool.toolset == DEFAULT_TOOLSET);
        let by_name = names.into_iter().enumerate().map(|(index, name)| (name, index)).collect();
        Ok(Self {
            tools: Arc::new(tools),
            by_name: Arc::new(by_name),
            structured: offer.structured,
            has_agent_tools,
            has_files: resources::are_allowed(toolsets, key),
        })
    }

    pub(crate) fn find(&self, name: &str) -> Option<&OfferedTool> {
        self.tools.get(*self.by_name.get(name)?)
    }

    /// Returns the definitions as clients get them.
    pub(crate) fn definitions(&self) -> Vec<Tool> {
        self.tools.iter().map(|tool| tool.definition.clone()).collect()
    }

    /// Returns the names, for messages.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.tools.iter().map(|tool| &*tool.definition.name).collect();
        names.join(", ")
    }
}

/// Returns a name for each tool. Tools of several toolsets with the same name get the name of their toolset before it.
fn names(tools: &[(&'static str, &dyn DynTool)]) -> Vec<String> {
    let mut uses: HashMap<String, usize> = HashMap::new();
    for (_, tool) in tools {
        *uses.entry(name_for_models(tool.name()).into_owned()).or_default() += 1;
    }
    let name = |(toolset, tool): &(&'static str, &dyn DynTool)| {
        let own = name_for_models(tool.name());
        let is_shared = uses.get(&*own).is_some_and(|uses| *uses > 1);
        if is_shared { format!("{toolset}_{own}") } else { own.into_owned() }
    };
    tools.iter().map(name).collect()
}

fn definition(tool: &dyn DynTool, name: String, (input, output): InputAndOutput, structured: bool) -> Tool {
    let Annotations { read_only, destructive, idempotent, open_world } = tool.annotations();
    let mut definition = Tool::new(name, tool.description(), input);
    if tool.annotations() != Annotations::default() {
        let mut annotations = ToolAnnotations::new();
        annotations.read_only_hint = read_only;
        annotations.open_world_hint = open_world;
        // What changes nothing is neither destructive, nor does it matter how often it is called.
        if read_only != Some(true) {
            (annotations.destructive_hint, annotations.idempotent_hint) = (destructive, idempotent);
        }
        definition = definition.with_annotations(annotations);
    }
    // The protocol wants the schema of an object.
    let is_object = tool.output_schema()["type"] == "object";
    if structured && is_object { definition.with_raw_output_schema(output) } else { definition }
}

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
