use super::*;
use crate::rules::{RuleList, RuleLists};
use crate::{
    Access, Action, CallRecord, Changeset, Commit, CommitId, CommitInfo, Content, Depth, Dialect, Entry, File, FileId,
    History, JsonText, Listing, NoRules, Page, Preview, RecordPermit, RulesInForce, Success, Tool, Version, VersionId,
    WsPath,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::sync::Mutex;

/// A workspace whose only member is the user with the nil id.
struct TestWorkspace {
    access: Access,
}

#[async_trait]
impl Workspace for TestWorkspace {
    async fn authorise(&self) -> Result<()> {
        if self.access.user.0.is_nil() { Ok(()) } else { Err(ToolError::new(ErrorKind::Forbidden, "no member")) }
    }

    async fn is_owner(&self) -> Result<bool> {
        Ok(false)
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

    async fn search(&self, _: crate::Search) -> Result<crate::SearchResult> {
        Ok(crate::SearchResult::default())
    }

    async fn commit(&self, _: Changeset, cx: &CallCx) -> Result<Commit> {
        let id = CommitId::new();
        cx.recorded_with(id);
        Ok(Commit { id: Some(id), created_at: crate::now(), outcomes: Vec::new() })
    }

    async fn preview(&self, _: Changeset, _: &CallCx) -> Result<Preview> {
        let commit = Commit { id: None, created_at: crate::now(), outcomes: Vec::new() };
        Ok(Preview { commit, effects: Vec::new() })
    }
}

#[async_trait]
impl History for TestWorkspace {
    async fn file_by_id(&self, file: FileId, _: i64) -> Result<File> {
        Err(ToolError::new(ErrorKind::NotFound, file.to_string()))
    }

    async fn versions(&self, _: FileId, _: Page<i64>) -> Result<Vec<Version>> {
        Ok(Vec::new())
    }

    async fn version(&self, _: FileId, version: VersionId, _: i64) -> Result<(Version, Option<Content>)> {
        Err(ToolError::new(ErrorKind::NotFound, version.to_string()))
    }

    async fn trash(&self, _: Page<FileId>) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    async fn commits(&self, _: Page<CommitId>) -> Result<Vec<CommitInfo>> {
        Ok(Vec::new())
    }

    async fn commit_info(&self, commit: CommitId) -> Result<CommitInfo> {
        Err(ToolError::new(ErrorKind::NotFound, commit.to_string()))
    }

    async fn undone_by(&self, _: CommitId) -> Result<Option<CommitId>> {
        Ok(None)
    }
}

struct TestWorkspaces;

#[async_trait]
impl Workspaces for TestWorkspaces {
    async fn open(&self, access: Access, _: SymbolicLinks) -> Result<Arc<dyn Workspace>> {
        Ok(Arc::new(TestWorkspace { access }))
    }
}

#[derive(Default)]
struct Records(Mutex<Vec<CallRecord>>);

#[async_trait]
impl Recorder for Records {
    fn redact(&self, args: &str) -> String {
        crate::Redactor::new(b"key").redact(args)
    }

    async fn reserve(&self) -> RecordPermit {
        RecordPermit::default()
    }

    async fn record_running(&self, _: Access, _: CallRecord) -> Result<()> {
        Ok(())
    }

    fn record(&self, record: CallRecord, _: RecordPermit) {
        self.0.lock().unwrap().push(record);
    }

    async fn flush(&self) {}
}

struct TestDialect;

impl Dialect for TestDialect {
    fn success(&self, success: &Success<'_>) -> Vec<u8> {
        success.result.as_bytes().to_vec()
    }

    fn failure(&self, error: &ToolError, _: &str) -> Vec<u8> {
        error.message.clone().into_bytes()
    }

    fn status(&self, _: &ToolError) -> u16 {
        418
    }
}

/// A tool that behaves as its argument says.
struct TestTool;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Behaviour {
    Answer,
    Panic,
    Hang,
    Commit,
    CommitAndHang,
    LongAnswer,
    LongWarning,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    behaviour: Behaviour,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    text: String,
}

#[async_trait]
impl Tool for TestTool {
    const NAME: &'static str = "test";
    const DESCRIPTION: &'static str = "Behaves as its argument says";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let text = match args.behaviour {
            Behaviour::Answer => "done".to_owned(),
            Behaviour::Panic => panic!("a panic of the test"),
            Behaviour::Hang => std::future::pending().await,
            Behaviour::LongAnswer => "x".repeat(cx.limits.response_bytes),
            Behaviour::LongWarning => {
                cx.warn("x".repeat(cx.limits.response_bytes));
                "warned".to_owned()
            }
            Behaviour::Commit => {
                cx.workspace.commit(Changeset::default(), cx).await?;
                "committed".to_owned()
            }
            Behaviour::CommitAndHang => {
                cx.workspace.commit(Changeset::default(), cx).await?;
                std::future::pending().await
            }
        };
        Ok(Output { text })
    }
}

