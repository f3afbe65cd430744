//! The `coding` toolset: specification 004.

use serde_json::json;

use crate::on::{On, list_at, text_at};
use crate::toolset::{CODING, SYSTEM};

on_every_backend![
    files_are_found_by_glob,
    a_file_is_read_as_the_specification_shows,
    long_files_are_read_in_pieces,
    a_write_shows_its_diff,
    an_edit_counts_its_replacements,
    several_edits_are_made_or_none,
    a_patch_changes_many_files_or_none,
    a_patch_in_the_other_format_is_applied,
    the_error_of_a_patch_that_does_not_fit_shows_the_difference,
    a_patch_cannot_leave_the_workspace,
    concurrent_patches_and_writes_are_all_kept,
    folders_are_listed,
    errors_are_the_sentences_of_the_specification,
];

async fn a_file_is_read_as_the_specification_shows(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/package.json", "{\n  \"name\": \"ekacode\",\n  \"version\": \"0.0.1\"\n}\n").await;
    let read = CODING.ok(&workspace, "read", json!({"filePath": "package.json"})).await;
    let content = "     1→{\n     2→  \"name\": \"ekacode\",\n     3→  \"version\": \"0.0.1\"\n     4→}";
    assert_eq!(read["content"], content);
    assert_eq!(read["metadata"], json!({"truncated": false, "lineCount": 4, "filePath": "package.json"}));
    for (offset, limit) in [(json!(1), json!(2)), (json!("1"), json!("2"))] {
        let part = CODING
            .ok(&workspace, "read", json!({"filePath": "./package.json", "offset": offset, "limit": limit}))
            .await;
        assert_eq!(part["content"], "     2→  \"name\": \"ekacode\",\n     3→  \"version\": \"0.0.1\"");
        assert_eq!(part["metadata"]["truncated"], true);
    }
    for wrong in [json!(-1), json!(1.5), json!("x"), json!([])] {
        CODING.refused(&workspace, 400, "INVALID_ARGUMENT", "read", json!({"filePath": "a", "offset": wrong})).await;
    }
    CODING.refused(&workspace, 400, "INVALID_ARGUMENT", "read", json!({"filePath": "package.json", "limit": 0})).await;
}

async fn long_files_are_read_in_pieces(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/lines.txt", &"x\n".repeat(3000)).await;
    let read = CODING.ok(&workspace, "read", json!({"filePath": "lines.txt"})).await;
    assert_eq!(text_at(&read, "/content").lines().count(), 2000);
    assert_eq!(read["metadata"], json!({"truncated": true, "lineCount": 3000, "filePath": "lines.txt"}));
    let rest = CODING.ok(&workspace, "read", json!({"filePath": "lines.txt", "offset": 2000})).await;
    assert_eq!(rest["metadata"]["truncated"], false);
    workspace.write("/wide.txt", &format!("{}\nend\n", "ä".repeat(60_000))).await;
    let wide = CODING.ok(&workspace, "read", json!({"filePath": "wide.txt"})).await;
    assert_eq!(wide["metadata"]["truncated"], true);
    let content = text_at(&wide, "/content");
    assert!(content.len() < 52_000 && content.ends_with("more bytes in this line)"), "{}", content.len());
}

async fn a_write_shows_its_diff(on: On) {
    let workspace = on.workspace().await;
    let args = json!({"filePath": "package.json", "content": "{\n  \"version\": \"0.0.1\"\n}\n"});
    let created = CODING.ok(&workspace, "write", args).await;
    assert_eq!((&created["success"], &created["created"]), (&json!(true), &json!(true)));
    let content = "{\n  \"name\": \"new-package\",\n  \"version\": \"0.0.1\"\n  \"dependencies\": {}\n}\n";
    let written = CODING.ok(&workspace, "write", json!({"filePath": "package.json", "content": content})).await;
    let diff = "--- a/package.json\n+++ b/package.json\n@@ -1,3 +1,5 @@\n {\n+  \"name\": \"new-package\",\n   \
                \"version\": \"0.0.1\"\n+  \"dependencies\": {}\n }\n";
    assert_eq!(text_at(&written, "/diff"), diff);
    assert_eq!((&written["filePath"], &written["created"]), (&json!("package.json"), &json!(false)));
    let same = CODING.ok(&workspace, "write", json!({"filePath": "package.json", "content": content})).await;
    assert_eq!(same["diff"], "");
}

