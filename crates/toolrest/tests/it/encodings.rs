//! Encodings of texts: all tools agree on what is text, and bytes are kept.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolrest_testkit::Workspace;

use crate::on::{On, list_at, text_at};
use crate::toolset::{CODING, FILE, SYSTEM};

on_every_backend![
    every_tool_agrees_on_what_is_text,
    an_edit_keeps_the_encoding,
    a_whole_text_is_written_in_the_encoding_of_the_file,
    what_the_workspace_toolset_reads_it_writes_back_byte_for_byte,
    base64_writes_exactly_the_given_bytes,
    a_text_that_the_encoding_cannot_hold_is_refused;
    base64_over_json_is_refused_if_the_bytes_would_change
];

/// A file, and the text that it is if it is one. The first line of each text begins with `first`.
struct Sample {
    name: &'static str,
    bytes: Vec<u8>,
    text: Option<&'static str>,
}

/// The first line of the large samples, of which the whole text is not compared.
const LARGE_LINE: &str = "first of many lines, each of which is long enough that there need not be too many of them to \
    make a file of several megabytes, which would take long to search";

fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    format!("\u{feff}{text}").encode_utf16().flat_map(unit).collect()
}

fn samples() -> Vec<Sample> {
    let late_nul = [&b"first\n".repeat(12_000)[..], b"\0"].concat();
    // Large enough to be read piece by piece.
    let large = format!("{LARGE_LINE}\n").repeat((9 << 19) / LARGE_LINE.len());
    let large_latin1 = [large.as_bytes(), b"caf\xe9\n"].concat();
    let large_late_nul = [large.as_bytes(), b"\0"].concat();
    vec![
        Sample { name: "utf8", bytes: "first grüße\n".into(), text: Some("first grüße\n") },
        Sample { name: "utf8-mark", bytes: "\u{feff}first ß\n".into(), text: Some("\u{feff}first ß\n") },
        Sample { name: "utf16le", bytes: utf16("first 漢\n", u16::to_le_bytes), text: Some("\u{feff}first 漢\n") },
        Sample { name: "utf16be", bytes: utf16("first 🐢\n", u16::to_be_bytes), text: Some("\u{feff}first 🐢\n") },
        Sample { name: "latin1", bytes: b"first caf\xe9\n".into(), text: Some("first café\n") },
        Sample { name: "windows1252", bytes: b"first \x93q\x94 \x80\n".into(), text: Some("first “q” €\n") },
        Sample { name: "mixed", bytes: b"first caf\xe9 \xc3\xa9\n".into(), text: Some("first café Ã©\n") },
        Sample { name: "png", bytes: b"\x89PNG\r\n\x1a\nfirst\n".into(), text: None },
        Sample { name: "jpeg", bytes: b"\xff\xd8\xff first\n".into(), text: None },
        Sample { name: "nul", bytes: b"first\0\n".into(), text: None },
        Sample { name: "late-nul", bytes: late_nul, text: None },
        Sample { name: "control", bytes: b"first \x01 \xe9\n".into(), text: None },
        Sample { name: "large-latin1", bytes: large_latin1, text: Some("") },
        Sample { name: "large-late-nul", bytes: large_late_nul, text: None },
    ]
}

async fn write_bytes(workspace: &Workspace, name: &str, bytes: &[u8]) -> Value {
    let args = json!({"path": name, "content": STANDARD.encode(bytes), "encoding": "base64"});
    SYSTEM.ok(workspace, "write_file", args).await
}

#[track_caller]
fn decoded(read: &Value) -> Vec<u8> {
    STANDARD.decode(text_at(read, "/content")).unwrap()
}

/// The bytes of a file.
pub async fn bytes_of(workspace: &Workspace, name: &str) -> Vec<u8> {
    let path = name.trim_start_matches('/');
    decoded(&SYSTEM.ok(workspace, "read_file", json!({"path": path, "encoding": "base64"})).await)
}

