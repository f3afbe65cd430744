//! The toolset `agent`: editing, writing and patching.

use serde_json::{Value, json};

use crate::agent::projects::{self, RETURNS};
use crate::agent::{hash, refused, text, write_bytes};
use crate::on::{On, list_at, text_at};

on_every_backend![
    an_edit_needs_one_place_or_a_line,
    edits_of_several_files_are_made_or_refused_together,
    texts_are_found_loosely_where_the_place_is_unique,
    the_same_edit_again_changes_nothing,
    an_edit_of_an_older_version_is_refused_with_what_changed,
    only_the_edited_bytes_change,
    files_are_written_and_replaced,
    a_patch_adds_moves_and_deletes_in_one_commit,
];

async fn commits(workspace: &toolrest_testkit::Workspace) -> Vec<Value> {
    list_at(&workspace.get("/commits").await.success(), "/commits").to_vec()
}

async fn an_edit_needs_one_place_or_a_line(on: On) {
    let workspace = on.workspace().await;
    projects::write(&workspace, &projects::c_library()).await;
    let before = hash(&workspace, "/jsmn.h").await;
    let edit = |path: &str| json!({"edits": [{"path": path, "old": "return JSMN_ERROR_PART;", "new": "return JSMN_ERROR_INVAL;"}]});
    let error = refused(&workspace, "not_unique", "edit", edit("jsmn.h")).await;
    assert_eq!(
        error,
        "error not_unique: jsmn.h: old occurs 3 times: lines 169, 262, 447\nnext: \"path\":\"jsmn.h:262\", more lines in old, or \"all\":true"
    );
    assert_eq!(hash(&workspace, "/jsmn.h").await, before);
    let edited = text(&workspace, "edit", edit("jsmn.h:262")).await;
    let after = hash(&workspace, "/jsmn.h").await;
    let commit = commit_of(&edited);
    assert_eq!(
        edited,
        format!(
            "== edited 1 file, commit {commit}\njsmn.h #{after}\n@@ 262\n-  return JSMN_ERROR_PART;\n+  return JSMN_ERROR_INVAL;"
        )
    );
    let newest = commits(&workspace).await[0]["id"].as_str().unwrap().replace('-', "");
    assert!(newest.ends_with(&commit), "{newest} {commit}");
    let lines: Vec<String> = workspace.text("/jsmn.h").await.lines().map(str::to_owned).collect();
    for line in RETURNS {
        let expected = if line == 262 { "  return JSMN_ERROR_INVAL;" } else { "  return JSMN_ERROR_PART;" };
        assert_eq!(lines[line - 1], expected, "{line}");
    }
    let all =
        json!({"file_path": "jsmn.h", "old_string": "JSMN_ERROR_PART", "new_string": "PART", "replace_all": "true"});
    let all = text(&workspace, "edit", all).await;
    assert_eq!(all.matches("\n@@ ").count(), 3, "{all}");
}

/// Returns the commit that an answer names.
pub fn commit_of(text: &str) -> String {
    let after = text.split("commit ").nth(1).unwrap_or_else(|| panic!("no commit in {text}"));
    after.chars().take_while(char::is_ascii_hexdigit).collect()
}

async fn edits_of_several_files_are_made_or_refused_together(on: On) {
    let workspace = on.workspace().await;
    projects::write(&workspace, &projects::c_library()).await;
    let (before, made) = (hash(&workspace, "/README.md").await, commits(&workspace).await.len());
    let readme = json!({"path": "README.md", "old": "A parser.", "new": "A small parser."});
    let wrong = json!({"path": "jsmn.h", "old": "  parser->pos = start;\n\treturn JSMN_ERROR_PARTS;", "new": "x"});
    let error = refused(&workspace, "no_match", "edit", json!({"edits": [readme, wrong]})).await;
    let start =
        "error no_match: edit 2 of 2, jsmn.h: old is not in the file. Nothing was changed\nclosest, lines 261-262 #";
    assert!(error.starts_with(start), "{error}");
    assert!(
        error.contains("\n261\t  parser->pos = start;\n262\t  return JSMN_ERROR_PART;\ndiffers: line 262"),
        "{error}"
    );
    assert!(error.ends_with("\nnext: copy old from these lines; send both edits"), "{error}");
    assert_eq!((hash(&workspace, "/README.md").await, commits(&workspace).await.len()), (before, made));
    let right = json!({"path": "jsmn.h", "old": "  parser->pos = start;", "new": "  parser->pos = begin;"});
    let second = json!({"path": "jsmn.h", "old": "parser->pos = begin;", "new": "parser->pos = begin; // moved"});
    let edited = text(&workspace, "edit", json!({"edits": [readme, right, second]})).await;
    assert!(edited.starts_with("== edited 2 files, commit "), "{edited}");
    assert!(edited.contains("\n+  parser->pos = begin; // moved"), "edits see what earlier ones did: {edited}");
    assert_eq!(commits(&workspace).await.len(), made + 1);
    let missing = json!({"edits": [{"path": "READM.md", "old": "a", "new": "b"}]});
    assert!(refused(&workspace, "not_found", "edit", missing).await.contains("similar: README.md"));
    let empty = refused(&workspace, "bad_args", "edit", json!({"path": "README.md", "old": "", "new": "b"})).await;
    assert!(empty.contains("next: write "), "{empty}");
}

