//! The library: its examples, and approvers of programs.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use toolrest::core::{CallOutcome, ErrorKind, Result as ToolResult};
use toolrest::settings::Settings;
use toolrest::{ApprovalRequest, Approver, ApproverDecision, Runtime, RuntimeOptions};

#[path = "../../examples/approver.rs"]
#[allow(dead_code)]
mod approver_example;
#[path = "../../examples/custom_tool.rs"]
#[allow(dead_code)]
mod custom_tool_example;
#[path = "../../examples/model_loop.rs"]
#[allow(dead_code)]
mod model_loop_example;
#[path = "../../examples/open_folder.rs"]
#[allow(dead_code)]
mod open_folder_example;
#[path = "../../examples/tool_executor.rs"]
#[allow(dead_code)]
mod tool_executor_example;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_with_a_folder_writes_into_it() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = open_folder_example::run(folder.path(), data.path()).await.unwrap();
    assert!(text.contains("+remember") && text.contains("notes.txt"), "{text}");
    assert_eq!(fs::read_to_string(folder.path().join("notes.txt")).unwrap(), "remember\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_with_an_approver_allows_small_changes_only() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(folder.path().join("notes.txt"), "old\n").unwrap();
    let [small, large] = approver_example::run(folder.path(), data.path()).await.unwrap();
    assert!(small.contains("notes.txt"), "{small}");
    assert!(large.contains("only changes of up to four lines"), "{large}");
    assert_eq!(fs::read_to_string(folder.path().join("notes.txt")).unwrap(), "short\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_with_a_custom_tool_counts_words() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(folder.path().join("a.txt"), "three short words\n").unwrap();
    let counted = custom_tool_example::run(folder.path(), data.path(), "a.txt").await.unwrap();
    assert_eq!(counted, r#"{"words":3}"#);
    assert!(custom_tool_example::run(folder.path(), data.path(), "missing.txt").await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_specification_000_lists_a_folder() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(folder.path().join("a.txt"), "one\n").unwrap();
    let listed = tool_executor_example::run(folder.path(), data.path(), "/").await.unwrap();
    assert!(listed.success && listed.error.is_none());
    assert_eq!(listed.result["entries"][0]["name"], "a.txt");
    let refused = tool_executor_example::run(folder.path(), data.path(), "/missing").await.unwrap();
    assert!(!refused.success && refused.result.is_null());
    assert!(refused.error.unwrap().contains("/missing"));
    let unknown = toolrest::get_tool_executor("format_disk").unwrap_err();
    assert_eq!((unknown.kind, unknown.message.as_str()), (ErrorKind::UnknownTool, "Tool 'format_disk' not found"));
}

/// Answers requests at an endpoint like OpenAI's with these messages of a model, and returns the requests.
async fn play_model(listener: TcpListener, messages: Vec<Value>) -> Vec<Value> {
    let mut requests = Vec::new();
    for message in messages {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        let body = loop {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0, "the request ends early");
            let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length: usize = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
            if body.len() == length {
                break request[request.len() - length..].to_vec();
            }
        };
        requests.push(serde_json::from_slice(&body).unwrap());
        let answer = json!({"choices": [{"message": message}]}).to_string();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
        stream.write_all((head + &answer).as_bytes()).await.unwrap();
    }
    requests
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_with_a_model_calls_what_the_model_asks_for() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap().to_string();
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "write", "arguments": arguments}});
    let write = call("1", r#"{"filePath": "a.txt", "content": "one\n"}"#);
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [write, call("2", "{")]});
    let end = json!({"role": "assistant", "content": "Done."});
    let model = tokio::spawn(play_model(listener, vec![calls, end]));
    let answer = model_loop_example::run(folder.path(), data.path(), &endpoint, "test", "Write a.txt").await.unwrap();
    let requests = model.await.unwrap();
    assert_eq!(answer, "Done.");
    assert_eq!(fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one\n");
    assert_eq!(requests[0]["tools"][0]["function"]["name"], "read");
    let messages = requests[1]["messages"].as_array().unwrap();
    assert_eq!((&messages[0]["content"], &messages[2]["tool_call_id"]), (&json!("Write a.txt"), &json!("1")));
    assert!(messages[2]["content"].as_str().unwrap().contains("+one"), "{messages:?}");
    assert!(messages[3]["content"].as_str().unwrap().contains("not JSON"), "{messages:?}");
}

/// Answers with a function of the request, and counts how often it was asked.
struct Answering<F> {
    answer: F,
    asked: Arc<AtomicU32>,
}