async fn what_the_workspace_toolset_reads_it_writes_back_byte_for_byte(on: On) {
    let workspace = on.workspace().await;
    for Sample { name, bytes, .. } in samples().into_iter().filter(|sample| sample.text.is_some()) {
        write_bytes(&workspace, name, &bytes).await;
        let read = workspace.read(&format!("/{name}")).await;
        let text = text_at(&read, "/content");
        workspace.write(&format!("/{name}"), text).await;
        assert!(bytes_of(&workspace, name).await == bytes, "{name}");
        let args = json!({"path": format!("/{name}"), "content": text, "last_read_hash": read["hash"]});
        workspace.ok("write", args).await;
        assert!(bytes_of(&workspace, name).await == bytes, "{name}");
    }
    workspace.write("/new", "\u{feff}first\n").await;
    assert_eq!(bytes_of(&workspace, "new").await, "\u{feff}first\n".as_bytes());
}

async fn every_tool_agrees_on_what_is_text(on: On) {
    for Sample { name, bytes, text } in samples() {
        let workspace = on.workspace().await;
        write_bytes(&workspace, name, &bytes).await;
        assert_eq!(bytes_of(&workspace, name).await, bytes, "{name}");
        let listing = workspace.ok("ls", json!({})).await;
        // A listing looks at the first 4 MB of a file.
        if bytes.len() < 4 << 20 {
            let file_type = if text.is_some() { "Document" } else { "File" };
            assert_eq!(text_at(&listing, "/entries/0/file_type"), file_type, "{name}");
        }
        let listed = SYSTEM.ok(&workspace, "list_directory", json!({"path": "."})).await;
        assert_eq!(listed["entries"][0]["size"], bytes.len(), "{name}");
        let line = json!({"path": name, "limit": 1});
        let page = json!({"filePath": name, "limit": 1});
        let grep = workspace.ok("grep", json!({"pattern": "^first"})).await;
        let search = FILE.ok(&workspace, "file.search", json!({"pattern": "^first", "max_results": 1})).await;
        let replace = json!({"filePath": name, "oldString": "not there", "newString": ""});
        let Some(text) = text else {
            workspace.refused(400, "VALIDATION_ERROR", "read", json!({"path": name})).await;
            SYSTEM.refused(&workspace, 400, "BINARY_FILE", "read_file", json!({"path": name})).await;
            FILE.refused(&workspace, 400, "binary_file", "file.read", line).await;
            CODING.refused(&workspace, 400, "BINARY_FILE", "read", page).await;
            CODING.refused(&workspace, 400, "BINARY_FILE", "edit", replace).await;
            assert_eq!((list_at(&grep, "/matches").len(), &grep["skipped"]["binary"]), (0, &json!(1)), "{name}");
            assert_eq!((list_at(&search, "/matches").len(), &search["skipped"]["binary"]), (0, &json!(1)), "{name}");
            continue;
        };
        if !text.is_empty() {
            assert_eq!(workspace.ok("read", json!({"path": name})).await["content"], text, "{name}");
            let read = SYSTEM.ok(&workspace, "read_file", json!({"path": name})).await;
            assert_eq!((&read["content"], &read["size"]), (&json!(text), &json!(bytes.len())), "{name}");
        }
        let first = text.trim_start_matches('\u{feff}').lines().next().unwrap_or(LARGE_LINE);
        assert_eq!(FILE.ok(&workspace, "file.read", line).await["content"], format!("     1\t{first}"), "{name}");
        assert_eq!(CODING.ok(&workspace, "read", page).await["content"], format!("     1→{first}"), "{name}");
        if !text.is_empty() {
            CODING.refused(&workspace, 400, "STRING_NOT_FOUND", "edit", replace).await;
        }
        assert_eq!(grep["matches"][0]["line_text"], first, "{name}: {grep}");
        assert_eq!(search["matches"][0]["content"], first, "{name}: {search}");
        assert_eq!(grep["skipped"], Value::Null, "{name}");
    }
}

async fn an_edit_keeps_the_encoding(on: On) {
    let workspace = on.workspace().await;
    for Sample { name, bytes, .. } in
        samples().into_iter().filter(|sample| sample.text.is_some_and(|text| !text.is_empty()))
    {
        write_bytes(&workspace, name, &bytes).await;
        let args = json!({"filePath": name, "oldString": "first", "newString": "FIRST", "replaceAll": true});
        CODING.ok(&workspace, "edit", args).await;
        workspace.ok("edit-many", json!({"path": name, "old_string": "FIRST", "new_string": "first"})).await;
        let args = json!({"path": name, "patches": []});
        FILE.refused(&workspace, 400, "invalid_argument", "file.patch", args).await;
        assert_eq!(bytes_of(&workspace, name).await, bytes, "{name}");
    }
}

