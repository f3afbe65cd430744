use super::*;
use crate::{Action, AllowAll, Changeset, Commit, Decision, Depth, Entry, File, Listing, Tool, WsPath};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// A workspace whose only member is the user with the nil id.
struct Room {
    access: Access,
}

#[async_trait]
impl Workspace for Room {
    async fn authorise(&self) -> Result<()> {
        if self.access.user.0.is_nil() { Ok(()) } else { Err(ToolError::new(ErrorKind::Forbidden, "no member")) }
    }

    async fn stat(&self, _: &WsPath) -> Result<Option<Entry>> {
        Ok(None)
    }

    async fn read(&self, path: &WsPath, _: u64) -> Result<File> {
        Err(ToolError::file_not_found(path))
    }

    async fn list(&self, _: &WsPath, _: Depth, _: usize) -> Result<Listing> {
        Ok(Listing { entries: Vec::new(), truncated: false, unreadable: Vec::new(), unnamed: 0 })
    }

    async fn find(&self, _: crate::Find) -> Result<crate::FindResult> {
        Ok(crate::FindResult::default())
    }

    async fn search(&self, _: crate::Search) -> Result<crate::Found> {
        Ok(crate::Found::default())
    }

    async fn commit(&self, _: Changeset, cx: &CallCx) -> Result<Commit> {
        let id = CommitId::new();
        cx.recorded_with(id);
        Ok(Commit { id: Some(id), created_at: crate::now(), outcomes: Vec::new() })
    }
}

struct House;

#[async_trait]
impl Workspaces for House {
    async fn open(&self, access: Access) -> Result<Arc<dyn Workspace>> {
        Ok(Arc::new(Room { access }))
    }
}

#[derive(Default)]
struct Records(Mutex<Vec<CallRecord>>);

impl Recorder for Records {
    fn record(&self, record: CallRecord) {
        self.0.lock().unwrap().push(record);
    }
}

struct Plain;

impl Dialect for Plain {
    fn success(&self, result: &str, _: &str) -> Vec<u8> {
        result.as_bytes().to_vec()
    }

    fn failure(&self, error: &ToolError, _: &str) -> Vec<u8> {
        error.message.clone().into_bytes()
    }

    fn status(&self, _: &ToolError) -> u16 {
        418
    }
}

/// Does as it is told, to see what the engine makes of it.
struct Puppet;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    Answer,
    Panic,
    Hang,
    Commit,
    CommitAndHang,
    Flood,
    Warn,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    order: Order,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    text: String,
}

#[async_trait]
impl Tool for Puppet {
    const NAME: &'static str = "puppet";
    const DESCRIPTION: &'static str = "Does as it is told";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let text = match args.order {
            Order::Answer => "done".to_owned(),
            Order::Panic => panic!("strings cut"),
            Order::Hang => std::future::pending().await,
            Order::Flood => "x".repeat(cx.limits.response_bytes),
            Order::Warn => {
                cx.warn("x".repeat(cx.limits.response_bytes));
                "warned".to_owned()
            }
            Order::Commit => {
                cx.workspace.commit(Changeset::default(), cx).await?;
                "committed".to_owned()
            }
            Order::CommitAndHang => {
                cx.workspace.commit(Changeset::default(), cx).await?;
                std::future::pending().await
            }
        };
        Ok(Output { text })
    }
}

struct DenyAll;

#[async_trait]
impl Policy for DenyAll {
    async fn judge(&self, _: &CallCx, _: Action) -> Result<Decision> {
        Ok(Decision::Deny("not today".into()))
    }
}

fn engine(policy: impl Policy + 'static) -> (Engine, Arc<Records>) {
    let records = Arc::new(Records::default());
    let limits = Limits { call_timeout: Duration::from_millis(50), response_bytes: 1000, ..Limits::default() };
    let toolsets = Toolsets::default().with(Toolset::new("plain", Arc::new(Plain)).with(Puppet));
    (Engine::new(toolsets, Arc::new(House), Arc::new(policy), records.clone(), limits), records)
}

fn call(tool: &str, args: &str, user: crate::UserId) -> Call {
    Call {
        id: CallId::new(),
        correlation: String::new(),
        toolset: "plain".into(),
        tool: tool.into(),
        args: JsonText::parse(args.into()).unwrap(),
        caller: Caller { user },
        workspace: WorkspaceId::new(),
    }
}

fn member() -> crate::UserId {
    crate::UserId(uuid::Uuid::nil())
}

async fn outcome(policy: impl Policy + 'static, tool: &str, args: &str) -> (String, Vec<String>) {
    let (engine, records) = engine(policy);
    let reply = engine.call(call(tool, args, member())).await.unwrap();
    let outcomes = records.0.lock().unwrap().iter().map(|record| record.outcome.clone()).collect();
    (String::from_utf8(reply.body).unwrap(), outcomes)
}

