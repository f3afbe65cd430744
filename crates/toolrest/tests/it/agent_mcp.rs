//! The toolset `agent` over the Model Context Protocol, where it is the default.

use serde_json::{Value, json};

use crate::mcp::client::{McpClient, text_of};

/// Maximum size of the list of tools.
const LIST_BYTES: usize = 6_500;

#[test]
fn the_default_tools_are_few_and_their_list_is_short() {
    let mut client = McpClient::with_default_tools(&[("a.txt", "one\n")], &[]);
    let info = client.begin(&json!({}));
    let instructions = info["instructions"].as_str().unwrap();
    assert!(instructions.starts_with("Project files are at relative paths") && instructions.len() < 520, "{info}");
    let tools = client.request("tools/list", json!({}))["tools"].take();
    let tools = tools.as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, DEFAULT_TOOLS);
    let bytes: usize = tools.iter().map(|tool| tool.to_string().len() + 1).sum();
    assert!(bytes <= LIST_BYTES, "{bytes}");
    assert!(tools.iter().all(|tool| tool.get("outputSchema").is_none()), "{tools:?}");
    let annotations = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["annotations"].clone();
    assert_eq!(annotations("read"), json!({"readOnlyHint": true, "openWorldHint": false}));
    assert_eq!(annotations("edit"), json!({"destructiveHint": false, "openWorldHint": false}));
    let read = json!({"type": "object", "properties": {"paths": {"type": "array", "items": {"type": "string"},
        "description": "Files, each with optional lines: `a.rs`, `a.rs:40-90`, `a.rs:40-`, `a.rs:57` (around 57). Paths as programs print them work too. `out:ID` is the whole of an answer that was shortened."}},
        "required": ["paths"]});
    assert_eq!(tools[0]["inputSchema"], read);
    let edit = tools.iter().find(|tool| tool["name"] == "edit").unwrap();
    let edit_schema = json!({"type": "object", "properties": {"edits": {"type": "array", "items": {"type": "object",
        "properties": {"path": {"type": "string", "description": "File. `a.rs:57` means the occurrence at line 57."},
            "old": {"type": "string"}, "new": {"type": "string"},
            "all": {"type": "boolean", "description": "Replace every occurrence."},
            "if_hash": {"type": "string", "description": "The file's hash as shown by read; fails if it has changed since."}},
        "required": ["path", "old", "new"]}}}, "required": ["edits"]});
    assert_eq!(edit["inputSchema"], edit_schema);
    client.end();
}

const DEFAULT_TOOLS: [&str; 10] =
    ["read", "ls", "grep", "edit", "write", "apply_patch", "run", "job", "changes", "undo"];

#[test]
fn the_list_of_all_eleven_tools_has_the_size_that_the_documentation_says() {
    let mut client = McpClient::with_default_tools(&[], &[("TOOLREST__WEB__FETCH_HOSTS", "example.org")]);
    client.begin(&json!({}));
    let tools = client.request("tools/list", json!({}))["tools"].take();
    client.end();
    assert_eq!(tools.as_array().unwrap().len(), 11, "{tools}");
    let bytes = tools.to_string().len();
    assert!(bytes <= LIST_BYTES, "{bytes}");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp.md")).unwrap();
    assert!(page.contains(&format!("all eleven tools are {bytes} bytes")), "docs/mcp.md must say {bytes}");
}

#[test]
fn an_answer_is_a_text_and_the_data_are_for_those_who_ask() {
    let mut client = McpClient::with_default_tools(&[("a.txt", "one\n")], &[]);
    client.begin(&json!({}));
    let read = client.call("read", json!({"path": "a.txt"}));
    assert_eq!(read["isError"], false, "{read}");
    assert!(read.get("structuredContent").is_none() && read.get("_meta").is_none(), "{read}");
    assert_eq!(read["content"].as_array().unwrap().len(), 1);
    assert!(text_of(&read).starts_with("== a.txt 1 line #") && text_of(&read).ends_with("\n1\tone"), "{read}");
    let call = json!({"name": "read", "arguments": {"paths": ["a.txt"]}, "_meta": {"toolrest/data": true}});
    let with_data = client.request("tools/call", call);
    assert_eq!(with_data["_meta"]["toolrest/data"]["files"][0]["total"], 1, "{with_data}");
    let edited = client.text("edit", json!({"path": "a.txt", "old": "one", "new": "two"}));
    assert!(edited.starts_with("== edited 1 file, commit ") && edited.ends_with("@@ 1\n-one\n+two"), "{edited}");
    assert_eq!(client.file("a.txt"), "two\n");
    let failed = client.call("read", json!({"paths": ["b.txt"]}));
    assert_eq!(failed["isError"], true, "{failed}");
    assert!(text_of(&failed).starts_with("error not_found: b.txt\nnext: "), "{failed}");
    client.end();
}

#[test]
fn what_is_offered_follows_the_settings() {
    let names = |env: &[(&str, &str)]| {
        let mut client = McpClient::with_default_tools(&[], env);
        client.begin(&json!({}));
        let tools = client.request("tools/list", json!({}));
        client.end();
        let tools = tools["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool: &Value| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let edit = names(&[("TOOLREST__AGENT__EDIT_TOOLS", "edit")]);
    assert!(edit.contains(&"edit".to_owned()) && !edit.contains(&"apply_patch".to_owned()), "{edit:?}");
    let patch = names(&[("TOOLREST__AGENT__EDIT_TOOLS", "patch")]);
    assert!(!patch.contains(&"edit".to_owned()) && patch.contains(&"apply_patch".to_owned()), "{patch:?}");
}

#[test]
fn a_command_of_a_client_that_only_stopped_waiting_goes_on() {
    let mut client = McpClient::with_default_tools(&[], &[]);
    client.begin(&json!({}));
    let command = "echo begun > begun.txt; sleep 2; echo done > done.txt; echo over";
    let id = client.send("tools/call", json!({"name": "run", "arguments": {"command": command}}));
    let reason = "McpError: MCP error -32001: Request timed out";
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    client.notify("notifications/cancelled", json!({"requestId": id, "reason": reason}));
    let next = client.text("ls", json!({}));
    assert!(next.contains("\n.. the command whose call timed out goes on: job j1, `echo begun"), "{next}");
    let ended = client.text("job", json!({"id": "j1", "wait": 60}));
    assert!(ended.starts_with("== j1 exit 0, ") && ended.contains("\nover\n"), "{ended}");
    assert_eq!(client.file("done.txt"), "done\n");

    let other = client.send("tools/call", json!({"name": "run", "arguments": {"command": "echo 1 > no.txt; sleep 2"}}));
    std::thread::sleep(std::time::Duration::from_secs(1));
    client.notify("notifications/cancelled", json!({"requestId": other, "reason": "the user pressed escape"}));
    let listed = client.text("run", json!({"command": "sleep 2; ls"}));
    assert!(!listed.contains("no.txt") && !listed.contains("goes on"), "{listed}");
    client.end();
}