async fn an_edit_counts_its_replacements(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/src/index.ts", "const x = 1\nconsole.log(x)\nconsole.log($1)\n").await;
    let args = json!({"filePath": "src/index.ts", "oldString": "const x = 1", "newString": "const x = $&2"});
    let edited = CODING.ok(&workspace, "edit", args).await;
    assert_eq!((&edited["success"], &edited["replacements"]), (&json!(true), &json!(1)));
    let all = json!({"filePath": "src/index.ts", "oldString": "console.log", "newString": "logger.info",
                     "replaceAll": true});
    assert_eq!(CODING.ok(&workspace, "edit", all).await["replacements"], 2);
    assert_eq!(workspace.text("/src/index.ts").await, "const x = $&2\nlogger.info(x)\nlogger.info($1)\n");
    let twice = json!({"filePath": "src/index.ts", "oldString": "logger", "newString": "x"});
    let message = CODING.refused(&workspace, 400, "STRING_NOT_UNIQUE", "edit", twice).await;
    assert!(message.contains('2') && message.contains('3'), "{message}");
    let empty = json!({"filePath": "src/index.ts", "oldString": "", "newString": "x"});
    CODING.refused(&workspace, 400, "INVALID_ARGUMENT", "edit", empty).await;
}

async fn several_edits_are_made_or_none(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.ts", "let a = 1;\nuse(a);\nuse(a);\n").await;
    let edits = json!([
        {"oldString": "let a", "newString": "let b"},
        {"oldString": "use(a)", "newString": "use(b)", "replaceAll": true}
    ]);
    let edited = CODING.ok(&workspace, "multiedit", json!({"filePath": "a.ts", "edits": edits})).await;
    assert_eq!(edited["totalReplacements"], 3);
    assert_eq!(edited["results"], json!([{"replacements": 1}, {"replacements": 2}]));
    assert_eq!(workspace.text("/a.ts").await, "let b = 1;\nuse(b);\nuse(b);\n");
    let edits = json!([{"oldString": "let b", "newString": "let c"}, {"oldString": "absent", "newString": ""}]);
    let args = json!({"filePath": "a.ts", "edits": edits});
    let message = CODING.refused(&workspace, 400, "STRING_NOT_FOUND", "multiedit", args).await;
    assert!(message.starts_with("String not found in file: \"absent...\""), "{message}");
    assert_eq!(workspace.text("/a.ts").await, "let b = 1;\nuse(b);\nuse(b);\n");
    CODING.refused(&workspace, 400, "INVALID_ARGUMENT", "multiedit", json!({"filePath": "a.ts", "edits": []})).await;
}

async fn a_patch_changes_many_files_or_none(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/old.txt", "line 1\nline 2\nline 3\n").await;
    workspace.write("/gone.txt", "bye\n").await;
    workspace.write("/from.txt", "one\ntwo\nthree\nfour\n").await;
    let before = workspace.read("/from.txt").await;
    let patch = "diff --git a/old.txt b/old.txt\n--- a/old.txt\n+++ b/old.txt\n@@ -1,3 +1,4 @@\n line 1\n line 2\n\
        -line 3\n+line 3 modified\n+line 4 added\n\
        diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n\
        diff --git a/new/made.txt b/new/made.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new/made.txt\n\
        @@ -0,0 +1 @@\n+hello\n\
        diff --git a/from.txt b/to/moved.txt\nsimilarity index 80%\nrename from from.txt\nrename to to/moved.txt\n\
        --- a/from.txt\n+++ b/to/moved.txt\n@@ -1,4 +1,4 @@\n one\n-two\n+2\n three\n four\n";
    let shown = CODING.ok(&workspace, "apply_patch", json!({"patchText": patch, "dryRun": true})).await;
    assert!(text_at(&shown, "/diff").contains("+line 4 added"), "{shown}");
    assert_eq!(workspace.paths_below("/").await, ["/from.txt", "/gone.txt", "/old.txt"]);
    let applied = CODING.ok(&workspace, "apply_patch", json!({"patchText": patch})).await;
    let files = json!([
        {"path": "old.txt", "action": "update"}, {"path": "gone.txt", "action": "delete"},
        {"path": "new/made.txt", "action": "add"}, {"path": "to/moved.txt", "action": "move"}
    ]);
    assert_eq!((&applied["filesModified"], &applied["files"]), (&json!(4), &files));
    assert_eq!(workspace.text("/old.txt").await, "line 1\nline 2\nline 3 modified\nline 4 added\n");
    assert_eq!(workspace.text("/new/made.txt").await, "hello\n");
    assert_eq!(workspace.text("/to/moved.txt").await, "one\n2\nthree\nfour\n");
    let paths = ["/new", "/new/made.txt", "/old.txt", "/to", "/to/moved.txt"];
    assert_eq!(workspace.paths_below("/").await, paths);
    assert_ne!(workspace.read("/to/moved.txt").await["hash"], before["hash"]);
    // One commit, which can be taken back as a whole.
    let commits = workspace.get("/commits").await.success();
    let newest = text_at(&list_at(&commits, "/commits")[0], "/id").to_owned();
    workspace.post(&format!("/commits/{newest}/undo"), &json!({})).await.success();
    assert_eq!(workspace.text("/old.txt").await, "line 1\nline 2\nline 3\n");
    assert_eq!(workspace.text("/gone.txt").await, "bye\n");
    assert_eq!(workspace.text("/from.txt").await, "one\ntwo\nthree\nfour\n");
    // Any part that does not fit keeps the rest from being applied.
    workspace.write("/gone.txt", "something else\n").await;
    let message = CODING.refused(&workspace, 400, "STRING_NOT_FOUND", "apply_patch", json!({"patchText": patch})).await;
    assert!(message.starts_with("gone.txt: hunk 1") && message.contains("Nothing was written"), "{message}");
    assert_eq!(workspace.text("/old.txt").await, "line 1\nline 2\nline 3\n");
}

