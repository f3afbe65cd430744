//! Tools, and the context of their calls.

use crate::binding::bind_arguments;
use crate::engine::EditLocks;
use crate::record::RecordState;
use crate::{
    Access, Action, Annotations, ApprovalId, CallDetails, CallId, Caller, CommitId, FairQueue, Guard, Intent, JsonText,
    Limits, Notice, PreviewedChange, QueueSlot, Result, Role, Timestamp, Workspace, WorkspaceId, WsPath,
};
use async_trait::async_trait;
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use uuid::Uuid;

/// The context of one call.
pub struct CallCx {
    /// The call's id.
    pub id: CallId,
    /// The toolset's name.
    pub toolset: &'static str,
    /// The tool's name.
    pub tool: &'static str,
    /// What the tool mainly does.
    pub action: Action,
    /// Who calls.
    pub caller: Caller,
    /// The workspace's id.
    pub workspace_id: WorkspaceId,
    /// The workspace, opened for this caller.
    pub workspace: Arc<dyn Workspace>,
    /// What the caller may change in the workspace.
    pub guard: Arc<Guard>,
    /// The caller's label for its session; may be empty.
    pub session: Arc<str>,
    /// When the call started.
    pub started_at: Timestamp,
    /// The limits in force.
    pub limits: Limits,
    /// The revision of the rules that the call is judged by.
    pub(crate) rules_revision: Option<i64>,
    pub(crate) edit_locks: Arc<EditLocks>,
    pub(crate) heavy_work: FairQueue,
    pub(crate) record: Arc<RecordState>,
    pub(crate) warnings: Mutex<Vec<Notice>>,
    pub(crate) paths: Mutex<Vec<WsPath>>,
    pub(crate) previewed: Mutex<Vec<PreviewedChange>>,
    /// Whether previews keep the new contents, to show them.
    pub(crate) keeps_contents: bool,
    /// The approval that the commit of the call spends, and the process that runs the call.
    pub approval: Option<(ApprovalId, Uuid)>,
}

impl CallCx {
    /// Adds a path of the call, so that errors show it in the form of the toolset. The first is the path of the record.
    pub fn note_path(&self, path: &WsPath) {
        self.note_record_path(path);
        self.paths.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
    }

    /// Sets the path of the call's record, unless it is set. Toolsets whose errors show paths as they are need no more.
    pub fn note_record_path(&self, path: &WsPath) {
        self.record.note_path(path);
    }

    /// Returns the caller's id for the call, which log lines and outgoing requests carry.
    pub fn correlation(&self) -> &str {
        self.record.correlation()
    }

    /// Returns the caller's access to the workspace, to be checked by the statement that does the work.
    pub fn access(&self, need: Role) -> Access {
        Access { rules: self.rules_revision, ..self.caller.access(self.workspace_id, need) }
    }

    /// Waits for the lock under which this server edits the file.
    pub async fn lock_for_edit(&self, path: &WsPath) -> impl Drop {
        self.edit_locks.lock(self.workspace_id, path.clone()).await
    }

    /// Waits for a slot for a computation that keeps a processor busy. The slot is held until the computation ends.
    pub async fn heavy_work_slot(&self) -> QueueSlot {
        self.heavy_work.enter(self.caller.user, self.workspace_id).await
    }

    /// Adds a warning to the `warnings` of the answer.
    pub fn warn(&self, warning: impl Into<Notice>) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning.into());
    }

    /// Returns a copy of the context for work that may outlive the call's answer. The call ends, and is recorded, when
    /// that work has ended too.
    #[must_use]
    pub fn detached(&self) -> Self {
        self.with_record(Arc::clone(&self.record))
    }

    /// Returns a copy of the context for work that goes on after the end of the call, such as a background process. Its
    /// commits carry the call's id and are not part of the call's record.
    #[must_use]
    pub fn background(&self) -> Self {
        self.with_record(Arc::new(self.record.background()))
    }

    fn with_record(&self, record: Arc<RecordState>) -> Self {
        Self {
            id: self.id,
            toolset: self.toolset,
            tool: self.tool,
            action: self.action,
            caller: self.caller,
            workspace_id: self.workspace_id,
            workspace: Arc::clone(&self.workspace),
            guard: Arc::clone(&self.guard),
            session: Arc::clone(&self.session),
            started_at: self.started_at,
            limits: self.limits,
            rules_revision: self.rules_revision,
            edit_locks: Arc::clone(&self.edit_locks),
            heavy_work: self.heavy_work.clone(),
            record,
            warnings: Mutex::default(),
            paths: Mutex::default(),
            previewed: Mutex::default(),
            keeps_contents: false,
            approval: self.approval,
        }
    }

    /// Adds the warnings of detached work to the call.
    pub fn absorb(&self, detached: Self) {
        let warnings = detached.warnings.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings);
    }

    /// Notes that the call made this commit.
    pub fn recorded_with(&self, commit: CommitId) {
        self.record.note_commit(commit);
    }

    /// Stores durably that the call is running. Must be called before the call has an effect outside of the workspace's
    /// files: then a crash leaves a trace of it, and the record is written at the end of the call with its true outcome,
    /// not with its commit. Fails, and stores nothing, if the caller
    /// has not the role that the tool needs, or if the rules that the call was judged by have changed.
    pub async fn begin_outside_effects(&self) -> Result<()> {
        self.record.begin_outside_effects(self.access(self.action.needs())).await
    }

    /// Returns the first commit of the call, if it changed something by now.
    pub fn commit(&self) -> Option<CommitId> {
        self.record.commit()
    }

    /// Takes the warnings that the call has so far, for a tool that shows them in its answer itself.
    pub fn take_warnings(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the call may go on to this host without asking a person. A call that was approved for one host is not
    /// approved for another.
    pub fn may_go_on_to(&self, host: &str) -> bool {
        self.guard.may_go_on_to(host)
    }

    /// Whether the call is recorded in the transaction of its commit.
    pub fn is_recorded_with_commit(&self) -> bool {
        !self.record.has_outside_effects()
    }

    /// Returns what the record of the call says besides its result.
    pub fn details(&self) -> CallDetails {
        self.record.details()
    }
}