async fn texts_are_found_loosely_where_the_place_is_unique(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.c", "int a;\n\tif (x) {\n\t\tone();\n\t}\nint b;  \n").await;
    let numbered = json!({"edits": [{"path": "a.c", "old": "3\t\t\tone();\n4\t\t}", "new": "3\t\t\ttwo();\n4\t\t}"}]});
    let edited = text(&workspace, "edit", numbered).await;
    assert!(edited.contains("(matched ignoring line numbers)\n@@ 3\n-\t\tone();\n+\t\ttwo();"), "{edited}");
    let shifted = json!({"edits": [{"path": "a.c", "old": "if (x) {\n\ttwo();\n}", "new": "if (y) {\n\tthree();\n}"}]});
    let edited = text(&workspace, "edit", shifted).await;
    assert!(edited.contains("(matched ignoring indentation)"), "{edited}");
    let blanks = json!({"edits": [{"path": "a.c", "old": "int b;\n", "new": "int c;\n"}]});
    assert!(text(&workspace, "edit", blanks).await.contains("(matched ignoring trailing blanks)"));
    assert_eq!(workspace.text("/a.c").await, "int a;\n\tif (y) {\n\t\tthree();\n\t}\nint c;\n");
}

async fn the_same_edit_again_changes_nothing(on: On) {
    let workspace = on.workspace().await;
    projects::write(&workspace, &projects::c_library()).await;
    let edit = json!({"path": "jsmn.h", "old": "parser->pos = start;", "new": "parser->pos = begin;"});
    let commit = commit_of(&text(&workspace, "edit", edit.clone()).await);
    let made = commits(&workspace).await.len();
    let again = text(&workspace, "edit", edit).await;
    let expected = format!("== nothing to change: jsmn.h:261 already holds the new text (commit {commit}, edit, ");
    assert!(again.starts_with(&expected), "{again}");
    assert_eq!(commits(&workspace).await.len(), made);
}

async fn an_edit_of_an_older_version_is_refused_with_what_changed(on: On) {
    let workspace = on.workspace().await;
    projects::write(&workspace, &projects::c_library()).await;
    let seen = hash(&workspace, "/jsmn.h").await;
    let other = json!({"path": "jsmn.h:262", "old": "return JSMN_ERROR_PART;", "new": "return 0;"});
    let commit = commit_of(&text(&workspace, "edit", other).await);
    let now = hash(&workspace, "/jsmn.h").await;
    for (tool, args) in [
        ("edit", json!({"path": "jsmn.h", "old": "parser->pos = start;", "new": "x", "if_hash": seen})),
        ("write", json!({"path": "jsmn.h", "content": "x", "if_hash": format!("#{seen}")})),
    ] {
        let error = refused(&workspace, "stale", tool, args).await;
        let start = format!("error stale: jsmn.h is #{now}, not #{seen}: line 262 changed by commit {commit} (edit, ");
        assert!(error.starts_with(&start) && error.ends_with("\nnext: read \"jsmn.h:262\""), "{error}");
    }
    assert_eq!(hash(&workspace, "/jsmn.h").await, now);
    let args = json!({"path": "jsmn.h", "old": "parser->pos = start;", "new": "x", "if_hash": now});
    text(&workspace, "edit", args).await;
}

