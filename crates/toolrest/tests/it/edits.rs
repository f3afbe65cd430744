//! `edit` and `edit-many` of the `workspace` toolset.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use toolrest_testkit::sha256_hex;

use crate::on::{On, list_at, text_at};
use crate::toolset::{CODING, FILE, SYSTEM};

on_every_backend![
    an_edit_replaces_the_one_occurrence,
    a_string_that_is_not_there_is_refused,
    a_string_that_is_there_twice_is_refused,
    an_empty_search_string_is_refused,
    an_edit_of_a_missing_file_is_not_found,
    a_replacement_is_literal,
    a_search_string_is_literal,
    an_edit_of_one_line_keeps_every_line_ending,
    a_search_over_lines_finds_them_whatever_their_endings,
    each_line_of_a_mixed_file_keeps_its_own_ending,
    a_final_newline_stays_as_it_was,
    a_byte_order_mark_survives_an_edit,
    near_misses_are_not_edited,
    edit_many_replaces_every_occurrence,
    edit_many_of_what_is_not_there_is_refused,
    edit_many_does_not_replace_in_its_own_replacement,
    an_edit_makes_a_version_and_a_refused_one_does_not,
    an_edit_to_nothing_deletes_the_string,
    a_text_in_another_encoding_stays_in_it,
    the_error_for_a_missing_file_suggests_similar_names,
];

async fn edited(on: On, before: &str, old: &str, new: &str) -> String {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", before).await;
    let args = json!({"path": "/a.txt", "old_string": old, "new_string": new});
    let edit = workspace.ok("edit", args).await;
    let after = workspace.text("/a.txt").await;
    assert_eq!(edit["hash"], sha256_hex(&after));
    after
}

async fn refuses(on: On, tool: &str, before: &str, old: &str) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", before).await;
    let args = json!({"path": "/a.txt", "old_string": old, "new_string": "new"});
    workspace.refused(400, "VALIDATION_ERROR", tool, args).await;
    assert_eq!(workspace.text("/a.txt").await, before);
}

async fn an_edit_replaces_the_one_occurrence(on: On) {
    assert_eq!(edited(on, "one two three", "two", "2").await, "one 2 three");
}

async fn a_string_that_is_not_there_is_refused(on: On) {
    refuses(on, "edit", "one two three", "four").await;
}

async fn a_string_that_is_there_twice_is_refused(on: On) {
    refuses(on, "edit", "one two one", "one").await;
}

async fn an_empty_search_string_is_refused(on: On) {
    for tool in ["edit", "edit-many"] {
        refuses(on, tool, "text", "").await;
        refuses(on, tool, "", "").await;
    }
}

async fn an_edit_of_a_missing_file_is_not_found(on: On) {
    let workspace = on.workspace().await;
    for tool in ["edit", "edit-many"] {
        let args = json!({"path": "/missing.txt", "old_string": "a", "new_string": "b"});
        let body = workspace.refused(404, "NOT_FOUND", tool, args).await;
        assert_eq!(body["error"], "File not found: /missing.txt");
    }
}

async fn a_replacement_is_literal(on: On) {
    for new in ["$1", "$0 ${name} $$", "\\1 \\n", "%s {} {{0}}", "&", "old old"] {
        assert_eq!(edited(on, "<old>", "old", new).await, format!("<{new}>"));
    }
}

async fn a_search_string_is_literal(on: On) {
    assert_eq!(edited(on, "axb a.b", "a.b", "dot").await, "axb dot");
    assert_eq!(edited(on, "a (b|c)* d", "(b|c)*", "x").await, "a x d");
}

async fn an_edit_of_one_line_keeps_every_line_ending(on: On) {
    assert_eq!(edited(on, "one\r\ntwo\nthree\r\n\rfour", "two", "2").await, "one\r\n2\nthree\r\n\rfour");
}

async fn a_search_over_lines_finds_them_whatever_their_endings(on: On) {
    assert_eq!(edited(on, "one\r\ntwo\r\nthree\r\n", "one\ntwo\n", "1\n2\n").await, "1\r\n2\r\nthree\r\n");
    assert_eq!(edited(on, "one\ntwo\nthree\n", "one\r\ntwo\r\n", "1\r\n2\r\n").await, "1\n2\nthree\n");
}

async fn each_line_of_a_mixed_file_keeps_its_own_ending(on: On) {
    assert_eq!(edited(on, "a\r\nb\nc\r\nd", "a\nb\nc\n", "A\nB\nC\n").await, "A\r\nB\nC\r\nd");
}

async fn a_final_newline_stays_as_it_was(on: On) {
    assert_eq!(edited(on, "a\nlast", "last", "end").await, "a\nend");
    assert_eq!(edited(on, "a\nlast\n", "last", "end").await, "a\nend\n");
    assert_eq!(edited(on, "a\r\nlast\r\n", "last", "end").await, "a\r\nend\r\n");
}

async fn a_byte_order_mark_survives_an_edit(on: On) {
    assert_eq!(edited(on, "\u{feff}one two", "one", "1").await, "\u{feff}1 two");
}

async fn near_misses_are_not_edited(on: On) {
    refuses(on, "edit", "  indented line", "\tindented line").await;
    refuses(on, "edit", "Case", "case").await;
    refuses(on, "edit", "caf\u{e9}", "cafe\u{301}").await;
    refuses(on, "edit", "“quoted”", "\"quoted\"").await;
}

