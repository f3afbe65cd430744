//! The `file` toolset: specification 001.

use std::{fs, path::Path};

use serde_json::{Value, json};
use toolrest_testkit::{Workspace, sha256_hex};

use crate::on::{On, list_at, text_at};
use crate::toolset::FILE;

on_every_backend![
    what_gitignore_leaves_out_is_counted,
    lines_are_found_with_context,
    files_are_listed_by_glob,
    a_search_stays_below_its_path,
    a_file_is_read_with_numbered_lines,
    a_file_is_written_with_its_folders,
    patches_are_applied_in_order_or_not_at_all,
    the_error_for_a_missing_text_shows_the_most_similar_one,
    fuzzy_patches_say_how_they_matched,
    files_are_deleted_and_folders_are_not,
    errors_have_the_codes_of_the_specification,
    a_dry_run_changes_nothing;
    json_files_are_seen_as_text,
];

async fn a_file_is_read_with_numbered_lines(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/src/a.py", "one\ntwo\r\nthree\n").await;
    let read = FILE.ok(&workspace, "file.read", json!({"path": "src/a.py"})).await;
    assert_eq!(read["content"], "     1\tone\n     2\ttwo\r\n     3\tthree");
    assert_eq!((&read["total_lines"], &read["truncated"]), (&json!(3), &json!(false)));
    assert_eq!(read["hash"], sha256_hex("one\ntwo\r\nthree\n"));
    let part = FILE.ok(&workspace, "file.read", json!({"path": "./src//a.py", "offset": 2, "limit": 1})).await;
    assert_eq!(part["content"], "     2\ttwo\r");
    assert_eq!((&part["total_lines"], &part["truncated"]), (&json!(3), &json!(true)));
    let rest = FILE.ok(&workspace, "file.read", json!({"path": "src/a.py", "offset": 3, "limit": 9})).await;
    assert_eq!((&rest["content"], &rest["truncated"]), (&json!("     3\tthree"), &json!(false)));
    workspace.write("/empty", "").await;
    let empty = FILE.ok(&workspace, "file.read", json!({"path": "empty"})).await;
    assert_eq!((&empty["content"], &empty["total_lines"]), (&json!(""), &json!(0)));
}

async fn a_file_is_written_with_its_folders(on: On) {
    let workspace = on.workspace().await;
    let written = FILE.ok(&workspace, "file.write", json!({"path": "a/b/c.txt", "content": "grüße\n"})).await;
    assert_eq!((&written["success"], &written["bytes_written"]), (&json!(true), &json!(8)));
    assert_eq!(workspace.text("/a/b/c.txt").await, "grüße\n");
    assert_eq!(written["diff"], "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1 @@\n+grüße\n");
    let again = FILE.ok(&workspace, "file.write", json!({"path": "a/b/c.txt", "content": "grüße\nan alle\n"})).await;
    let diff = "--- a/a/b/c.txt\n+++ b/a/b/c.txt\n@@ -1 +1,2 @@\n grüße\n+an alle\n";
    assert_eq!(again["diff"], diff);
    let stale = json!({"path": "a/b/c.txt", "content": "x", "expected_hash": written["hash"]});
    FILE.refused(&workspace, 409, "conflict", "file.write", stale).await;
    let fresh = json!({"path": "a/b/c.txt", "content": "x", "expected_hash": again["hash"]});
    FILE.ok(&workspace, "file.write", fresh).await;
    FILE.refused(&workspace, 400, "is_directory", "file.write", json!({"path": "a/b", "content": ""})).await;
}

async fn patches_are_applied_in_order_or_not_at_all(on: On) {
    let workspace = on.workspace().await;
    let text = "DEBUG = True\r\ndef connect():\r\n    return db.connect(timeout=30)\r\n";
    workspace.write("/src/config.py", text).await;
    let patches = json!([
        {"find": "DEBUG = True", "replace": "DEBUG = False"},
        {"find": "def connect():\n    return db.connect(timeout=30)",
         "replace": "def connect():\n    return db.connect(timeout=60, retry=3)"}
    ]);
    let done = FILE.ok(&workspace, "file.patch", json!({"path": "src/config.py", "patches": patches})).await;
    assert_eq!((&done["success"], &done["patches_applied"]), (&json!(true), &json!(2)));
    let after = "DEBUG = False\r\ndef connect():\r\n    return db.connect(timeout=60, retry=3)\r\n";
    assert_eq!(workspace.text("/src/config.py").await, after);
    let patches = json!([{"find": "DEBUG", "replace": "TRACE"}, {"find": "nowhere", "replace": ""}]);
    let args = json!({"path": "src/config.py", "patches": patches});
    let message = FILE.refused(&workspace, 400, "find_not_found", "file.patch", args).await;
    assert!(message.contains("edit 2 of 2"), "{message}");
    let patches = json!([{"find": "connect", "replace": "x"}]);
    let args = json!({"path": "src/config.py", "patches": patches});
    let message = FILE.refused(&workspace, 400, "find_not_unique", "file.patch", args).await;
    assert!(message.contains('2') && message.contains('3'), "the lines are named: {message}");
    assert_eq!(workspace.text("/src/config.py").await, after);
}