/// A policy with one rule, which is about commits by the tool.
struct OneRule(&'static str);

#[async_trait]
impl Policy for OneRule {
    fn rules(&self, _: WorkspaceId, _: Caller) -> Arc<RulesInForce> {
        let workspace = Arc::new(RuleList::compile(vec![self.0.parse().unwrap()]).unwrap());
        Arc::new(RulesInForce { lists: RuleLists { workspace, ..RuleLists::default() }, ..RulesInForce::default() })
    }

    async fn reload(&self, _: WorkspaceId, _: Caller) -> Result<()> {
        Ok(())
    }
}

fn engine(policy: impl Policy + 'static) -> (Engine, Arc<Records>) {
    let records = Arc::new(Records::default());
    let limits = Limits { call_timeout: Duration::from_millis(500), response_bytes: 1000, ..Limits::default() };
    let toolsets = Toolsets::default().with(Toolset::new("plain", Arc::new(TestDialect)).with(TestTool));
    (Engine::new(toolsets, Arc::new(TestWorkspaces), Arc::new(policy), records.clone(), limits), records)
}

fn call(tool: &str, args: &str, user: crate::UserId) -> Call {
    Call {
        id: CallId::new(),
        correlation: String::new(),
        toolset: "plain".into(),
        tool: tool.into(),
        args: JsonText::parse(args.into()).unwrap(),
        caller: Caller::person(user),
        session: String::new(),
        workspace: WorkspaceId::new(),
    }
}

fn member() -> crate::UserId {
    crate::UserId(uuid::Uuid::nil())
}

/// Runs a call; returns the body that is answered, also for an error.
async fn answer(engine: &Engine, call: Call) -> String {
    let body = engine.call(&call, &Permission::Ask, |outcome| TestDialect.render(&outcome, "")).await;
    String::from_utf8(body.unwrap_or_else(|error| TestDialect.failure(&error, ""))).unwrap()
}

async fn outcome(policy: impl Policy + 'static, tool: &str, args: &str) -> (String, Vec<String>) {
    let (engine, records) = engine(policy);
    let answer = answer(&engine, call(tool, args, member())).await;
    let outcomes =
        records.0.lock().unwrap().iter().map(|record| record.outcome.clone().unwrap().into_owned()).collect();
    (answer, outcomes)
}

#[tokio::test]
async fn every_call_is_answered_in_the_dialect_and_recorded_once() {
    for (behaviour, body, recorded) in [
        ("answer", r#"{"text":"done"}"#, "ok"),
        (
            "panic",
            "Internal error; the server's log has the cause under the id of this request (X-Request-Id)",
            "internal",
        ),
        ("hang", "Timed out after 500 ms", "timeout"),
    ] {
        let (answer, records) = outcome(NoRules, "test", &format!(r#"{{"behaviour":"{behaviour}"}}"#)).await;
        assert_eq!((answer.as_str(), records.as_slice()), (body, [recorded.to_owned()].as_slice()), "{behaviour}");
    }
}

/// Collects the log lines of the level ERROR, with their fields as text.
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
            let _ = write!(text, "{field}={value:?} ");
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
    // `tracing` caches for each log statement whether it is enabled. Another test may have filled the cache without a
    // subscriber, so the statement is registered first and the cache is rebuilt with the subscriber of this thread.
    ToolError::internal("not part of the test").log_cause();
    let _guard = tracing::subscriber::set_default(log.clone());
    tracing::callsite::rebuild_interest_cache();
    let (answer, _) = outcome(NoRules, "test", r#"{"behaviour":"panic"}"#).await;
    assert!(!answer.contains("a panic of the test"), "{answer}");
    assert_eq!(*log.0.lock().unwrap(), ["message=internal error cause=panic: a panic of the test "]);
}

#[tokio::test]
async fn a_call_that_commits_is_not_recorded_a_second_time() {
    let (answer, records) = outcome(NoRules, "test", r#"{"behaviour":"commit"}"#).await;
    assert_eq!((answer.as_str(), records.len()), (r#"{"text":"committed"}"#, 0));
}

#[tokio::test]
async fn a_call_that_fails_after_its_commit_is_recorded_as_failed() {
    let (engine, records) = engine(NoRules);
    answer(&engine, call("test", r#"{"behaviour":"commit_and_hang"}"#, member())).await;
    let records = records.0.lock().unwrap();
    assert_eq!((records[0].outcome.as_deref(), records[0].commit_id.is_some()), (Some("timeout"), true));
}

#[tokio::test]
async fn a_stranger_is_refused_without_waiting() {
    let records = Arc::new(Records::default());
    let toolsets = Toolsets::default().with(Toolset::new("plain", Arc::new(TestDialect)).with(TestTool));
    let limits = Limits { calls_per_workspace: 1, ..Limits::default() };
    let engine = Engine::new(toolsets, Arc::new(TestWorkspaces), Arc::new(NoRules), records, limits);
    let first = call("test", r#"{"behaviour":"hang"}"#, member());
    let workspace = first.workspace;
    let mut hanging = Box::pin(answer(&engine, first));
    assert!((&mut hanging).now_or_never().is_none());
    let strangers = Call { workspace, ..call("test", r#"{"behaviour":"answer"}"#, crate::UserId::new()) };
    let refusal = answer(&engine, strangers).now_or_never().expect("the stranger had to wait");
    assert_eq!(refusal, "no member");
    let members = Call { workspace, ..call("test", r#"{"behaviour":"answer"}"#, member()) };
    assert!(answer(&engine, members).now_or_never().is_none(), "a member waits");
}

#[tokio::test]
async fn an_answer_over_the_limit_is_refused_with_advice() {
    let (answer, records) = outcome(NoRules, "test", r#"{"behaviour":"long_answer"}"#).await;
    assert!(answer.contains("over the limit of 1000 bytes; ask for less"), "{answer}");
    assert_eq!(records, ["response_too_large"]);
    // Warnings are part of the answer.
    let (answer, records) = outcome(NoRules, "test", r#"{"behaviour":"long_warning"}"#).await;
    assert!(answer.contains("over the limit of 1000 bytes; ask for less"), "{answer}");
    assert_eq!(records, ["response_too_large"]);
}

#[tokio::test]
async fn a_rule_that_denies_stops_the_call() {
    let (answer, records) = outcome(OneRule("deny tool(plain/test)"), "test", r#"{"behaviour":"answer"}"#).await;
    assert!(answer.starts_with("Not allowed"), "{answer}");
    assert_eq!(records, ["approval_denied"]);
}

#[tokio::test]
async fn a_call_that_must_ask_has_not_ended_and_is_not_recorded() {
    let (engine, records) = engine(OneRule("ask tool(plain/test)"));
    let call = call("test", r#"{"behaviour":"answer"}"#, member());
    let error = engine.call(&call, &Permission::Ask, Ok).await.unwrap_err();
    assert_eq!((error.kind, error.asks().len()), (ErrorKind::ApprovalRequired, 1));
    assert!(records.0.lock().unwrap().is_empty());
    // A person who makes the call directly is not asked.
    assert!(engine.call(&call, &Permission::OwnHand, Ok).await.is_ok());
    let preview = engine.preview(&call).await.unwrap();
    assert_eq!(preview.asks.len(), 1);
}

#[tokio::test]
async fn a_stranger_gets_no_argument_errors() {
    for (tool, args) in [("test", r#"{"behavior":1}"#), ("nothing", "{}")] {
        let (engine, _) = engine(NoRules);
        assert_eq!(answer(&engine, call(tool, args, crate::UserId::new())).await, "no member", "{tool}");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_recorded() {
    let (engine, records) = engine(NoRules);
    let hanging = answer(&engine, call("test", r#"{"behaviour":"hang"}"#, member()));
    assert!(hanging.now_or_never().is_none());
    assert_eq!(records.0.lock().unwrap()[0].outcome.as_deref(), Some("cancelled"));
}

#[tokio::test]
async fn a_call_of_an_unknown_toolset_is_refused() {
    let (engine, _) = engine(NoRules);
    let unknown = Call { toolset: "none".into(), ..call("test", "{}", member()) };
    assert_eq!(answer(&engine, unknown).await, "Toolset 'none' not found");
}

#[tokio::test]
async fn a_prepared_call_has_done_nothing_and_can_be_stored() {
    let (engine, records) = engine(NoRules);
    let call = call("test", r#"{"behaviour":"commit"}"#, member());
    let prepared = engine.prepare(&call).unwrap();
    assert_eq!((prepared.action(), prepared.is_dry_run(), prepared.intents.len()), (Action::Read, false, 0));
    drop(prepared);
    assert!(records.0.lock().unwrap().is_empty());
    let stored: Call = serde_json::from_str(&serde_json::to_string(&call).unwrap()).unwrap();
    assert_eq!(answer(&engine, stored).await, r#"{"text":"committed"}"#);
}
