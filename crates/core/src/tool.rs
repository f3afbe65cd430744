//! What a tool is.

use crate::engine::Turns;
use crate::{
    CallId, Caller, CommitId, ErrorKind, FairQueue, JsonText, Limits, Policy, Result, Role, TakenPlace, Timestamp,
    ToolError, Workspace, WorkspaceId, WsPath,
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
    pub(crate) warnings: Mutex<Vec<String>>,
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
    pub async fn heavy_place(&self) -> TakenPlace {
        self.heavy_work.enter(self.caller.user, self.workspace_id).await
    }

    /// Tells the caller something beside the answer, which gets it as one of its `warnings`.
    pub fn warn(&self, warning: String) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
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
    pub fn learn_from(&self, detached: Self) {
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
    fn longest(&self, limits: &Limits) -> Duration {
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
    fn longest(&self, limits: &Limits) -> Duration;
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

/// The schema of what [`with_warnings`] adds to an answer.
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

    fn longest(&self, limits: &Limits) -> Duration {
        self.tool.longest(limits)
    }

    fn input_schema(&self) -> &Value {
        &self.input
    }

    fn output_schema(&self) -> &Value {
        &self.output
    }

    async fn call(&self, cx: &CallCx, policy: &dyn Policy, args: &JsonText) -> Result<String> {
        let args = match bind(args, &self.input) {
            Ok(args) => args,
            Err(error) => return Err(first_authorise(cx, error).await),
        };
        crate::policy::require(policy, cx, T::ACTION, self.tool.approval(cx, &args).await?).await?;
        match self.tool.run(cx, args).await {
            Ok(output) => {
                let limit_bytes = cx.limits.response_bytes;
                let answer =
                    output.render(limit_bytes)?.map(|answer| with_warnings(answer, &cx.warnings)).transpose()?;
                answer
                    .filter(|answer| answer.len() <= limit_bytes)
                    .ok_or_else(|| too_long_answer(limit_bytes, &self.input))
            }
            Err(error) => {
                let paths = std::mem::take(&mut *cx.paths.lock().unwrap_or_else(PoisonError::into_inner));
                Err(first_authorise(cx, error.naming(paths)).await)
            }
        }
    }
}

/// Binds arguments to the type that a tool takes.
fn bind<T: DeserializeOwned>(args: &JsonText, schema: &Value) -> Result<T> {
    args.check_unique_keys().map_err(|error| ToolError::new(ErrorKind::InvalidArgument, error.message))?;
    let bound = |args: &str| serde_json::from_str::<T>(args).map_err(|error| without_position(&error.to_string()));
    bound(args.as_str()).map_err(|message| {
        // With the argument at fault left out, there is another error or none.
        let is_at_fault = |args: &str| bound(args).err().as_ref() != Some(&message);
        explain(&message, args, schema, &is_at_fault)
    })
}

/// The message of a JSON error without where it is in the text: callers do not see the text as it is read.
pub fn without_position(message: &str) -> String {
    let position = message.rfind(" at line ").filter(|at| {
        let mut words = message[at + " at line ".len()..].split(' ');
        let is_number = |word: Option<&str>| word.is_some_and(|word| word.parse::<u64>().is_ok());
        is_number(words.next()) && words.next() == Some("column") && is_number(words.next()) && words.next().is_none()
    });
    message[..position.unwrap_or(message.len())].to_owned()
}

/// Adds the warnings of a call to its answer.
fn with_warnings(answer: String, warnings: &Mutex<Vec<String>>) -> Result<String> {
    let warnings = std::mem::take(&mut *warnings.lock().unwrap_or_else(PoisonError::into_inner));
    let Some(start) = answer.strip_suffix('}').filter(|_| !warnings.is_empty()) else { return Ok(answer) };
    let comma = if start.ends_with('{') { "" } else { "," };
    let warnings = serde_json::to_string(&warnings).map_err(ToolError::internal)?;
    Ok(format!("{start}{comma}\"warnings\":{warnings}}}"))
}

/// The refusal of an answer that is too long, with how to get a shorter one.
fn too_long_answer(limit_bytes: usize, input: &Value) -> ToolError {
    let takes = |name: &str| input["properties"].get(name).is_some();
    let advice = if takes("offset") && takes("limit") {
        "ask for a part of it with `offset` and `limit`"
    } else {
        "ask for less (one folder, one file, a narrower pattern)"
    };
    let message = format!("The answer is over the limit of {limit_bytes} bytes; {advice}");
    ToolError::new(ErrorKind::ResponseTooLarge, message)
}

/// Who may not enter does not learn what is wrong with the arguments. Errors of other kinds come from the workspace,
/// which has checked the caller's rights already.
async fn first_authorise(cx: &CallCx, error: ToolError) -> ToolError {
    match error.kind {
        ErrorKind::InvalidArgument
        | ErrorKind::InvalidPath
        | ErrorKind::OutsideWorkspace
        | ErrorKind::InvalidPattern
        | ErrorKind::PatchSyntax
        | ErrorKind::WrongType => cx.workspace.authorise().await.err().unwrap_or(error),
        _ => error,
    }
}

/// Turns a binding error into one that names the argument at fault and, for an unknown one, the nearest known.
fn explain(message: &str, args: &JsonText, schema: &Value, is_at_fault: &dyn Fn(&str) -> bool) -> ToolError {
    let known: Vec<&str> =
        schema["properties"].as_object().map(|names| names.keys().map(String::as_str).collect()).unwrap_or_default();
    let given = args.members().unwrap_or_default();
    if let Some((unknown, _)) = given.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        let nearest = known
            .iter()
            .map(|name| (strsim::damerau_levenshtein(name, unknown), name))
            .filter(|(distance, name)| *distance <= name.len().max(unknown.len()) / 2)
            .min();
        let hint = match nearest {
            Some((_, name)) => format!("did you mean `{name}`?"),
            None if known.is_empty() => "this tool takes none".to_owned(),
            None => format!("known: {}", known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
        };
        return ToolError::argument(unknown, format!("unknown argument `{unknown}`; {hint}"));
    }
    let missing = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    let wrong = given.iter().find(|(name, value)| {
        let value: Value = serde_json::from_str(value.as_str()).unwrap_or_default();
        !fits(&value, &schema["properties"][name])
    });
    if let Some(name) = missing {
        return ToolError::argument(name, message);
    }
    let without = |place: usize| {
        let others = given.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, member)| member.clone());
        JsonText::from_members(&others.collect::<Vec<_>>())
    };
    let culprit = || (0..given.len()).find(|place| without(*place).is_ok_and(|args| is_at_fault(args.as_str())));
    match wrong.or_else(|| culprit().map(|place| &given[place])) {
        Some((name, _)) => ToolError::argument(name, format!("`{name}`: {}", in_plain_words(message))),
        None => ToolError::new(ErrorKind::InvalidArgument, in_plain_words(message)),
    }
}

/// The message of a JSON error without the names of Rust's types.
fn in_plain_words(message: &str) -> String {
    let mut message = message.to_owned();
    for (name, words) in [
        ("expected a nonzero usize", "expected a whole number from 1 on"),
        ("expected a nonzero u64", "expected a whole number from 1 on"),
        ("expected usize", "expected a whole number from 0 on"),
        ("expected u64", "expected a whole number from 0 on"),
        ("expected f64", "expected a number"),
    ] {
        message = message.replace(name, words);
    }
    message
}

/// Whether a value has the JSON type that a property's schema asks for.
fn fits(value: &Value, schema: &Value) -> bool {
    let is = |name: &str| match name {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        _ => true,
    };
    match &schema["type"] {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

#[cfg(test)]
#[path = "tool_tests.rs"]
mod tests;
