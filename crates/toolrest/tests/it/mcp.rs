//! `toolrest mcp`: the Model Context Protocol on standard input and output.

pub mod client;
mod install;

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use toolrest_testkit::wait_until;

use crate::on::{On, text_at};

use self::client::{McpClient, answer, text_of};

const LIMIT: Duration = Duration::from_secs(30);

/// A client that can ask its user.
fn asking() -> Value {
    json!({"elicitation": {}})
}

/// Whether a process with this argument runs on the machine.
pub fn runs(argument: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let has_argument = |command: &[u8]| command.split(|byte| *byte == 0).any(|part| part == argument.as_bytes());
    processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok()).any(|command| has_argument(&command))
}

/// Returns a number of seconds, far more than a test takes, that no other test sleeps for.
pub fn unique_seconds() -> String {
    format!("9{}.5", uuid_digits())
}

fn uuid_digits() -> u32 {
    let unique = toolrest_testkit::unique_email("x");
    unique.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 1_000_000
}

/// Returns how the approvals of a data folder were decided.
fn decisions(data: &Path) -> Vec<(String, String)> {
    let database = Connection::open(data.join("toolrest.db")).unwrap();
    let mut rows =
        database.prepare("SELECT kind, via FROM approval_events WHERE via IS NOT NULL ORDER BY pos").unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn an_agent_reads_edits_and_runs_programs_in_a_folder() {
    let mut client = McpClient::in_folder(&[("a.txt", "one\ntwo\n")]);
    let info = client.begin(&json!({}));
    assert_eq!(info["serverInfo"]["name"], "toolrest", "{info}");
    assert_eq!(info["protocolVersion"], "2025-11-25", "{info}");
    let tools = client.request("tools/list", json!({}));
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names[..7], ["read", "write", "edit", "multiedit", "apply_patch", "ls", "glob"]);
    assert!(names.contains(&"run_code"), "{names:?}");
    assert_eq!(tools["tools"][0]["annotations"], json!({"readOnlyHint": true, "openWorldHint": false}));
    assert!(tools["tools"][0].get("outputSchema").is_none(), "{tools}");

    assert_eq!(client.text("read", json!({"filePath": "a.txt"})), "     1→one\n     2→two");
    let diff = client.text("edit", json!({"filePath": "a.txt", "oldString": "two", "newString": "three"}));
    assert!(diff.contains("-two\n+three"), "{diff}");
    assert_eq!(client.file("a.txt"), "one\nthree\n");
    let code = "cat a.txt; echo seen > b.txt; echo oops >&2; exit 3";
    let output = client.text("run_code", json!({"language": "bash", "code": code}));
    assert!(output.starts_with("one\nthree\n[stderr]\noops\n[exit code 3]\n[created b.txt]\n[commit "), "{output}");
    assert_eq!(client.file("b.txt"), "seen\n");
    assert_eq!(client.text("ls", json!({"dirPath": "."})), "a.txt\nb.txt");
    assert_eq!(client.text("glob", json!({"pattern": "*.rs"})), "[no file matches]");
    client.end();
}