async fn edit_many_replaces_every_occurrence(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\r\ntwo one\none").await;
    let args = json!({"path": "/a.txt", "old_string": "one", "new_string": "$1"});
    let edit = workspace.ok("edit-many", args).await;
    assert_eq!(workspace.text("/a.txt").await, "$1\r\ntwo $1\n$1");
    assert_eq!(edit["hash"], sha256_hex("$1\r\ntwo $1\n$1"));
    for field in ["path", "file_id", "version_id"] {
        assert!(edit[field].is_string(), "{field} in {edit}");
    }
}

async fn edit_many_of_what_is_not_there_is_refused(on: On) {
    refuses(on, "edit-many", "one two three", "four").await;
}

async fn edit_many_does_not_replace_in_its_own_replacement(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "a a").await;
    let args = json!({"path": "/a.txt", "old_string": "a", "new_string": "aa"});
    workspace.ok("edit-many", args).await;
    assert_eq!(workspace.text("/a.txt").await, "aa aa");
}

async fn an_edit_makes_a_version_and_a_refused_one_does_not(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/a.txt", "one").await;
    let args = json!({"path": "/a.txt", "old_string": "one", "new_string": "two"});
    let edit = workspace.ok("edit", args.clone()).await;
    assert_eq!(edit["file_id"], file["file_id"]);
    workspace.refused(400, "VALIDATION_ERROR", "edit", args).await;
    let path = format!("/files/{}/versions", text_at(&file, "/file_id"));
    let versions = workspace.get(&path).await.success();
    let ids: Vec<_> = list_at(&versions, "/versions").iter().map(|version| version["id"].clone()).collect();
    assert_eq!(ids, [edit["version_id"].clone(), file["version_id"].clone()]);
}

async fn an_edit_to_nothing_deletes_the_string(on: On) {
    assert_eq!(edited(on, "one two", " two", "").await, "one");
}

async fn a_text_in_another_encoding_stays_in_it(on: On) {
    let workspace = on.workspace().await;
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let cases = [
        ("latin.txt", b"caf\xe9\r\nend\n".to_vec(), "café", "crème", b"cr\xe8me\r\nend\n".to_vec()),
        ("wide.txt", utf16("\u{feff}żółw\r\nend\r\n"), "żółw", "turtle 🐢", utf16("\u{feff}turtle 🐢\r\nend\r\n")),
    ];
    for (name, before, old, new, after) in cases {
        let write = json!({"path": name, "content": STANDARD.encode(&before), "encoding": "base64"});
        SYSTEM.ok(&workspace, "write_file", write).await;
        let path = format!("/{name}");
        assert!(workspace.text(&path).await.contains(old));
        let lines = FILE.ok(&workspace, "file.read", json!({"path": name})).await;
        assert!(text_at(&lines, "/content").contains(old), "{lines}");
        workspace.ok("edit", json!({"path": path, "old_string": old, "new_string": new})).await;
        let read = SYSTEM.ok(&workspace, "read_file", json!({"path": name, "encoding": "base64"})).await;
        assert_eq!(STANDARD.decode(text_at(&read, "/content")).unwrap(), after, "{name}");
    }
    // What the encoding cannot hold is refused, and nothing is lost.
    let kanji = json!({"path": "/latin.txt", "old_string": "crème", "new_string": "漢字"});
    workspace.refused(400, "VALIDATION_ERROR", "edit", kanji).await;
    let patch = "--- a/latin.txt\n+++ b/latin.txt\n@@ -1,2 +1,2 @@\n-crème\n+café\n end\n";
    CODING.ok(&workspace, "apply_patch", json!({"patchText": patch})).await;
    let read = SYSTEM.ok(&workspace, "read_file", json!({"path": "latin.txt", "encoding": "base64"})).await;
    assert_eq!(STANDARD.decode(text_at(&read, "/content")).unwrap(), b"caf\xe9\r\nend\n");
}

async fn the_error_for_a_missing_file_suggests_similar_names(on: On) {
    let workspace = on.workspace().await;
    for path in ["/src/config.rs", "/src/confirm.rs", "/src/unlike.txt"] {
        workspace.write(path, "x").await;
    }
    let refusal = workspace.refused(404, "NOT_FOUND", "read", json!({"path": "/src/Confg.rs"})).await;
    assert_eq!(refusal["error"], "File not found: /src/Confg.rs", "the specification gives the exact words");
    let read = json!({"path": "src/Confg.rs"});
    let message = FILE.refused(&workspace, 404, "file_not_found", "file.read", read.clone()).await;
    assert!(message.ends_with("\nDid you mean src/config.rs or src/confirm.rs?"), "{message}");
    let body = workspace.call_of("system", "read_file", &read).await.json();
    assert_eq!(body["error"]["details"]["near"], json!(["src/config.rs", "src/confirm.rs"]));
    let edit = json!({"filePath": "src/confirn.rs", "oldString": "x", "newString": "y"});
    let message = CODING.refused(&workspace, 404, "FILE_NOT_FOUND", "edit", edit).await;
    assert!(message.starts_with("File not found: src/confirn.rs\nDid you mean src/confirm.rs"), "{message}");
    let nothing = json!({"path": "nowhere/near.txt"});
    let message = FILE.refused(&workspace, 404, "file_not_found", "file.read", nothing).await;
    assert!(!message.contains("Did you mean"), "{message}");
}