async fn a_patch_in_the_other_format_is_applied(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.py", "def f():\n    return 1\n\ndef g():\n    return 1\n").await;
    workspace.write("/b.txt", "x\n").await;
    let patch = "*** Begin Patch\n*** Update File: a.py\n@@ def g():\n-    return 1\n+    return 2\n\
        *** Add File: c/d.txt\n+new\n*** Delete File: b.txt\n*** End Patch\n";
    let applied = CODING.ok(&workspace, "apply_patch", json!({"patchText": patch})).await;
    assert_eq!(applied["filesModified"], 3, "{applied}");
    assert_eq!(workspace.text("/a.py").await, "def f():\n    return 1\n\ndef g():\n    return 2\n");
    assert_eq!(workspace.text("/c/d.txt").await, "new\n");
    assert_eq!(workspace.paths_below("/").await, ["/a.py", "/c", "/c/d.txt"]);
}

async fn the_error_of_a_patch_that_does_not_fit_shows_the_difference(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "alpha\nbeta\ngamma\n").await;
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n alpha\n-betta\n+delta\n gamma\n";
    let message = CODING.refused(&workspace, 400, "STRING_NOT_FOUND", "apply_patch", json!({"patchText": patch})).await;
    assert!(message.contains("a.txt") && message.contains("hunk 1") && message.contains("beta"), "{message}");
    let done = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n alpha\n-bbb\n+beta\n gamma\n";
    let message = CODING.refused(&workspace, 409, "ALREADY_APPLIED", "apply_patch", json!({"patchText": done})).await;
    assert!(message.contains("already applied"), "{message}");
    let message =
        CODING.refused(&workspace, 400, "INVALID_PATCH", "apply_patch", json!({"patchText": "no patch"})).await;
    assert!(message.contains("patch line"), "{message}");
    let absent = "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-x\n+y\n";
    let message = CODING.refused(&workspace, 404, "FILE_NOT_FOUND", "apply_patch", json!({"patchText": absent})).await;
    assert_eq!(message, "File not found: b.txt\nDid you mean a.txt?");
    assert_eq!(workspace.text("/a.txt").await, "alpha\nbeta\ngamma\n");
}

async fn a_patch_cannot_leave_the_workspace(on: On) {
    let workspace = on.workspace().await;
    for name in ["../evil.txt", "/../evil.txt", "a/../../evil.txt"] {
        let patch = format!("*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n");
        CODING.refused(&workspace, 400, "PATH_OUTSIDE_WORKSPACE", "apply_patch", json!({"patchText": patch})).await;
    }
    let patch = "--- /dev/null\n+++ b/../../evil.txt\n@@ -0,0 +1 @@\n+x\n";
    CODING.refused(&workspace, 400, "PATH_OUTSIDE_WORKSPACE", "apply_patch", json!({"patchText": patch})).await;
    assert!(workspace.paths_below("/").await.is_empty());
}

async fn concurrent_patches_and_writes_are_all_kept(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/list.txt", "begin\nend\n").await;
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..12 {
        let workspace = workspace.clone();
        writers.spawn(async move {
            let patch = format!("--- a/list.txt\n+++ b/list.txt\n@@ ... @@\n begin\n+entry {number}\n");
            CODING.ok(&workspace, "apply_patch", json!({"patchText": patch})).await;
        });
    }
    writers.join_all().await;
    let text = workspace.text("/list.txt").await;
    for number in 0..12 {
        assert!(text.contains(&format!("entry {number}\n")), "{number} is lost: {text}");
    }
}