#[test]
fn what_a_tool_refuses_is_an_answer_and_what_the_protocol_refuses_is_an_error() {
    let mut client = McpClient::in_folder(&[]);
    client.begin(&json!({}));
    let missing = client.call("read", json!({"filePath": "none.txt"}));
    assert_eq!(missing["isError"], true, "{missing}");
    assert_eq!(text_of(&missing), "File not found: none.txt");
    let wrong = client.call("read", json!({"file": "a"}));
    assert_eq!(wrong["isError"], true, "{wrong}");
    assert!(text_of(&wrong).contains("unknown argument `file`"), "{wrong}");
    let unknown = client.exchange("tools/call", json!({"name": "fly", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("Unknown tool: fly"), "{unknown}");
    let not_offered = client.exchange("tools/call", json!({"name": "memory_save", "arguments": {}}));
    assert_eq!(not_offered["error"]["code"], -32602, "{not_offered}");
}

#[test]
fn toolsets_and_answers_are_chosen_by_options() {
    let mut client =
        McpClient::start(&[("a.txt", "x\n")], &["--toolset", "file,system", "--read-only", "--structured"], &[]);
    client.begin(&json!({}));
    let tools = client.request("tools/list", json!({}));
    let tools = tools["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let expected = ["file_read", "file_list", "file_search", "list_directory", "read_file", "web_fetch", "web_search"];
    assert_eq!(names, expected);
    assert!(tools.iter().all(|tool| tool["outputSchema"]["type"] == "object"), "{tools:?}");
    let read = client.call("file_read", json!({"path": "a.txt"}));
    assert_eq!(read["structuredContent"]["total_lines"], 1, "{read}");
    assert_eq!(text_of(&read), "     1\tx");
    let found = client.text("file_search", json!({"pattern": "x"}));
    assert_eq!(found, "a.txt:1: x");
}

#[test]
fn a_cancelled_call_ends_its_program() {
    let mut client = McpClient::in_folder(&[]);
    client.begin(&json!({}));
    let seconds = unique_seconds();
    let code = format!("sleep {seconds}; echo late > late.txt");
    let id = client.send("tools/call", json!({"name": "run_code", "arguments": {"language": "bash", "code": code}}));
    wait_until("the program runs", LIMIT, || runs(&seconds));
    client.notify("notifications/cancelled", json!({"requestId": id, "reason": "test"}));
    wait_until("the program has ended", LIMIT, || !runs(&seconds));
    assert_eq!(client.text("ls", json!({"dirPath": "."})), "[empty]");
}

#[test]
fn the_end_of_the_input_ends_running_programs_and_the_process() {
    let mut client = McpClient::in_folder(&[]);
    client.begin(&json!({}));
    let seconds = unique_seconds();
    let code = format!("sleep {seconds}");
    client.send("tools/call", json!({"name": "run_code", "arguments": {"language": "bash", "code": code}}));
    wait_until("the program runs", LIMIT, || runs(&seconds));
    client.end();
    assert!(!runs(&seconds));
}

#[test]
fn a_rule_that_denies_holds_although_nothing_asks() {
    let mut client =
        McpClient::start(&[("ci/a.yml", "old\n")], &[], &[("TOOLREST__POLICY__RULES", "deny write(ci/**)")]);
    client.begin(&json!({}));
    let denied = client.call("write", json!({"filePath": "ci/a.yml", "content": "new\n"}));
    assert_eq!(denied["isError"], true, "{denied}");
    assert!(text_of(&denied).contains("deny write(ci/**)"), "{denied}");
    assert_eq!(client.file("ci/a.yml"), "old\n");
}

#[test]
fn a_call_that_a_rule_asks_about_says_that_it_waits() {
    let env = [("TOOLREST__POLICY__RULES", "ask write(docs/**)"), ("TOOLREST__POLICY__WAIT_MS", "0")];
    let mut client = McpClient::start(&[("docs/a.md", "old\n")], &[], &env);
    client.begin(&json!({}));
    let args = json!({"filePath": "docs/a.md", "content": "new\n"});
    let waiting = client.call("write", args.clone());
    assert_eq!(waiting["isError"], false, "{waiting}");
    let text = text_of(&waiting);
    let id = text.strip_prefix("Waiting for approval ").and_then(|rest| rest.split(':').next()).unwrap();
    assert!(text.contains(&format!("toolrest approvals approve {id}")), "{text}");
    assert_eq!(client.file("docs/a.md"), "old\n");
    assert!(text_of(&client.call("write", args)).contains(id), "the same call waits as the same approval");
}

#[test]
fn the_user_is_asked_and_accepts() {
    let mut client = McpClient::in_folder(&[("a.txt", "old\n")]);
    client.begin(&asking());
    let id = client.send(
        "tools/call",
        json!({"name": "edit", "arguments": {"filePath": "a.txt", "oldString": "old", "newString": "new"}}),
    );
    let question = client.next_request("elicitation/create");
    assert_eq!(question["params"]["mode"], "form", "{question}");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("edit") && message.contains("-old\n+new"), "{message}");
    assert_eq!(client.file("a.txt"), "old\n");
    client.answer(&question, json!({"action": "accept", "content": {}}));
    let result = answer(client.response(id));
    assert_eq!(result["isError"], false, "{result}");
    assert!(text_of(&result).contains("-old\n+new"), "{result}");
    assert_eq!(client.file("a.txt"), "new\n");
    assert_eq!(decisions(&client.data()), [("approved".to_owned(), "elicitation".to_owned())]);
}

#[test]
fn the_user_is_asked_and_declines() {
    let mut client = McpClient::in_folder(&[("a.txt", "old\n")]);
    client.begin(&asking());
    let id =
        client.send("tools/call", json!({"name": "write", "arguments": {"filePath": "a.txt", "content": "new\n"}}));
    let question = client.next_request("elicitation/create");
    client.answer(&question, json!({"action": "decline"}));
    let result = answer(client.response(id));
    assert_eq!(result["isError"], true, "{result}");
    assert!(text_of(&result).contains("refused"), "{result}");
    assert_eq!(client.file("a.txt"), "old\n");
    assert_eq!(decisions(&client.data()), [("denied".to_owned(), "elicitation".to_owned())]);
}

#[test]
fn a_user_who_may_not_decide_is_not_asked() {
    let env = [("TOOLREST__POLICY__SELF_APPROVAL", "false"), ("TOOLREST__POLICY__WAIT_MS", "0")];
    let mut client = McpClient::start(&[("a.txt", "old\n")], &[], &env);
    client.begin(&asking());
    let waiting = client.call("write", json!({"filePath": "a.txt", "content": "new\n"}));
    assert!(text_of(&waiting).starts_with("Waiting for approval"), "{waiting}");
    assert_eq!(client.file("a.txt"), "old\n");
}

#[test]
fn a_client_of_the_protocol_without_sessions_is_asked_by_a_result() {
    let mut client = McpClient::in_folder(&[("a.txt", "old\n")]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let discovered = client.request("server/discover", json!({"_meta": meta}));
    let versions = discovered["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")), "{discovered}");

    let call = json!({"name": "write", "arguments": {"filePath": "a.txt", "content": "new\n"}, "_meta": meta});
    let asked = client.request("tools/call", call.clone());
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(asked["inputRequests"]["approval"]["method"], "elicitation/create", "{asked}");
    let with = |state: &Value| {
        let mut call = call.clone();
        call["inputResponses"] = json!({"approval": {"action": "accept", "content": {}}});
        call["requestState"] = state.clone();
        call
    };
    let forged = client.exchange("tools/call", with(&json!("another")));
    assert_eq!(forged["error"]["code"], -32602, "{forged}");
    assert_eq!(client.file("a.txt"), "old\n");
    let done = client.request("tools/call", with(&asked["requestState"]));
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(client.file("a.txt"), "new\n");
    // The same answer again decides nothing: the repeated call is another one to ask about.
    let replayed = client.exchange("tools/call", with(&asked["requestState"]));
    assert_eq!(replayed["error"]["code"], -32602, "{replayed}");
}

#[test]
fn the_files_of_the_folder_are_resources() {
    let files = [("a b.txt", "one\n"), ("src/x.rs", "fn x() {}\n"), (".gitignore", "out/\n"), ("out/y", "ignored\n")];
    let mut client = McpClient::start(&files, &[], &[("TOOLREST__POLICY__RULES", "deny read(src/**)")]);
    client.begin(&json!({}));
    let listed = client.request("resources/list", json!({}));
    let names: Vec<&str> =
        listed["resources"].as_array().unwrap().iter().map(|file| file["uri"].as_str().unwrap()).collect();
    assert_eq!(names, ["toolrest:///.gitignore", "toolrest:///a%20b.txt"]);
    let read = client.request("resources/read", json!({"uri": "toolrest:///a%20b.txt"}));
    assert_eq!(read["contents"][0]["text"], "one\n", "{read}");
    let denied = client.exchange("resources/read", json!({"uri": "toolrest:///src/x.rs"}));
    assert!(denied["error"]["message"].as_str().unwrap().contains("deny read(src/**)"), "{denied}");
    let missing = client.exchange("resources/read", json!({"uri": "toolrest:///none.txt"}));
    assert_eq!(missing["error"]["code"], -32002, "{missing}");
    let templates = client.request("resources/templates/list", json!({}));
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "toolrest:///{+path}", "{templates}");
}