async fn the_error_for_a_missing_text_shows_the_most_similar_one(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.rs", "fn main() {\n\tlet x = 1;\n\tprintln!(\"{x}\");\n}\n").await;
    let find = "fn main() {\n    let x = 1;\n    println!(\"{x}\");";
    let args = json!({"path": "a.rs", "patches": [{"find": find, "replace": "x"}]});
    let message = FILE.refused(&workspace, 400, "find_not_found", "file.patch", args).await;
    assert!(message.contains("Nothing was written"), "{message}");
    assert!(message.contains("tab"), "what differs is named: {message}");
    assert!(message.len() < 5_000, "{}", message.len());
}

async fn fuzzy_patches_say_how_they_matched(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.py", "class A:\n\tdef f(self):\n\t\treturn 1\n").await;
    let find = "    def f(self):\n        return 1";
    let patch = json!([{"find": find, "replace": "    def f(self):\n        if True:\n            return 2"}]);
    let message =
        FILE.refused(&workspace, 400, "find_not_found", "file.patch", json!({"path": "a.py", "patches": patch})).await;
    assert!(message.contains("indentation"), "the way out is named: {message}");
    let args = json!({"path": "a.py", "patches": patch, "fuzzy": true});
    let patched = FILE.ok(&workspace, "file.patch", args).await;
    assert_eq!(patched["matched_with"], "indentation");
    let after = "class A:\n\tdef f(self):\n\t\tif True:\n\t\t\treturn 2\n";
    assert_eq!(workspace.text("/a.py").await, after);
}

async fn files_are_deleted_and_folders_are_not(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a/b.txt", "x").await;
    FILE.refused(&workspace, 400, "is_directory", "file.delete", json!({"path": "a"})).await;
    assert_eq!(FILE.ok(&workspace, "file.delete", json!({"path": "a/b.txt"})).await, json!({"success": true}));
    FILE.refused(&workspace, 404, "file_not_found", "file.delete", json!({"path": "a/b.txt"})).await;
    FILE.refused(&workspace, 400, "is_directory", "file.delete", json!({"path": "a"})).await;
}

async fn paths_of(workspace: &Workspace, args: Value) -> Vec<String> {
    let listed = FILE.ok(workspace, "file.list", args).await;
    list_at(&listed, "/files").iter().map(|file| text_at(file, "/path").to_owned()).collect()
}

async fn files_are_listed_by_glob(on: On) {
    let workspace = on.workspace().await;
    for path in ["/a.py", "/b.rs", "/.hidden", "/src/c.py", "/src/deep/d.py", "/src/deep/e.txt"] {
        workspace.write(path, "12345").await;
    }
    // Tools cannot make a repository in a folder.
    match workspace.get("").await.success()["workspace"]["root"].as_str() {
        Some(root) => {
            fs::create_dir(Path::new(root).join(".git")).unwrap();
            fs::write(Path::new(root).join(".git/config"), "12345").unwrap();
        }
        None => {
            workspace.write("/.git/config", "12345").await;
        }
    }
    assert_eq!(paths_of(&workspace, json!({})).await, [".hidden", "a.py", "b.rs"]);
    assert_eq!(paths_of(&workspace, json!({"path": "src"})).await, ["src/c.py"]);
    assert_eq!(paths_of(&workspace, json!({"pattern": "*.py"})).await, ["a.py"]);
    assert_eq!(paths_of(&workspace, json!({"pattern": "**/*.py"})).await, ["a.py", "src/c.py", "src/deep/d.py"]);
    let braces = json!({"path": "src", "pattern": "**/*.{py,txt}"});
    assert_eq!(paths_of(&workspace, braces).await, ["src/c.py", "src/deep/d.py", "src/deep/e.txt"]);
    assert_eq!(paths_of(&workspace, json!({"pattern": "!**/*.py"})).await, [".hidden", "b.rs", "src/deep/e.txt"]);
    let listed = FILE.ok(&workspace, "file.list", json!({"path": "src"})).await;
    assert_eq!(listed["files"][0]["size"], 5);
    assert!(text_at(&listed, "/files/0/modified").ends_with('Z'), "{listed}");
    FILE.refused(&workspace, 404, "file_not_found", "file.list", json!({"path": "nowhere"})).await;
    FILE.refused(&workspace, 400, "not_a_directory", "file.list", json!({"path": "a.py"})).await;
    FILE.refused(&workspace, 400, "invalid_pattern", "file.list", json!({"pattern": "[a"})).await;
}

async fn what_gitignore_leaves_out_is_counted(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/.gitignore", "target/\n*.log\n!keep.log\n").await;
    workspace.write("/sub/.gitignore", "local.txt\n").await;
    for path in ["/a.rs", "/x.log", "/keep.log", "/target/b.rs", "/sub/local.txt", "/sub/c.rs", "/local.txt"] {
        workspace.write(path, "needle").await;
    }
    let listed = FILE.ok(&workspace, "file.list", json!({"pattern": "**"})).await;
    let paths: Vec<&str> = list_at(&listed, "/files").iter().map(|file| text_at(file, "/path")).collect();
    assert_eq!(paths, [".gitignore", "a.rs", "keep.log", "local.txt", "sub/.gitignore", "sub/c.rs"]);
    assert_eq!(listed["skipped"], 3);
    let all = paths_of(&workspace, json!({"pattern": "**", "include_ignored": true})).await;
    assert_eq!(all.len(), 9);
    let found = FILE.ok(&workspace, "file.search", json!({"pattern": "needle"})).await;
    let paths: Vec<&str> = list_at(&found, "/matches").iter().map(|one| text_at(one, "/path")).collect();
    assert_eq!(paths, ["a.rs", "keep.log", "local.txt", "sub/c.rs"]);
    assert_eq!(found["skipped"]["ignored"], 3);
    // A path that is named is searched, whatever the rules say.
    let named = FILE.ok(&workspace, "file.search", json!({"pattern": "needle", "path": "x.log"})).await;
    assert_eq!(list_at(&named, "/matches").len(), 1);
    let named = FILE.ok(&workspace, "file.search", json!({"pattern": "needle", "path": "target"})).await;
    assert_eq!(list_at(&named, "/matches").len(), 1);
    assert_eq!(paths_of(&workspace, json!({"path": "target", "pattern": "**"})).await, ["target/b.rs"]);
}

async fn lines_are_found_with_context(on: On) {
    let workspace = on.workspace().await;
    let text =
        "import x\n\n    # Establish database connection\ndef connect(host, port):\n    return Client(host, port)\n";
    workspace.write("/src/db/connection.py", text).await;
    workspace.write("/notes.txt", "def connect").await;
    let args = json!({"pattern": "def\\s+connect", "glob": "**/*.py", "context_lines": 1});
    let content =
        "        # Establish database connection\n--> def connect(host, port):\n        return Client(host, port)";
    let matched = json!({"path": "src/db/connection.py", "line": 4, "content": content});
    assert_eq!(FILE.ok(&workspace, "file.search", args).await, json!({"matches": [matched], "truncated": false}));
    let plain = FILE.ok(&workspace, "file.search", json!({"pattern": "DEF", "case_sensitive": false})).await;
    assert_eq!(plain["matches"][0], json!({"path": "notes.txt", "line": 1, "content": "def connect"}));
    assert_eq!(list_at(&plain, "/matches").len(), 2);
    let one = FILE.ok(&workspace, "file.search", json!({"pattern": "def", "max_results": 1})).await;
    assert_eq!((list_at(&one, "/matches").len(), &one["truncated"]), (1, &json!(true)));
}

async fn a_search_stays_below_its_path(on: On) {
    let workspace = on.workspace().await;
    for path in ["/a/x.py", "/a/b/y.rs", "/ab/z.py", "/.hidden/h.py"] {
        workspace.write(path, "needle").await;
    }
    let paths = async |args: Value| -> Vec<String> {
        let found = FILE.ok(&workspace, "file.search", args).await;
        list_at(&found, "/matches").iter().map(|one| text_at(one, "/path").to_owned()).collect()
    };
    assert_eq!(paths(json!({"pattern": "needle"})).await, ["a/b/y.rs", "a/x.py", "ab/z.py"]);
    assert_eq!(paths(json!({"pattern": "needle", "path": "a"})).await, ["a/b/y.rs", "a/x.py"]);
    assert_eq!(paths(json!({"pattern": "needle", "path": "a", "glob": "*.rs"})).await, ["a/b/y.rs"]);
    assert_eq!(paths(json!({"pattern": "needle", "glob": "!*.py"})).await, ["a/b/y.rs"]);
    assert_eq!(paths(json!({"pattern": "needle", "include_hidden": true})).await.len(), 4);
    FILE.refused(&workspace, 404, "file_not_found", "file.search", json!({"pattern": "x", "path": "nowhere"})).await;
    let message = FILE.refused(&workspace, 400, "invalid_pattern", "file.search", json!({"pattern": "a("})).await;
    assert!(message.contains("unclosed group"), "{message}");
}

async fn errors_have_the_codes_of_the_specification(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "x").await;
    for tool in ["file.read", "file.delete"] {
        FILE.refused(&workspace, 404, "file_not_found", tool, json!({"path": "b.txt"})).await;
        for path in ["../a.txt", "/a.txt", "x/../../a.txt"] {
            let message = FILE.refused(&workspace, 400, "path_outside_workspace", tool, json!({"path": path})).await;
            assert!(message.contains(path), "{message}");
        }
    }
    workspace.ok("mkdir", json!({"path": "/folder"})).await;
    FILE.refused(&workspace, 400, "is_directory", "file.read", json!({"path": "folder"})).await;
    FILE.refused(&workspace, 400, "invalid_argument", "file.read", json!({"path": "a.txt", "ofset": 1})).await;
    FILE.refused(&workspace, 400, "invalid_argument", "file.read", json!({"path": "a.txt", "offset": 0})).await;
    FILE.refused(&workspace, 400, "invalid_argument", "file.patch", json!({"path": "a.txt", "patches": []})).await;
    let stranger = workspace.for_user(&on.account().await);
    FILE.refused(&stranger, 403, "forbidden", "file.read", json!({"path": "a.txt"})).await;
    FILE.refused(&stranger, 403, "forbidden", "file.read", json!({"path": "/a.txt"})).await;
}