async fn only_the_edited_bytes_change(on: On) {
    let workspace = on.workspace().await;
    write_bytes(&workspace, "crlf.txt", b"one\r\ntwo\r\nthree\n").await;
    write_bytes(&workspace, "latin.txt", b"gr\xfc\xdfe\ntwo\n").await;
    write_bytes(&workspace, "wide.txt", b"\xff\xfea\0\n\0t\0w\0o\0").await;
    for path in ["crlf.txt", "latin.txt", "wide.txt"] {
        text(&workspace, "edit", json!({"path": path, "old": "two", "new": "2"})).await;
    }
    let bytes = async |path: &str| {
        let args = json!({"path": path, "encoding": "base64"});
        let read = workspace.call_of("system", "read_file", &args).await.success();
        base64::Engine::decode(&base64::prelude::BASE64_STANDARD, text_at(&read, "/value/content")).unwrap()
    };
    assert_eq!(bytes("crlf.txt").await, b"one\r\n2\r\nthree\n");
    assert_eq!(bytes("latin.txt").await, b"gr\xfc\xdfe\n2\n");
    assert_eq!(bytes("wide.txt").await, b"\xff\xfea\0\n\x002\0");
    let lacks = json!({"path": "latin.txt", "old": "2", "new": "漢"});
    refused(&workspace, "bad_args", "edit", lacks).await;
}

async fn files_are_written_and_replaced(on: On) {
    let workspace = on.workspace().await;
    let created =
        text(&workspace, "write", json!({"path": "src/a.rs", "content": "one\ntwo\n", "if_hash": "new"})).await;
    let (commit, now) = (commit_of(&created), hash(&workspace, "/src/a.rs").await);
    assert_eq!(created, format!("== created src/a.rs 2 lines #{now}, commit {commit}"));
    let replaced = text(&workspace, "write", json!({"file": "./src/a.rs", "content": "one\n2\n3\n"})).await;
    assert!(replaced.starts_with("== replaced src/a.rs 3 lines (was 2: +2 -1) #"), "{replaced}");
    let now = hash(&workspace, "/src/a.rs").await;
    let exists =
        refused(&workspace, "exists", "write", json!({"path": "src/a.rs", "content": "", "if_hash": "new"})).await;
    assert_eq!(
        exists,
        format!("error exists: src/a.rs, 3 lines #{now}\nnext: edit it, or leave out if_hash to replace all of it")
    );
    write_bytes(&workspace, "crlf.txt", b"one\r\ntwo\r\n").await;
    let lf = text(&workspace, "write", json!({"path": "crlf.txt", "content": "1\n2\n"})).await;
    assert!(lf.ends_with("\n.. its lines ended in CRLF; now they end in LF, as sent"), "{lf}");
    assert_eq!(workspace.text("/crlf.txt").await, "1\n2\n");
    let folder = refused(&workspace, "is_folder", "write", json!({"path": "src", "content": ""})).await;
    assert!(folder.starts_with("error is_folder: src is a folder"), "{folder}");
}

async fn a_patch_adds_moves_and_deletes_in_one_commit(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/lib/a.js", "one\ntwo\n").await;
    workspace.write("/lib/c.js", "three\n").await;
    workspace.write("/lib/e.js", "four\n").await;
    let patch = "*** Begin Patch\n*** Update File: lib/a.js\n@@\n-two\n+2\n*** Add File: lib/b.js\n+new\n\
                 *** Update File: lib/c.js\n*** Move to: lib/d.js\n@@\n-three\n+3\n*** Delete File: lib/e.js\n*** End Patch\n";
    let made = commits(&workspace).await.len();
    let patched = text(&workspace, "apply_patch", json!({"input": patch})).await;
    let commit = commit_of(&patched);
    let (a, b, d) =
        (hash(&workspace, "/lib/a.js").await, hash(&workspace, "/lib/b.js").await, hash(&workspace, "/lib/d.js").await);
    assert!(patched.starts_with(&format!("== patched 4 files, commit {commit}\n")), "{patched}");
    for line in [
        format!("M lib/a.js #{a}"),
        format!("A lib/b.js #{b}"),
        format!("R lib/c.js -> lib/d.js #{d}"),
        "D lib/e.js".to_owned(),
    ] {
        assert!(patched.lines().any(|shown| shown == line), "{line}: {patched}");
    }
    assert_eq!(commits(&workspace).await.len(), made + 1);
    let wrong = "*** Begin Patch\n*** Update File: lib/a.js\n@@\n-nothing\n+x\n*** End Patch\n";
    let error = refused(&workspace, "no_match", "apply_patch", json!({"patch": wrong})).await;
    assert!(error.contains("next: copy the context from the file, and send the whole patch again"), "{error}");
    assert_eq!(hash(&workspace, "/lib/a.js").await, a);
}