/// One tool of one toolset. The doc comments of its arguments and its answer become the descriptions of the schema.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The name on the wire.
    const NAME: &'static str;
    /// What the tool is for, as a model reads it.
    const DESCRIPTION: &'static str;
    /// What the tool mainly does.
    const ACTION: Action;
    /// What clients of the Model Context Protocol are told about it, if not what follows from the action.
    const ANNOTATIONS: Option<Annotations> = None;
    /// The arguments.
    type Args: DeserializeOwned + JsonSchema + Send + Sync;
    /// The answer.
    type Output: Render + JsonSchema + Send + Sync;

    /// Changes the schema of the arguments, for a toolset that shows it in another form.
    fn shape_schema(_schema: &mut Value) {}

    /// Returns what a call with these arguments will do beyond the workspace's files, as far as it is known before the
    /// call runs. Reads and changes of files need no intent: the workspace judges them.
    fn intents(&self, _args: &Self::Args) -> Vec<Intent> {
        Vec::new()
    }

    /// Whether the call only shows what it would change.
    fn is_dry_run(&self, _args: &Self::Args) -> bool {
        false
    }

    /// Returns the maximum duration of a call, including the time in queues.
    fn timeout(&self, limits: &Limits) -> Duration {
        limits.call_timeout
    }

    /// Runs the tool.
    async fn run(&self, cx: &CallCx, args: Self::Args) -> Result<Self::Output>;

    /// Returns the answer as a text for models and people, if there is a better one than its JSON.
    fn text(&self, _output: &Self::Output) -> Option<String> {
        None
    }
}

/// A tool with its types erased, for lists of tools.
pub trait DynTool: Send + Sync {
    /// Returns the name on the wire.
    fn name(&self) -> &'static str;
    /// Returns the description for models.
    fn description(&self) -> &'static str;
    /// Returns the main action.
    fn action(&self) -> Action;
    /// Returns what clients of the Model Context Protocol are told about it.
    fn annotations(&self) -> Annotations;
    /// Returns the maximum duration of a call, including the time in queues.
    fn timeout(&self, limits: &Limits) -> Duration;
    /// Returns the JSON Schema of its arguments.
    fn input_schema(&self) -> &Value;
    /// Returns the JSON Schema of its answer.
    fn output_schema(&self) -> &Value;
    /// Binds the arguments. Nothing is done yet.
    fn bind(&self, args: &JsonText) -> Result<Box<dyn BoundTool + '_>>;
}

/// A tool with bound arguments, ready to run.
#[async_trait]
pub trait BoundTool: Send + Sync {
    /// Returns what the call will do beyond the workspace's files.
    fn intents(&self) -> Vec<Intent>;
    /// Whether the call only shows what it would change.
    fn is_dry_run(&self) -> bool;
    /// Runs the tool.
    async fn run(self: Box<Self>, cx: &CallCx) -> Result<Box<dyn Answer>>;
}

/// The answer of a tool, which is rendered by the surface that sends it.
pub trait Answer: Send + Sync {
    /// Returns the answer as JSON; `None` if it is longer than the limit.
    fn json(&self, limit_bytes: usize) -> Result<Option<String>>;
    /// Returns the answer as a text for models and people, if there is a better one than its JSON.
    fn text(&self) -> Option<String>;
}

/// An answer that can be written as JSON. All `Serialize` types can; long and uniform answers may have a faster
/// implementation.
pub trait Render {
    /// Writes the answer as JSON. Returns `None` if it is longer than the limit.
    fn render(&self, limit_bytes: usize) -> Result<Option<String>>;
}

impl<T: Serialize> Render for T {
    fn render(&self, limit_bytes: usize) -> Result<Option<String>> {
        crate::to_json_within(self, limit_bytes)
    }
}