#[test]
fn the_first_root_of_the_client_is_the_folder_if_none_is_named() {
    let root = toolrest_testkit::temp_folder("a root");
    fs::write(root.path().join("here.txt"), "one\n").unwrap();
    let mut client = McpClient::without_folder();
    client.begin(&json!({"roots": {}}));
    let id = client.send("tools/call", json!({"name": "ls", "arguments": {"dirPath": "."}}));
    let question = client.next_request("roots/list");
    let uri = format!("file://{}", root.path().to_str().unwrap().replace(' ', "%20"));
    client.answer(&question, json!({"roots": [{"uri": "https://example.org"}, {"uri": uri}]}));
    assert_eq!(text_of(&answer(client.response(id))), "here.txt");
    // A client without roots works in the folder that it starts the process in.
    let mut client = McpClient::without_folder();
    client.begin(&json!({}));
    assert!(client.text("ls", json!({"dirPath": "."})).contains("started-here.txt"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_passed_on_to_a_server() {
    let workspace = On::Sqlite.workspace().await;
    workspace.write("/a.txt", "one\n").await;
    let made = workspace.post("/keys", &json!({"name": "agent"})).await.success();
    let secret = text_at(&made, "/secret").to_owned();
    let url = On::Sqlite.shared().url();
    tokio::task::spawn_blocking(move || {
        let mut client = McpClient::of_server(&url, &secret);
        assert_eq!(client.begin(&json!({}))["protocolVersion"], "2025-11-25");
        assert_eq!(client.text("read", json!({"filePath": "a.txt"})), "     1→one");
        let seconds = unique_seconds();
        let code = format!("sleep {seconds}");
        let id =
            client.send("tools/call", json!({"name": "run_code", "arguments": {"language": "bash", "code": code}}));
        wait_until("the program runs", LIMIT, || runs(&seconds));
        client.notify("notifications/cancelled", json!({"requestId": id}));
        wait_until("the program has ended", LIMIT, || !runs(&seconds));
        client.end();
        let mut stranger = McpClient::of_server(&url, "trk_wrong");
        let refused = stranger.exchange("tools/list", json!({}));
        assert!(refused["error"]["message"].as_str().unwrap().contains("401"), "{refused}");
    })
    .await
    .unwrap();
}

#[test]
fn a_folder_that_is_not_there_ends_the_process_with_a_message() {
    let output = crate::command::toolrest(Path::new("/"), &["mcp", "--dir", "/no/such/folder"]).output().unwrap();
    assert!(!output.status.success());
    let message = crate::command::stderr(&output);
    assert!(message.contains("cannot open the folder /no/such/folder"), "{message}");
    assert!(output.stdout.is_empty(), "only the protocol is written to standard output");
}
