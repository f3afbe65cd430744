//! What a tool is.

use crate::binding::bind_arguments;
use crate::engine::Turns;
use crate::{
    CallId, Caller, CommitId, Dialect, ErrorKind, FairQueue, JsonText, Limits, Notice, Policy, QueueSlot, Result, Role,
    Timestamp, ToolError, Workspace, WorkspaceId, WsPath,
};
use async_trait::async_trait;
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

/// What a tool mainly does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Looks.
    Read,
    /// Creates or changes files.
    Write,
    /// Removes files.
    Delete,
    /// Moves files.
    Move,
    /// Runs programs.
    Exec,
}

impl Action {
    /// The least role that may do this.
    pub fn needs(self) -> Role {
        match self {
            Self::Read => Role::Viewer,
            Self::Write | Self::Delete | Self::Move | Self::Exec => Role::Editor,
        }
    }
}

/// Whether a call needs a person's agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// What the policy says about the tool's action.
    ByPolicy,
    /// Always, for this reason.
    Needed(String),
}

/// The circumstances of one call.
pub struct CallCx {
    /// The call's id.
    pub id: CallId,
    /// The toolset's name.
    pub toolset: &'static str,
    /// The tool's name.
    pub tool: &'static str,
    /// Who calls.
    pub caller: Caller,
    /// The workspace's id.
    pub workspace_id: WorkspaceId,
    /// The workspace, opened for this caller.
    pub workspace: Arc<dyn Workspace>,
    /// When the call began.
    pub started_at: Timestamp,
    /// The limits in force.
    pub limits: Limits,
    pub(crate) turns: Arc<Turns>,
    pub(crate) heavy_work: FairQueue,
    pub(crate) committed: Arc<OnceLock<CommitId>>,
    pub(crate) warnings: Mutex<Vec<Notice>>,
    pub(crate) paths: Mutex<Vec<WsPath>>,
}

impl CallCx {
    /// Notes a path that the call is about, so that errors show it in the form that the toolset takes.
    pub fn note_path(&self, path: &WsPath) {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
    }

    /// Waits until no other change of this file that goes through here is under way.
    pub async fn turn(&self, path: &WsPath) -> impl Drop {
        self.turns.take(self.workspace_id, path.clone()).await
    }

    /// Waits for a place among the computations that keep a processor busy. It is held until the computation ends.
    pub async fn heavy_place(&self) -> QueueSlot {
        self.heavy_work.enter(self.caller.user, self.workspace_id).await
    }

    /// Tells the caller something beside the answer, which gets it as one of its `warnings`.
    pub fn warn(&self, warning: impl Into<Notice>) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning.into());
    }

    /// Adds the warnings of the call to its answer, in the form of its toolset.
    pub(crate) fn with_warnings(&self, answer: String, dialect: &dyn Dialect) -> Result<String> {
        let warnings = std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(start) = answer.strip_suffix('}').filter(|_| !warnings.is_empty()) else { return Ok(answer) };
        let comma = if start.ends_with('{') { "" } else { "," };
        let shown: Vec<String> = warnings.iter().map(|warning| dialect.notice(warning)).collect();
        let warnings = serde_json::to_string(&shown).map_err(ToolError::internal)?;
        Ok(format!("{start}{comma}\"warnings\":{warnings}}}"))
    }

    /// The same circumstances for work that goes on when the call is over: what it commits carries the call's id.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self {
            id: self.id,
            toolset: self.toolset,
            tool: self.tool,
            caller: self.caller,
            workspace_id: self.workspace_id,
            workspace: Arc::clone(&self.workspace),
            started_at: self.started_at,
            limits: self.limits,
            turns: Arc::clone(&self.turns),
            heavy_work: self.heavy_work.clone(),
            committed: Arc::default(),
            warnings: Mutex::default(),
            paths: Mutex::default(),
        }
    }

    /// Takes over what detached work has to tell its call.
    pub fn absorb(&self, detached: Self) {
        if let Some(commit) = detached.committed.get() {
            self.recorded_with(*commit);
        }
        let warnings = detached.warnings.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings);
    }

    /// Notes that the call's record was written together with this commit.
    pub fn recorded_with(&self, commit: CommitId) {
        // A call that commits twice is recorded with its first commit; the second carries the same call id.
        let _ = self.committed.set(commit);
    }
}

/// One tool of one toolset, with its arguments and its answer. The doc comments of both become the schema.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The name on the wire.
    const NAME: &'static str;
    /// What the tool is for, as a model reads it.
    const DESCRIPTION: &'static str;
    /// What the tool mainly does.
    const ACTION: Action;
    /// What it takes.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// What it gives.
    type Output: Render + JsonSchema + Send;

    /// Whether these arguments need a person's agreement.
    async fn approval(&self, _cx: &CallCx, _args: &Self::Args) -> Result<Approval> {
        Ok(Approval::ByPolicy)
    }

    /// How long a call may take, waiting included.
    fn timeout(&self, limits: &Limits) -> Duration {
        limits.call_timeout
    }

    /// Does it.
    async fn run(&self, cx: &CallCx, args: Self::Args) -> Result<Self::Output>;
}