#[async_trait]
impl<F: Fn(&ApprovalRequest) -> ApproverDecision + Send + Sync> Approver for Answering<F> {
    async fn decide(&self, request: &ApprovalRequest) -> ApproverDecision {
        self.asked.fetch_add(1, Ordering::Relaxed);
        (self.answer)(request)
    }
}

/// Overwrites `a.txt`, which holds `old`, through a runtime with an approver. Returns the result, how often the approver
/// was asked, and the file at the end.
async fn overwrite_with(
    rules: &[&str],
    answer: impl Fn(&ApprovalRequest, &Path) -> ApproverDecision + Send + Sync + 'static,
) -> (ToolResult<CallOutcome>, u32, String) {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = folder.path().join("a.txt");
    fs::write(&file, "old\n").unwrap();
    let mut settings = Settings::default();
    settings.server.data_dir = data.path().to_owned();
    settings.folders.local_dir = Some(folder.path().to_owned());
    settings.run.enabled = false;
    settings.policy.rules = rules.iter().map(|rule| serde_json::from_value(json!(rule)).unwrap()).collect();
    let asked = Arc::new(AtomicU32::new(0));
    let seen = file.clone();
    let approver =
        Answering { answer: move |request: &ApprovalRequest| answer(request, &seen), asked: Arc::clone(&asked) };
    let options = RuntimeOptions::default().with_approver(approver);
    let runtime = Runtime::open_with(settings, options).await.unwrap();
    let local = runtime.open_local(folder.path()).await.unwrap();
    let args = json!({"path": "a.txt", "content": "new\n"});
    let result = runtime.call(local.workspace, local.caller, "system", "write_file", &args).await;
    runtime.close().await;
    (result, asked.load(Ordering::Relaxed), fs::read_to_string(file).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_sees_the_diff_and_the_reason() {
    let (result, asked, text) = overwrite_with(&[], |request, _| {
        assert_eq!((request.toolset.as_str(), request.tool.as_str()), ("system", "write_file"));
        assert!(request.diff.contains("-old\n+new\n"), "{}", request.diff);
        assert_eq!(request.asks[0].subject, "/a.txt");
        ApproverDecision::Approve
    })
    .await;
    assert!(result.unwrap().commit.is_some());
    assert_eq!((asked, text.as_str()), (1, "new\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_can_change_the_arguments_but_not_lift_a_denial() {
    let (result, _, text) =
        overwrite_with(&[], |_, _| ApproverDecision::ApproveWith(json!({"path": "a.txt", "content": "edited\n"})))
            .await;
    let outcome = result.unwrap();
    assert!(outcome.warnings.iter().any(|warning| warning.text.contains("edited")), "{outcome:?}");
    assert_eq!(text, "edited\n");
    let (result, _, text) = overwrite_with(&["deny write(b.txt)"], |_, _| {
        ApproverDecision::ApproveWith(json!({"path": "b.txt", "content": "edited\n"}))
    })
    .await;
    assert_eq!(result.unwrap_err().kind, ErrorKind::ApprovalDenied);
    assert_eq!(text, "old\n");
    let (result, _, _) = overwrite_with(&[], |_, _| ApproverDecision::ApproveWith(Value::Null)).await;
    assert!(result.unwrap_err().message.contains("object"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_and_an_answer_reach_the_agent() {
    let (result, _, text) = overwrite_with(&[], |_, _| ApproverDecision::Deny("not today".to_owned())).await;
    assert!(result.unwrap_err().message.contains("not today"));
    assert_eq!(text, "old\n");
    let (result, _, text) = overwrite_with(&[], |_, _| ApproverDecision::Respond("use b.txt".to_owned())).await;
    assert!(result.unwrap_err().message.contains("use b.txt"));
    assert_eq!(text, "old\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_is_asked_again_if_the_file_changed_meanwhile() {
    let (result, asked, text) = overwrite_with(&[], |request, file| {
        if request.revision == 1 {
            fs::write(file, "somebody else's\n").unwrap();
            return ApproverDecision::Approve;
        }
        assert!(request.diff.contains("-somebody else's\n+new\n"), "{}", request.diff);
        ApproverDecision::Deny("it changed".to_owned())
    })
    .await;
    assert_eq!(result.unwrap_err().kind, ErrorKind::ApprovalDenied);
    assert_eq!((asked, text.as_str()), (2, "somebody else's\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_is_not_asked_about_what_is_denied() {
    let (result, asked, text) = overwrite_with(&["deny write(a.txt)"], |_, _| ApproverDecision::Approve).await;
    assert_eq!(result.unwrap_err().kind, ErrorKind::ApprovalDenied);
    assert_eq!((asked, text.as_str()), (0, "old\n"));
}