async fn json_files_are_seen_as_text(on: On) {
    let workspace = on.workspace().await;
    let canvas = json!({"path": "/a.canvas", "content": {"x": 1}, "file_type": "canvas"});
    workspace.ok("write", canvas).await;
    let read = FILE.ok(&workspace, "file.read", json!({"path": "a.canvas"})).await;
    assert_eq!(read["content"], "     1\t{\n     2\t  \"x\": 1\n     3\t}");
    let args = json!({"path": "a.canvas", "patches": [{"find": "\"x\": 1", "replace": "\"x\": 2"}]});
    FILE.ok(&workspace, "file.patch", args).await;
    assert_eq!(workspace.read("/a.canvas").await["content"], json!({"x": 2}));
    FILE.ok(&workspace, "file.write", json!({"path": "a.canvas", "content": "{\"y\": 3}"})).await;
    assert_eq!(workspace.read("/a.canvas").await["content"], json!({"y": 3}));
    FILE.refused(&workspace, 400, "invalid_argument", "file.write", json!({"path": "a.canvas", "content": "no JSON"}))
        .await;
    let document = json!({"path": "/d.md", "content": {"text": "hello", "title": "T"}});
    workspace.ok("write", document).await;
    FILE.ok(&workspace, "file.write", json!({"path": "d.md", "content": "goodbye"})).await;
    assert_eq!(workspace.read("/d.md").await["content"], json!({"text": "goodbye", "title": "T"}));
}

async fn a_dry_run_changes_nothing(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\n").await;
    let dry = json!({"path": "a.txt", "content": "two\n", "dry_run": true});
    let shown = FILE.ok(&workspace, "file.write", dry).await;
    assert_eq!(shown["diff"], "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n");
    let dry = json!({"path": "a.txt", "patches": [{"find": "one", "replace": "two"}], "dry_run": true});
    assert_eq!(FILE.ok(&workspace, "file.patch", dry).await["diff"], shown["diff"]);
    FILE.ok(&workspace, "file.write", json!({"path": "new/b.txt", "content": "x", "dry_run": true})).await;
    assert_eq!(workspace.paths_below("/").await, ["/a.txt"]);
    assert_eq!(workspace.text("/a.txt").await, "one\n");
}