async fn a_whole_text_is_written_in_the_encoding_of_the_file(on: On) {
    let workspace = on.workspace().await;
    let utf16 = |text: &str| utf16(text, u16::to_le_bytes);
    let cases: [(&str, Vec<u8>, Vec<u8>); 4] = [
        ("latin1", b"caf\xe9".into(), b"th\xe9 \x80".into()),
        ("utf16", utf16("café"), utf16("thé €")),
        ("mark", "\u{feff}café".into(), "\u{feff}thé €".into()),
        ("utf8", "café".into(), "thé €".into()),
    ];
    for (name, before, after) in cases {
        write_bytes(&workspace, name, &before).await;
        workspace.write(&format!("/{name}"), "thé €").await;
        assert_eq!(bytes_of(&workspace, name).await, after, "write of {name}");
        write_bytes(&workspace, name, &before).await;
        FILE.ok(&workspace, "file.write", json!({"path": name, "content": "thé €"})).await;
        assert_eq!(bytes_of(&workspace, name).await, after, "file.write of {name}");
        write_bytes(&workspace, name, &before).await;
        let written = SYSTEM.ok(&workspace, "write_file", json!({"path": name, "content": "thé €"})).await;
        assert_eq!((bytes_of(&workspace, name).await, &written["size"]), (after.clone(), &json!(after.len())));
        write_bytes(&workspace, name, &before).await;
        CODING.ok(&workspace, "write", json!({"filePath": name, "content": "thé €"})).await;
        assert_eq!(bytes_of(&workspace, name).await, after, "write of {name}");
    }
    let read = workspace.ok("read", json!({"path": "/latin1"})).await;
    let args = json!({"path": "/latin1", "content": "caf\u{e9}", "last_read_hash": read["hash"]});
    workspace.ok("write", args.clone()).await;
    workspace.refused(409, "CONFLICT", "write", args).await;
    assert_eq!(bytes_of(&workspace, "latin1").await, b"caf\xe9");
}

async fn base64_writes_exactly_the_given_bytes(on: On) {
    let workspace = on.workspace().await;
    for Sample { name: before, bytes: held, .. } in samples().into_iter().filter(|sample| sample.bytes.len() < 100) {
        for Sample { name, bytes, .. } in samples().into_iter().filter(|sample| sample.bytes.len() < 100) {
            write_bytes(&workspace, "file", &held).await;
            assert_eq!(write_bytes(&workspace, "file", &bytes).await["size"], bytes.len());
            assert_eq!(bytes_of(&workspace, "file").await, bytes, "{name} over {before}");
        }
    }
}

async fn a_text_that_the_encoding_cannot_hold_is_refused(on: On) {
    let workspace = on.workspace().await;
    write_bytes(&workspace, "latin1", b"caf\xe9").await;
    let refused =
        workspace.refused(400, "VALIDATION_ERROR", "write", json!({"path": "/latin1", "content": "漢"})).await;
    assert!(text_at(&refused, "/error").contains("Latin-1"), "{refused}");
    let args = json!({"path": "latin1", "content": "漢"});
    FILE.refused(&workspace, 400, "invalid_argument", "file.write", args).await;
    assert_eq!(bytes_of(&workspace, "latin1").await, b"caf\xe9");
}

async fn base64_over_json_is_refused_if_the_bytes_would_change(on: On) {
    let workspace = on.workspace().await;
    workspace.ok("write", json!({"path": "/c", "content": {"a": 1}, "file_type": "canvas"})).await;
    let compact = json!({"path": "c", "content": STANDARD.encode(r#"{"a":2}"#), "encoding": "base64"});
    SYSTEM.refused(&workspace, 400, "INVALID_ARGUMENT", "write_file", compact).await;
    write_bytes(&workspace, "c", b"{\n  \"a\": 2\n}\n").await;
    assert_eq!(workspace.ok("read", json!({"path": "/c"})).await["content"], json!({"a": 2}));
    workspace.ok("write", json!({"path": "/d", "content": {"text": "x", "more": 1}})).await;
    write_bytes(&workspace, "d", b"grow").await;
    assert_eq!(workspace.ok("read", json!({"path": "/d"})).await["content"], json!({"text": "grow", "more": 1}));
    assert_eq!(bytes_of(&workspace, "d").await, b"grow");
}