async fn folders_are_listed(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/src/index.ts", "").await;
    workspace.write("/src/components/Button.tsx", "").await;
    let listed = CODING.ok(&workspace, "ls", json!({"dirPath": "src", "recursive": true})).await;
    let entries = json!([
        {"name": "components", "path": "src/components", "type": "directory"},
        {"name": "Button.tsx", "path": "src/components/Button.tsx", "type": "file"},
        {"name": "index.ts", "path": "src/index.ts", "type": "file"}
    ]);
    assert_eq!(listed, json!({"entries": entries, "count": 3}));
    assert_eq!(CODING.ok(&workspace, "ls", json!({"dirPath": "src"})).await["count"], 2);
    let missing = CODING.ok(&workspace, "ls", json!({"dirPath": "nowhere"})).await;
    assert_eq!(missing, json!({"entries": [], "count": 0, "missing": true}));
}

async fn files_are_found_by_glob(on: On) {
    let workspace = on.workspace().await;
    for path in ["/a.ts", "/src/b.ts", "/src/deep/c.test.ts", "/src/d.js"] {
        workspace.write(path, "").await;
    }
    for (pattern, files) in [
        ("**/*.ts", &["a.ts", "src/b.ts", "src/deep/c.test.ts"][..]),
        ("src/**/*", &["src/b.ts", "src/d.js", "src/deep/c.test.ts"]),
        ("**/*.test.ts", &["src/deep/c.test.ts"]),
        ("*/*.ts", &["src/b.ts"]),
        ("*.ts", &["a.ts"]),
        ("**/*.{js,test.ts}", &["src/d.js", "src/deep/c.test.ts"]),
        ("nothing/*", &[]),
    ] {
        let found = CODING.ok(&workspace, "glob", json!({"pattern": pattern})).await;
        assert_eq!(found, json!({"files": files, "count": files.len(), "pattern": pattern}));
    }
    let part = CODING.ok(&workspace, "glob", json!({"pattern": "**/*", "limit": "2"})).await;
    assert_eq!((&part["count"], &part["total"]), (&json!(2), &json!(4)));
    for pattern in ["[a", &format!("{}a{}", "{".repeat(1_000), "}".repeat(1_000)), &"a".repeat(5_000)] {
        CODING.refused(&workspace, 400, "INVALID_PATTERN", "glob", json!({"pattern": pattern})).await;
    }
    for limit in [0, 1001] {
        CODING.refused(&workspace, 400, "INVALID_ARGUMENT", "glob", json!({"pattern": "*", "limit": limit})).await;
    }
}

async fn errors_are_the_sentences_of_the_specification(on: On) {
    let workspace = on.workspace().await;
    let missing = CODING.refused(&workspace, 404, "FILE_NOT_FOUND", "read", json!({"filePath": "src/a.ts"})).await;
    assert_eq!(missing, "File not found: src/a.ts");
    let missing = CODING.refused(&workspace, 404, "FILE_NOT_FOUND", "read", json!({"filePath": "./src/a.ts"})).await;
    assert_eq!(missing, "File not found: ./src/a.ts", "as it was named");
    let outside =
        CODING.refused(&workspace, 400, "PATH_OUTSIDE_WORKSPACE", "read", json!({"filePath": "../a.ts"})).await;
    assert_eq!(outside, "Path outside workspace: ../a.ts");
    let bytes = json!({"path": "a.bin", "content": "AP8A", "encoding": "base64"});
    SYSTEM.ok(&workspace, "write_file", bytes).await;
    let binary = CODING.refused(&workspace, 400, "BINARY_FILE", "read", json!({"filePath": "a.bin"})).await;
    assert!(binary.starts_with("Cannot read binary file: a.bin\n"), "{binary}");
    workspace.write("/a.txt", "x").await;
    let args = json!({"filePath": "a.txt", "oldString": "y".repeat(60), "newString": ""});
    let absent = CODING.refused(&workspace, 400, "STRING_NOT_FOUND", "edit", args).await;
    assert!(absent.starts_with(&format!("String not found in file: \"{}...\"", "y".repeat(50))), "{absent}");
    let viewer = on.account().await;
    workspace.add_member(&viewer, "viewer").await;
    let args = json!({"filePath": "a.txt", "content": "y"});
    let denied = CODING.refused(&workspace.for_user(&viewer), 403, "PERMISSION_DENIED", "write", args).await;
    assert!(denied.starts_with("Permission denied: Cannot write a.txt\n"), "{denied}");
    assert!(denied.contains("editor"), "the way out is named: {denied}");
}
