//! Contents of files: text, documents with more fields, and JSON types.

use serde_json::{Value, json};
use toolrest_testkit::{Workspace, sha256_hex};

use crate::on::{On, list_at, text_at};

on_both_databases![
    json_is_kept_as_given,
    json_of_every_type_is_listed_under_its_type,
    json_types_take_an_object_only,
    a_document_takes_text_or_an_object_with_text_only,
    a_write_without_a_type_keeps_the_type,
    a_write_of_another_type_is_refused,
    the_hash_of_a_text_is_that_of_its_bytes,
    the_hash_of_json_is_that_of_its_canonical_form,
    read_write_and_edit_report_one_hash,
    a_document_keeps_all_its_fields,
    an_edit_of_a_document_keeps_its_other_fields,
    an_edit_of_a_canvas_edits_its_pretty_printed_text,
    an_edit_of_a_canvas_keeps_numbers_as_written,
    an_edit_that_breaks_the_json_is_refused,
];

/// Writes JSON given as text, in the order and spelling of the text.
async fn write_json(workspace: &Workspace, path: &str, file_type: &str, content: &str) -> Value {
    let call =
        format!(r#"{{"tool":"write","args":{{"path":"{path}","content":{content},"file_type":"{file_type}"}}}}"#);
    workspace.call_text(&call).await.result()
}

/// Asserts that the answer to a read holds this very text as its content.
async fn content_reads(workspace: &Workspace, path: &str, content: &str) {
    let reply = workspace.call("read", &json!({"path": path})).await;
    reply.result();
    assert!(reply.text.contains(content), "{content} is not in {}", reply.text);
}

async fn json_is_kept_as_given(on: On) {
    let workspace = on.workspace().await;
    let content = concat!(
        r#"{"zebra":1.0,"apple":1e5,"Big":12345678901234567890123,"e":1E-7,"neg":-0.0,"#,
        r#""long":0.1000000000000000055511151231257827,"list":[{"y":1,"x":2},[],null,true],"#,
        r#""é":"ü\n\"","nested":{"b":{},"a":""}}"#
    );
    write_json(&workspace, "/a.canvas", "canvas", content).await;
    content_reads(&workspace, "/a.canvas", content).await;
    write_json(&workspace, "/b.agent", "agent", r#"{"b":1,"a":2.50}"#).await;
    content_reads(&workspace, "/b.agent", r#"{"b":1,"a":2.50}"#).await;
}

async fn json_of_every_type_is_listed_under_its_type(on: On) {
    let workspace = on.workspace().await;
    for file_type in ["agent", "canvas", "chat", "skill", "whiteboard"] {
        let args = json!({"path": format!("/{file_type}"), "content": {"of": file_type}, "file_type": file_type});
        workspace.ok("write", args).await;
        let read = workspace.read(&format!("/{file_type}")).await;
        assert_eq!(read["content"], json!({"of": file_type}));
    }
    let listing = workspace.ok("ls", json!({})).await;
    let types: Vec<_> = list_at(&listing, "/entries").iter().map(|entry| text_at(entry, "/file_type")).collect();
    assert_eq!(types, ["Agent", "Canvas", "Chat", "Skill", "Whiteboard"]);
}

async fn json_types_take_an_object_only(on: On) {
    let workspace = on.workspace().await;
    for file_type in ["agent", "canvas", "chat", "skill", "whiteboard"] {
        for content in [json!("text"), json!([1]), json!(1), json!(null), json!(true)] {
            let args = json!({"path": "/x", "content": content, "file_type": file_type});
            workspace.refused(400, "VALIDATION_ERROR", "write", args).await;
        }
    }
}

async fn a_document_takes_text_or_an_object_with_text_only(on: On) {
    let workspace = on.workspace().await;
    for content in [
        json!(5),
        json!(null),
        json!(["text"]),
        json!({}),
        json!({"title": "x"}),
        json!({"text": null}),
        json!({"text": ["x"]}),
    ] {
        let args = json!({"path": "/x.md", "content": content});
        workspace.refused(400, "VALIDATION_ERROR", "write", args).await;
    }
    assert!(workspace.paths_in("/").await.is_empty());
}

async fn a_write_without_a_type_keeps_the_type(on: On) {
    let workspace = on.workspace().await;
    write_json(&workspace, "/a", "canvas", r#"{"v":1}"#).await;
    workspace.ok("write", json!({"path": "/a", "content": {"v": 2}})).await;
    let listing = workspace.ok("ls", json!({})).await;
    assert_eq!(listing["entries"][0]["file_type"], "Canvas");
    assert_eq!(workspace.read("/a").await["content"], json!({"v": 2}));
    let text = json!({"path": "/a", "content": "text does not fit a canvas"});
    workspace.refused(400, "VALIDATION_ERROR", "write", text).await;
    assert_eq!(workspace.read("/a").await["content"], json!({"v": 2}));
}

async fn a_write_of_another_type_is_refused(on: On) {
    let workspace = on.workspace().await;
    write_json(&workspace, "/a", "canvas", r#"{"v":1}"#).await;
    workspace.write("/b", "text").await;
    workspace.ok("mkdir", json!({"path": "/c"})).await;
    for (path, content, file_type) in [
        ("/a", json!("text"), "document"),
        ("/a", json!({"v": 2}), "whiteboard"),
        ("/a", json!({}), "folder"),
        ("/b", json!({"text": "x"}), "canvas"),
        ("/b", json!({}), "folder"),
        ("/c", json!("text"), "document"),
        ("/c", json!({}), "canvas"),
    ] {
        let args = json!({"path": path, "content": content, "file_type": file_type});
        workspace.refused(400, "VALIDATION_ERROR", "write", args).await;
    }
    assert_eq!(workspace.read("/a").await["content"], json!({"v": 1}));
    assert_eq!(workspace.text("/b").await, "text");
}

async fn the_hash_of_a_text_is_that_of_its_bytes(on: On) {
    let workspace = on.workspace().await;
    for (number, text) in ["", "hello", "a\r\nb\n", "\u{feff}bom", "ünï ✓ \u{10ffff}"].into_iter().enumerate() {
        let written = workspace.write(&format!("/a{number}.txt"), text).await;
        assert_eq!(written["hash"], sha256_hex(text), "{text:?}");
        let args = json!({"path": format!("/b{number}.txt"), "content": {"text": text}});
        let explicit = workspace.ok("write", args).await;
        assert_eq!(explicit["hash"], sha256_hex(text), "{text:?}");
    }
}

async fn the_hash_of_json_is_that_of_its_canonical_form(on: On) {
    let workspace = on.workspace().await;
    let canonical = r#"{"a":[100000,0.5,"é\n"],"b":{"x":1,"y":null}}"#;
    for given in [
        canonical,
        r#"{"b":{"y":null,"x":1.0},"a":[1e5,5e-1,"\u00e9\u000a"]}"#,
        "{ \"b\" : { \"x\" : 1,\n \"y\" : null },\t\"a\" : [ 100000.0, 0.50, \"é\\n\" ] }",
    ] {
        let written = write_json(&workspace, "/a.canvas", "canvas", given).await;
        assert_eq!(written["hash"], sha256_hex(canonical), "{given}");
        let read = workspace.read("/a.canvas").await;
        assert_eq!(read["hash"], sha256_hex(canonical), "{given}");
    }
}

async fn read_write_and_edit_report_one_hash(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one two").await;
    let args = json!({"path": "/a.txt", "old_string": "two", "new_string": "three"});
    let edited = workspace.ok("edit", args).await;
    assert_eq!(edited["hash"], sha256_hex("one three"));
    assert_eq!(workspace.read("/a.txt").await["hash"], edited["hash"]);
    let written = workspace.write("/b.txt", "one three").await;
    assert_eq!(written["hash"], edited["hash"]);
}

async fn a_document_keeps_all_its_fields(on: On) {
    let workspace = on.workspace().await;
    let content = r#"{"title":"T","text":"hello","count":1.0}"#;
    write_json(&workspace, "/a.md", "document", content).await;
    content_reads(&workspace, "/a.md", content).await;
    let listing = workspace.ok("ls", json!({})).await;
    assert_eq!(listing["entries"][0]["file_type"], "Document");
}

async fn an_edit_of_a_document_keeps_its_other_fields(on: On) {
    let workspace = on.workspace().await;
    let content = r#"{"title":"say hello","text":"hello world","count":1.0,"meta":{"z":1,"a":2}}"#;
    write_json(&workspace, "/a.md", "document", content).await;
    let args = json!({"path": "/a.md", "old_string": "hello", "new_string": "goodbye"});
    workspace.ok("edit", args).await;
    let expected = content.replace("hello world", "goodbye world");
    content_reads(&workspace, "/a.md", &expected).await;
    let elsewhere = json!({"path": "/a.md", "old_string": "title", "new_string": "x"});
    workspace.refused(400, "VALIDATION_ERROR", "edit", elsewhere).await;
    let many = json!({"path": "/a.md", "old_string": "o", "new_string": "0"});
    workspace.ok("edit-many", many).await;
    let expected = expected.replace("goodbye world", "g00dbye w0rld");
    content_reads(&workspace, "/a.md", &expected).await;
}

async fn an_edit_of_a_canvas_edits_its_pretty_printed_text(on: On) {
    let workspace = on.workspace().await;
    let content = r#"{"elements":[{"type":"rect","x":10}],"version":1}"#;
    write_json(&workspace, "/a.canvas", "canvas", content).await;
    let args = json!({
        "path": "/a.canvas",
        "old_string": "      \"x\": 10\n    }\n",
        "new_string": "      \"x\": 20\n    },\n    {}\n",
    });
    let edited = workspace.ok("edit", args).await;
    let expected = json!({"elements": [{"type": "rect", "x": 20}, {}], "version": 1});
    let read = workspace.read("/a.canvas").await;
    assert_eq!(read["content"], expected);
    assert_eq!(read["hash"], edited["hash"]);
    let canonical = r#"{"elements":[{"type":"rect","x":20},{}],"version":1}"#;
    assert_eq!(read["hash"], sha256_hex(canonical));
}

async fn an_edit_of_a_canvas_keeps_numbers_as_written(on: On) {
    let workspace = on.workspace().await;
    let content = r#"{"z":1.0,"a":1e5,"x":10}"#;
    write_json(&workspace, "/a.canvas", "canvas", content).await;
    let args = json!({"path": "/a.canvas", "old_string": "\"x\": 10", "new_string": "\"x\": 20"});
    workspace.ok("edit", args).await;
    let reply = workspace.call("read", &json!({"path": "/a.canvas"})).await;
    let squeezed: String = reply.text.split_ascii_whitespace().collect();
    let squeezed = squeezed.replace("\\n", "");
    assert!(squeezed.contains(r#"{"z":1.0,"a":1e5,"x":20}"#), "{}", reply.text);
}

async fn an_edit_that_breaks_the_json_is_refused(on: On) {
    let workspace = on.workspace().await;
    write_json(&workspace, "/a.canvas", "canvas", r#"{"x":10}"#).await;
    for tool in ["edit", "edit-many"] {
        let args = json!({"path": "/a.canvas", "old_string": "10", "new_string": "ten"});
        workspace.refused(400, "VALIDATION_ERROR", tool, args).await;
    }
    assert_eq!(workspace.read("/a.canvas").await["content"], json!({"x": 10}));
}