#[tokio::test]
async fn every_end_of_a_call_is_answered_in_shape_and_recorded_once() {
    for (order, body, recorded) in [
        ("answer", r#"{"text":"done"}"#, "ok"),
        (
            "panic",
            "Internal error; the server's log has the cause under the id of this request (X-Request-Id)",
            "Internal",
        ),
        ("hang", "Timed out after 50 ms", "Timeout"),
    ] {
        let (answer, records) = outcome(AllowAll, "puppet", &format!(r#"{{"order":"{order}"}}"#)).await;
        assert_eq!((answer.as_str(), records.as_slice()), (body, [recorded.to_owned()].as_slice()), "{order}");
    }
}

/// Counts the log lines of the level ERROR, with their fields as text.
#[derive(Clone, Default)]
struct ErrorLog(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for ErrorLog {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            text.push_str(&format!("{field}={value:?} "));
        });
        self.0.lock().unwrap().push(text);
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn an_internal_error_is_logged_once_and_only_its_message_is_answered() {
    let log = ErrorLog::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let (answer, _) = outcome(AllowAll, "puppet", r#"{"order":"panic"}"#).await;
    assert!(!answer.contains("strings cut"), "{answer}");
    assert_eq!(*log.0.lock().unwrap(), ["message=internal error cause=panic: strings cut "]);
}

#[tokio::test]
async fn a_call_that_commits_is_not_recorded_a_second_time() {
    let (answer, records) = outcome(AllowAll, "puppet", r#"{"order":"commit"}"#).await;
    assert_eq!((answer.as_str(), records.len()), (r#"{"text":"committed"}"#, 0));
}

#[tokio::test]
async fn a_call_that_fails_after_its_commit_is_recorded_as_failed() {
    let (engine, records) = engine(AllowAll);
    engine.call(call("puppet", r#"{"order":"commit_and_hang"}"#, member())).await.unwrap();
    let records = records.0.lock().unwrap();
    assert_eq!((records[0].outcome.as_str(), records[0].commit_id.is_some()), ("Timeout", true));
}

#[tokio::test]
async fn a_stranger_does_not_wait_for_the_calls_of_a_workspace() {
    let records = Arc::new(Records::default());
    let toolsets = Toolsets::default().with(Toolset::new("plain", Arc::new(Plain)).with(Puppet));
    let limits = Limits { calls_per_workspace: 1, ..Limits::default() };
    let engine = Engine::new(toolsets, Arc::new(House), Arc::new(AllowAll), records, limits);
    let first = call("puppet", r#"{"order":"hang"}"#, member());
    let workspace = first.workspace;
    let mut hanging = Box::pin(engine.call(first));
    assert!((&mut hanging).now_or_never().is_none());
    let strangers = Call { workspace, ..call("puppet", r#"{"order":"answer"}"#, crate::UserId::new()) };
    let reply = engine.call(strangers).now_or_never().expect("the stranger had to wait").unwrap();
    assert_eq!(String::from_utf8(reply.body).unwrap(), "no member");
    let members = Call { workspace, ..call("puppet", r#"{"order":"answer"}"#, member()) };
    assert!(engine.call(members).now_or_never().is_none(), "a member waits");
}

#[tokio::test]
async fn an_answer_over_the_limit_says_how_to_narrow() {
    let (answer, records) = outcome(AllowAll, "puppet", r#"{"order":"flood"}"#).await;
    assert!(answer.contains("over the limit of 1000 bytes; ask for less"), "{answer}");
    assert_eq!(records, ["ResponseTooLarge"]);
    // Warnings are part of the answer.
    let (answer, records) = outcome(AllowAll, "puppet", r#"{"order":"warn"}"#).await;
    assert!(answer.contains("over the limit of 1000 bytes; ask for less"), "{answer}");
    assert_eq!(records, ["ResponseTooLarge"]);
}

#[tokio::test]
async fn a_policy_that_denies_stops_the_call() {
    let (answer, records) = outcome(DenyAll, "puppet", r#"{"order":"answer"}"#).await;
    assert_eq!((answer.as_str(), records.as_slice()), ("not today", ["ApprovalDenied".to_owned()].as_slice()));
}

#[tokio::test]
async fn a_stranger_learns_nothing_but_that_it_is_one() {
    for (tool, args) in [("puppet", r#"{"odrer":1}"#), ("nothing", "{}")] {
        let (engine, _) = engine(AllowAll);
        let reply = engine.call(call(tool, args, crate::UserId::new())).await.unwrap();
        assert_eq!(String::from_utf8(reply.body).unwrap(), "no member", "{tool}");
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_a_record() {
    let (engine, records) = engine(AllowAll);
    let hanging = engine.call(call("puppet", r#"{"order":"hang"}"#, member()));
    assert!(hanging.now_or_never().is_none());
    assert_eq!(records.0.lock().unwrap()[0].outcome, "Cancelled");
}

#[tokio::test]
async fn a_toolset_that_does_not_exist_has_no_shape_to_answer_in() {
    let (engine, _) = engine(AllowAll);
    assert!(engine.call(Call { toolset: "none".into(), ..call("puppet", "{}", member()) }).await.is_none());
}