/// A typed tool and its schemas.
pub(crate) struct Erased<T> {
    tool: Arc<T>,
    input: Value,
    output: Value,
}

impl<T: Tool> Erased<T> {
    pub(crate) fn new(tool: T) -> Self {
        let mut input = schema_of::<T::Args>(SchemaSettings::draft2020_12().for_deserialize());
        if let Some(schema) = input.as_object_mut() {
            // Some clients require `properties`, also if there are none.
            schema.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
        }
        make_portable(&mut input);
        T::shape_schema(&mut input);
        let mut output = schema_of::<T::Output>(SchemaSettings::draft2020_12().for_serialize());
        if let Some(properties) = output["properties"].as_object_mut() {
            properties.insert("warnings".to_owned(), warnings_schema());
        }
        Self { tool: Arc::new(tool), input, output }
    }
}

/// Reduces the schema of arguments to what every model takes: optional properties do not allow `null`, and numbers have no
/// formats, which JSON Schema does not know.
fn make_portable(schema: &mut Value) {
    if schema["type"] != "string"
        && let Some(schema) = schema.as_object_mut()
    {
        schema.remove("format");
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if !required.iter().any(|required| required == name) {
            remove_null(property);
        }
        make_portable(property);
    }
    for inner in ["items", "additionalProperties"] {
        schema.get_mut(inner).filter(|inner| inner.is_object()).into_iter().for_each(make_portable);
    }
    for alternatives in ["anyOf", "oneOf"] {
        let alternatives = schema.get_mut(alternatives).and_then(Value::as_array_mut);
        alternatives.into_iter().flatten().for_each(make_portable);
    }
}

/// Removes `null` from the schema of an optional property: `required` says that it is optional.
fn remove_null(property: &mut Value) {
    if property.get("default").is_some_and(Value::is_null)
        && let Some(property) = property.as_object_mut()
    {
        property.remove("default");
    }
    if let Some(kinds) = property["type"].as_array().cloned() {
        let kinds: Vec<Value> = kinds.into_iter().filter(|kind| kind != "null").collect();
        property["type"] = if let [only] = &kinds[..] { only.clone() } else { kinds.into() };
    }
    if let Some(values) = property.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    if let Some(alternatives) = property.get_mut("anyOf").and_then(Value::as_array_mut) {
        alternatives.retain(|alternative| alternative["type"] != "null");
    }
}

/// Returns the schema of the field `warnings` that dialects add to an answer.
fn warnings_schema() -> Value {
    json!({
        "description": "Warnings about the call. Left out if there are none.",
        "type": "array",
        "items": { "type": "string" },
    })
}

/// Returns the schema of a type. The schemas for arguments and for answers differ: a field with a default is optional
/// in arguments, and a field that is left out when empty is optional in answers.
fn schema_of<T: JsonSchema>(mut settings: SchemaSettings) -> Value {
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema: Schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

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

    fn annotations(&self) -> Annotations {
        T::ANNOTATIONS.unwrap_or_else(|| Annotations::of(T::ACTION.hints()))
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

    fn bind(&self, args: &JsonText) -> Result<Box<dyn BoundTool + '_>> {
        Ok(Box::new(Bound { tool: &self.tool, args: bind_arguments(args, &self.input)? }))
    }
}

/// A typed tool with its arguments.
struct Bound<'a, T: Tool> {
    tool: &'a Arc<T>,
    args: T::Args,
}

#[async_trait]
impl<T: Tool> BoundTool for Bound<'_, T> {
    fn intents(&self) -> Vec<Intent> {
        self.tool.intents(&self.args)
    }

    fn is_dry_run(&self) -> bool {
        self.tool.is_dry_run(&self.args)
    }

    async fn run(self: Box<Self>, cx: &CallCx) -> Result<Box<dyn Answer>> {
        let output = self.tool.run(cx, self.args).await?;
        Ok(Box::new(TypedAnswer { tool: Arc::clone(self.tool), output }))
    }
}

/// The answer of a typed tool.
struct TypedAnswer<T: Tool> {
    tool: Arc<T>,
    output: T::Output,
}

impl<T: Tool> Answer for TypedAnswer<T> {
    fn json(&self, limit_bytes: usize) -> Result<Option<String>> {
        self.output.render(limit_bytes)
    }

    fn text(&self) -> Option<String> {
        self.tool.text(&self.output)
    }
}

/// Returns advice how to get a shorter answer from a tool with these arguments.
pub(crate) fn advice_for_shorter_answer(input: &Value) -> &'static str {
    let takes = |name: &str| input["properties"].get(name).is_some();
    if takes("offset") && takes("limit") {
        "ask for a part of it with `offset` and `limit`"
    } else {
        "ask for less (one folder, one file, a narrower pattern)"
    }
}

#[cfg(test)]
#[path = "tool_tests.rs"]
mod tests;