/// A tool with its types erased, as a toolset holds it.
#[async_trait]
pub trait DynTool: Send + Sync {
    /// The name on the wire.
    fn name(&self) -> &'static str;
    /// What the tool is for.
    fn description(&self) -> &'static str;
    /// What it mainly does.
    fn action(&self) -> Action;
    /// How long a call may take, waiting included.
    fn timeout(&self, limits: &Limits) -> Duration;
    /// The JSON Schema of its arguments.
    fn input_schema(&self) -> &Value;
    /// The JSON Schema of its answer.
    fn output_schema(&self) -> &Value;
    /// Binds the arguments, asks the policy and runs.
    async fn call(&self, cx: &CallCx, policy: &dyn Policy, args: &JsonText) -> Result<String>;
}

/// An answer that can be written as JSON. All that `Serialize` can; an answer that is long and alike all over may do it
/// in a faster way of its own.
pub trait Render {
    /// Writes the answer as JSON; nothing if that takes more bytes than the limit.
    fn render(&self, limit_bytes: usize) -> Result<Option<String>>;
}

impl<T: Serialize> Render for T {
    fn render(&self, limit_bytes: usize) -> Result<Option<String>> {
        crate::to_json_within(self, limit_bytes)
    }
}

/// A typed tool and its schemas.
pub(crate) struct Erased<T> {
    tool: T,
    input: Value,
    output: Value,
}

impl<T: Tool> Erased<T> {
    pub(crate) fn new(tool: T) -> Self {
        let mut input = schema_of::<T::Args>(SchemaSettings::draft2020_12().for_deserialize());
        if let Some(schema) = input.as_object_mut() {
            // Clients want to be told of none, too.
            schema.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
        }
        for (_, property) in input["properties"].as_object_mut().into_iter().flatten() {
            optional_without_null(property);
        }
        let mut output = schema_of::<T::Output>(SchemaSettings::draft2020_12().for_serialize());
        if let Some(properties) = output["properties"].as_object_mut() {
            properties.insert("warnings".to_owned(), warnings_schema());
        }
        Self { tool, input, output }
    }
}

/// That an argument may be left out is said by `required`; that it may also be null only confuses clients.
fn optional_without_null(property: &mut Value) {
    if let Some(kinds) = property["type"].as_array().cloned() {
        let kinds: Vec<Value> = kinds.into_iter().filter(|kind| kind != "null").collect();
        property["type"] = if let [only] = &kinds[..] { only.clone() } else { kinds.into() };
    }
    if let Some(values) = property.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
}

/// The schema of what [`CallCx::with_warnings`] adds to an answer.
fn warnings_schema() -> Value {
    json!({
        "description": "What the caller should know beside the answer; left out if there is nothing.",
        "type": "array",
        "items": { "type": "string" },
    })
}

/// The schema of a type. What a type takes and what it gives differ: a field that is left out when it is empty is
/// optional in answers, and one with a default is optional in arguments.
fn schema_of<T: JsonSchema>(mut settings: SchemaSettings) -> Value {
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema: Schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

#[async_trait]
impl<T: Tool> DynTool for Erased<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn description(&self) -> &'static str {
        T::DESCRIPTION
    }

    fn action(&self) -> Action {
        T::ACTION
    }

    fn timeout(&self, limits: &Limits) -> Duration {
        self.tool.timeout(limits)
    }

    fn input_schema(&self) -> &Value {
        &self.input
    }

    fn output_schema(&self) -> &Value {
        &self.output
    }

    async fn call(&self, cx: &CallCx, policy: &dyn Policy, args: &JsonText) -> Result<String> {
        let args = bind_arguments(args, &self.input)?;
        crate::policy::require(policy, cx, T::ACTION, self.tool.approval(cx, &args).await?).await?;
        match self.tool.run(cx, args).await {
            Ok(output) => {
                let limit_bytes = cx.limits.response_bytes;
                output.render(limit_bytes)?.ok_or_else(|| too_long_answer(limit_bytes, &self.input))
            }
            Err(error) => {
                let paths = std::mem::take(&mut *cx.paths.lock().unwrap_or_else(PoisonError::into_inner));
                Err(cx.with_similar_names(error.with_call_paths(paths)).await)
            }
        }
    }
}

/// The refusal of an answer that is too long, with how to get a shorter one.
pub(crate) fn too_long_answer(limit_bytes: usize, input: &Value) -> ToolError {
    let takes = |name: &str| input["properties"].get(name).is_some();
    let advice = if takes("offset") && takes("limit") {
        "ask for a part of it with `offset` and `limit`"
    } else {
        "ask for less (one folder, one file, a narrower pattern)"
    };
    let message = format!("The answer is over the limit of {limit_bytes} bytes; {advice}");
    ToolError::new(ErrorKind::ResponseTooLarge, message)
}

#[cfg(test)]
#[path = "tool_tests.rs"]
mod tests;
