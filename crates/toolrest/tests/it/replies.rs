//! Answers and errors: paths in the form of the toolset, the argument at fault, and what to do.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use toolrest_testkit::{Request, Workspace};

use crate::on::{On, list_at, text_at};
use crate::toolset::{BACKEND, CODING, FILE, SYSTEM};

on_every_backend![
    errors_show_paths_in_the_form_of_the_toolset,
    changes_of_programs_have_paths_in_the_form_of_the_toolset,
    the_error_for_a_missing_file_suggests_similar_names,
    the_error_for_a_missing_folder_suggests_similar_names,
    the_error_for_a_binary_file_says_how_to_read_its_bytes,
    the_error_for_an_unknown_tool_lists_the_tools,
    the_error_for_a_folder_that_is_not_empty_says_how_to_remove_it,
    errors_of_moves_name_from_and_to,
    the_error_for_a_missing_directory_names_only_tools_of_the_toolset,
    errors_about_numbers_out_of_range_name_the_argument,
    errors_of_the_workspace_toolset_name_the_argument_at_fault,
    errors_about_what_is_at_a_path_name_the_argument_that_holds_it,
    a_path_too_long_below_the_destination_is_an_error_of_the_destination,
    undoing_a_commit_twice_names_the_first_undo,
    a_chat_has_the_same_lines_for_searches_and_readers,
    errors_about_a_tree_show_paths_in_the_form_of_the_toolset;
    sizes_agree_between_listings_and_reads,
    an_edit_that_leaves_a_duplicate_key_in_json_is_refused,
    the_error_of_an_edit_that_breaks_json_has_the_position_in_the_new_text,
    the_conflict_of_invalid_json_from_a_program_has_the_position
];
on!(on_disk, Folder: warnings_show_paths_in_the_form_of_the_toolset, a_link_has_the_size_of_what_it_leads_to);

/// The body of a refusal.
async fn refusal(workspace: &Workspace, toolset: &str, tool: &str, args: Value) -> Value {
    let reply = workspace.call_of(toolset, tool, &args).await;
    assert!(reply.status >= 400, "{reply}");
    reply.json()
}

async fn errors_show_paths_in_the_form_of_the_toolset(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/dir/a.txt", "text").await;
    workspace.write("/b.txt", "text").await;
    for (toolset, tool, args) in [
        ("file", "file.read", json!({"path": "dir/missing"})),
        ("file", "file.read", json!({"path": "dir"})),
        ("file", "file.delete", json!({"path": "dir"})),
        ("file", "file.write", json!({"path": "dir", "content": ""})),
        ("file", "file.write", json!({"path": "b.txt/x", "content": ""})),
        ("file", "file.list", json!({"path": "b.txt"})),
        ("file", "file.patch", json!({"path": "b.txt", "patches": [{"find": "none", "replace": ""}]})),
        ("file", "file.write", json!({"path": "b.txt", "content": "", "expected_hash": "0"})),
        ("system", "read_file", json!({"path": "dir/missing"})),
        ("system", "write_file", json!({"path": "no/x", "content": ""})),
        ("system", "delete_file", json!({"path": "dir"})),
        ("system", "move_file", json!({"from": "dir/a.txt", "to": "b.txt"})),
        ("system", "list_directory", json!({"path": "b.txt"})),
        ("coding", "read", json!({"filePath": "dir"})),
        ("coding", "edit", json!({"filePath": "b.txt", "oldString": "t", "newString": ""})),
        ("backend", "data_analyze", json!({"input_file_path": "missing.csv", "analysis_script": ""})),
    ] {
        let body = refusal(&workspace, toolset, tool, args.clone()).await.to_string();
        for path in ["/dir", "/b.txt", "/no", "/missing.csv"] {
            assert!(
                !body.contains(&format!("\"{path}")) && !body.contains(&format!(" {path}")),
                "{tool} {args}: {body}"
            );
        }
    }
    let missing = refusal(&workspace, "system", "read_file", json!({"path": "dir/missing"})).await;
    assert_eq!(missing["error"]["details"]["path"], "dir/missing");
    let in_root = workspace.refused(404, "NOT_FOUND", "read", json!({"path": "dir/missing"})).await;
    assert_eq!(in_root["error"], "File not found: /dir/missing");
}

async fn changes_of_programs_have_paths_in_the_form_of_the_toolset(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/old.txt", "text of some length, so that it is known again\n").await;
    let code = json!({"language": "bash", "code": "mkdir -p dir; echo x > dir/new.txt; mv old.txt dir/moved.txt"});
    let ran = SYSTEM.ok(&workspace, "run_code", code).await;
    let changes = list_at(&ran, "/changes");
    assert!(!changes.is_empty(), "{ran}");
    for change in changes {
        let path = text_at(change, "/path");
        assert!(!path.starts_with('/'), "{ran}");
        if change["change"] != "removed" && path != "dir" {
            SYSTEM.ok(&workspace, "read_file", json!({"path": path})).await;
        }
    }
    let code = json!({"language": "bash", "code": "sleep 60", "timeout": 0.3});
    let late = SYSTEM.refused(&workspace, 504, "TIMEOUT", "run_code", code).await;
    assert!(late.contains("`timeout`"), "{late}");
}

async fn the_error_for_a_missing_file_suggests_similar_names(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/src/config.rs", "").await;
    let system = SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "read_file", json!({"path": "src/confg.rs"})).await;
    assert_eq!(system, "File not found: src/confg.rs\nDid you mean src/config.rs?");
    let args = json!({"from": "src/confg.rs", "to": "x"});
    let moved = SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "move_file", args).await;
    assert!(moved.ends_with("Did you mean src/config.rs?"), "{moved}");
    let file = FILE.refused(&workspace, 404, "file_not_found", "file.delete", json!({"path": "src/confg.rs"})).await;
    assert!(file.ends_with("Did you mean src/config.rs?"), "{file}");
    let coding = CODING.refused(&workspace, 404, "FILE_NOT_FOUND", "read", json!({"filePath": "src/confg.rs"})).await;
    assert!(coding.ends_with("Did you mean src/config.rs?"), "{coding}");
    let args = json!({"input_file_path": "src/confg.rs", "analysis_script": ""});
    let backend = BACKEND.refused(&workspace, 404, "FILE_NOT_FOUND", "data_analyze", args).await;
    assert!(backend.ends_with("Did you mean src/config.rs?"), "{backend}");
    let args = json!({"pattern": "x", "path": "src/confg.rs"});
    let search = FILE.refused(&workspace, 404, "file_not_found", "file.search", args).await;
    assert!(search.ends_with("Did you mean src/config.rs?"), "{search}");
    let args = json!({"path": "src/confg.rs", "recursive": true});
    let removed = SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "delete_file", args).await;
    assert!(removed.ends_with("Did you mean src/config.rs?"), "{removed}");
    workspace.write("/taken", "").await;
    let args = json!({"from": "src/confg.rs", "to": "taken", "overwrite": true});
    let moved = SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "move_file", args).await;
    assert!(moved.ends_with("Did you mean src/config.rs?"), "{moved}");
    let exact = workspace.refused(404, "NOT_FOUND", "read", json!({"path": "/src/confg.rs"})).await;
    assert_eq!(exact["error"], "File not found: /src/confg.rs", "the words of the specification");
    assert!(text_at(&exact, "/fields/path").ends_with("Did you mean /src/config.rs?"), "{exact}");
}

async fn the_error_for_a_missing_folder_suggests_similar_names(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/sources/config.rs", "").await;
    let listed = SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "list_directory", json!({"path": "source"})).await;
    assert_eq!(listed, "File not found: source\nDid you mean sources?");
    let listed = FILE.refused(&workspace, 404, "file_not_found", "file.list", json!({"path": "source"})).await;
    assert!(listed.ends_with("Did you mean sources?"), "{listed}");
    let listed = workspace.refused(404, "NOT_FOUND", "ls", json!({"path": "/source"})).await;
    assert!(text_at(&listed, "/fields/path").ends_with("Did you mean /sources?"), "{listed}");
    let listed = CODING.ok(&workspace, "ls", json!({"dirPath": "source"})).await;
    assert_eq!((&listed["missing"], &listed["count"]), (&json!(true), &json!(0)), "{listed}");
    assert_eq!(listed["warnings"], json!(["Directory not found: source. Did you mean sources?"]));
    let args = json!({"from": "sources/config.rs", "to": "source/config.rs"});
    let moved = SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "move_file", args).await;
    assert!(moved.contains("Folder not found: source") && moved.contains("Did you mean sources?"), "{moved}");
}

async fn errors_about_a_tree_show_paths_in_the_form_of_the_toolset(on: On) {
    let workspace = on.workspace().await;
    let chat = workspace.post("/chats", &json!({"title": "Plans"})).await.success();
    let path = text_at(&chat, "/chat/path").trim_start_matches('/').to_owned();
    let body = refusal(&workspace, "system", "delete_file", json!({"path": "chats", "recursive": true})).await;
    let message = text_at(&body, "/error/message");
    assert!(message.starts_with(&format!("{path} is managed by the system")), "{body}");
    assert_eq!(body["error"]["details"]["path"], path, "{body}");
    let body = refusal(&workspace, "system", "move_file", json!({"from": "chats", "to": "talks"})).await;
    assert!(!body.to_string().contains("/chats"), "{body}");
}

async fn warnings_show_paths_in_the_form_of_the_toolset(on: On) {
    let folder = on.shared().new_folder();
    let workspace = on.account().await.folder_workspace("Bench", &folder).await;
    fs::create_dir(folder.join("dir")).unwrap();
    fs::write(folder.join("dir/x"), "one\n").unwrap();
    fs::hard_link(folder.join("dir/x"), folder.join("dir/y")).unwrap();
    let written = SYSTEM.ok(&workspace, "write_file", json!({"path": "dir/x", "content": "two\n"})).await;
    assert!(text_at(&written, "/warnings/0").starts_with("dir/x was changed in place"), "{written}");
    let written = FILE.ok(&workspace, "file.write", json!({"path": "dir/x", "content": "three\n"})).await;
    assert!(text_at(&written, "/warnings/0").starts_with("dir/x was changed in place"), "{written}");
    let written = workspace.write("/dir/x", "four\n").await;
    assert!(text_at(&written, "/warnings/0").starts_with("/dir/x was changed in place"), "{written}");
}

async fn a_link_has_the_size_of_what_it_leads_to(on: On) {
    let folder = on.shared().new_folder();
    let workspace = on.account().await.folder_workspace("Bench", &folder).await;
    fs::create_dir(folder.join("dir")).unwrap();
    fs::write(folder.join("dir/target"), "twelve bytes").unwrap();
    symlink("dir/target", folder.join("to-file")).unwrap();
    symlink("dir", folder.join("to-folder")).unwrap();
    symlink("nowhere", folder.join("to-nothing")).unwrap();
    let listed = SYSTEM.ok(&workspace, "list_directory", json!({"path": "."})).await;
    let sizes: Vec<_> = list_at(&listed, "/entries").iter().map(|entry| (&entry["name"], &entry["size"])).collect();
    let read = SYSTEM.ok(&workspace, "read_file", json!({"path": "to-file"})).await;
    assert_eq!(read["size"], 12);
    let size = |name: &str| sizes.iter().find(|(found, _)| *found == name).map(|(_, size)| (*size).clone());
    assert_eq!((size("to-file"), size("to-folder")), (Some(json!(12)), Some(json!(0))), "{listed}");
    assert_eq!(size("to-nothing"), Some(json!("nowhere".len())), "{listed}");
}

async fn an_edit_that_leaves_a_duplicate_key_in_json_is_refused(on: On) {
    let workspace = on.workspace().await;
    workspace.ok("write", json!({"path": "/c", "content": {"a": 1, "b": 2}, "file_type": "canvas"})).await;
    let edit = json!({"path": "/c", "old_string": "\"b\"", "new_string": "\"a\""});
    let refused = workspace.refused(400, "VALIDATION_ERROR", "edit", edit).await;
    assert!(text_at(&refused, "/error").contains("\"a\" occurs twice"), "{refused}");
    let twice = "{\"a\": 1, \"a\": 2}";
    SYSTEM.refused(&workspace, 400, "INVALID_ARGUMENT", "write_file", json!({"path": "c", "content": twice})).await;
    let patch = "--- a/c\n+++ b/c\n@@ -2,2 +2,2 @@\n   \"a\": 1,\n-  \"b\": 2\n+  \"a\": 2\n";
    CODING.refused(&workspace, 400, "INVALID_ARGUMENT", "apply_patch", json!({"patchText": patch})).await;
    assert_eq!(workspace.read("/c").await["content"], json!({"a": 1, "b": 2}));
}

async fn the_error_of_an_edit_that_breaks_json_has_the_position_in_the_new_text(on: On) {
    let workspace = on.workspace().await;
    workspace.ok("write", json!({"path": "/c", "content": {"a": 1, "b": 2}, "file_type": "canvas"})).await;
    let edit = json!({"filePath": "c", "oldString": "\"b\": 2", "newString": "\"b\": oops"});
    let refused = CODING.refused(&workspace, 400, "INVALID_ARGUMENT", "edit", edit).await;
    assert!(refused.contains("(line 3, column 8 of the new text)") && !refused.contains(" at line "), "{refused}");
}

async fn the_conflict_of_invalid_json_from_a_program_has_the_position(on: On) {
    let workspace = on.workspace().await;
    workspace.ok("write", json!({"path": "/c", "content": {"a": 1}, "file_type": "canvas"})).await;
    let ran = SYSTEM.ok(&workspace, "run_code", json!({"language": "bash", "code": "echo '{oops' > c"})).await;
    let reason = text_at(&ran, "/conflicts/0/reason");
    assert!(reason.contains("(line 1, column 2 of the new text)") && !reason.contains(" at line "), "{reason}");
}

async fn the_error_for_a_binary_file_says_how_to_read_its_bytes(on: On) {
    let workspace = on.workspace().await;
    let bytes = json!({"path": "a.bin", "content": "AP8A", "encoding": "base64"});
    SYSTEM.ok(&workspace, "write_file", bytes).await;
    let system = SYSTEM.refused(&workspace, 400, "BINARY_FILE", "read_file", json!({"path": "a.bin"})).await;
    assert!(system.contains("\"encoding\": \"base64\""), "{system}");
    let file = FILE.refused(&workspace, 400, "binary_file", "file.read", json!({"path": "a.bin"})).await;
    assert!(file.contains("/content/{path}") && !file.contains("base64"), "{file}");
    let coding = CODING.refused(&workspace, 400, "BINARY_FILE", "read", json!({"filePath": "a.bin"})).await;
    assert!(coding.starts_with("Cannot read binary file: a.bin\n") && coding.contains("/content/{path}"), "{coding}");
    let own = workspace.refused(400, "VALIDATION_ERROR", "read", json!({"path": "a.bin"})).await;
    assert!(text_at(&own, "/fields/path").contains("/content/{path}"), "{own}");
}

async fn the_error_for_an_unknown_tool_lists_the_tools(on: On) {
    let workspace = on.workspace().await;
    let coding = CODING.refused(&workspace, 404, "UNKNOWN_TOOL", "grep", json!({})).await;
    assert!(coding.starts_with("Tool 'grep' not found\n"), "{coding}");
    assert!(coding.contains("apply_patch") && coding.ends_with("toolsets agent, workspace"), "{coding}");
    let exact = workspace.refused(404, "NOT_FOUND", "read_file", json!({})).await;
    assert_eq!(exact["error"], "Tool 'read_file' not found", "the words of the specification");
    assert!(text_at(&exact, "/fields/tool").contains("edit-many"), "{exact}");
    assert!(text_at(&exact, "/fields/tool").ends_with("toolset system"), "{exact}");
}

async fn the_error_for_a_folder_that_is_not_empty_says_how_to_remove_it(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/dir/a.txt", "").await;
    let refused = SYSTEM.refused(&workspace, 409, "NOT_EMPTY", "delete_file", json!({"path": "dir"})).await;
    assert!(refused.contains("\"recursive\": true") && !refused.contains("1 entries"), "{refused}");
}

async fn errors_of_moves_name_from_and_to(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/dir/a.txt", "").await;
    let args = json!({"from": "dir", "to": "dir/sub"});
    let body = refusal(&workspace, "system", "move_file", args).await;
    let details = &body["error"]["details"];
    assert_eq!(details, &json!({"argument": "to", "from": "dir", "to": "dir/sub"}), "{body}");
}

async fn the_error_for_a_missing_directory_names_only_tools_of_the_toolset(on: On) {
    let workspace = on.workspace().await;
    let args = json!({"path": "no/x.txt", "content": ""});
    let refused = SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "write_file", args).await;
    assert!(refused.contains("createDirs") && !refused.contains("mkdir"), "{refused}");
    workspace.write("/a.txt", "").await;
    let refused = SYSTEM
        .refused(&workspace, 404, "FILE_NOT_FOUND", "move_file", json!({"from": "a.txt", "to": "no/x.txt"}))
        .await;
    assert!(refused.starts_with("Folder not found: no") && refused.contains("\"createDirs\": true"), "{refused}");
    let refused =
        SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "move_file", json!({"from": "none", "to": "x.txt"})).await;
    assert!(!refused.contains("createDirs"), "{refused}");
}

async fn errors_about_numbers_out_of_range_name_the_argument(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "x").await;
    for (tool, args, argument) in [
        ("file.read", json!({"path": "a.txt", "offset": 0}), "`offset`"),
        ("file.read", json!({"path": "a.txt", "limit": -1}), "`limit`"),
        ("file.search", json!({"pattern": "x", "max_results": 0}), "`max_results`"),
        ("file.search", json!({"pattern": "x", "context_lines": 101}), "`context_lines`"),
        ("file.search", json!({"pattern": "x", "context_lines": 1.5}), "`context_lines`"),
    ] {
        let refused = FILE.refused(&workspace, 400, "invalid_argument", tool, args).await;
        assert!(refused.contains(argument), "{refused}");
        assert!(!refused.contains("usize") && !refused.contains("column"), "{refused}");
    }
    for (limit, shown) in
        [(json!("many"), "\"many\""), (json!(true), "`true`"), (json!(-1), "`-1`"), (json!([]), "sequence")]
    {
        let args = json!({"filePath": "a.txt", "limit": limit});
        let refused = CODING.refused(&workspace, 400, "INVALID_ARGUMENT", "read", args).await;
        assert!(refused.starts_with("`limit`: invalid ") && refused.contains(shown), "{refused}");
        assert!(refused.ends_with(", expected a whole number from 0 on"), "{refused}");
    }
    for limit in [json!("1"), json!(1), json!(1.0)] {
        CODING.ok(&workspace, "read", json!({"filePath": "a.txt", "limit": limit})).await;
    }
}

async fn errors_of_the_workspace_toolset_name_the_argument_at_fault(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/dir/a.txt", "x").await;
    for (tool, args, argument) in [
        ("read", json!({"path": "/dir"}), "path"),
        ("ls", json!({"path": "/dir/a.txt"}), "path"),
        ("write", json!({"path": "/dir", "content": "x"}), "path"),
        ("write", json!({"path": "/", "content": "x"}), "path"),
        ("write", json!({"path": "/b", "content": 7}), "content"),
        ("write", json!({"path": "/b", "content": "x", "file_type": "poem"}), "file_type"),
        ("edit", json!({"path": "/dir", "old_string": "a", "new_string": "b"}), "path"),
        ("edit", json!({"path": "/dir/a.txt", "old_string": "a", "new_string": "b"}), "old_string"),
        ("rm", json!({"path": "/"}), "path"),
        ("mv", json!({"source": "/", "destination": "/x"}), "source"),
        ("mv", json!({"source": "/dir", "destination": "/dir/sub"}), "destination"),
        ("grep", json!({"pattern": "("}), "pattern"),
        ("read", json!({}), "path"),
        ("read", json!({"path": 7}), "path"),
    ] {
        let refused = workspace.refused(400, "VALIDATION_ERROR", tool, args.clone()).await;
        assert!(refused["fields"][argument].is_string(), "{tool} {args}: {refused}");
        assert!(!text_at(&refused, "/error").contains(" at line "), "{refused}");
    }
}

async fn errors_about_what_is_at_a_path_name_the_argument_that_holds_it(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/dir/a.txt", "x").await;
    workspace.write("/b.txt", "x").await;
    let edit = |path: &str| json!({"path": path, "old_string": "x", "new_string": "y"});
    let mv = |source: &str, destination: &str| json!({"source": source, "destination": destination});
    let stale = |args: Value| {
        let mut args = args;
        args["last_read_hash"] = "0".repeat(64).into();
        args
    };
    for (status, tool, args, argument) in [
        (404, "read", json!({"path": "/no"}), "path"),
        (404, "ls", json!({"path": "/no"}), "path"),
        (404, "edit", edit("/no"), "path"),
        (404, "rm", json!({"path": "/no"}), "path"),
        (404, "mv", mv("/no", "/x"), "source"),
        (404, "mv", mv("/b.txt", "/no/x"), "destination"),
        (404, "mv", mv("/b.txt", "/no/"), "destination"),
        (409, "write", json!({"path": "/b.txt/x", "content": ""}), "path"),
        (409, "touch", json!({"path": "/b.txt/x"}), "path"),
        (409, "mkdir", json!({"path": "/b.txt"}), "path"),
        (409, "mv", mv("/dir", "/b.txt/x"), "destination"),
        (409, "mv", mv("/b.txt", "/b.txt"), "destination"),
        (409, "mv", mv("/dir", "/b.txt"), "destination"),
        (409, "rm", json!({"path": "/dir"}), "path"),
        (409, "write", stale(json!({"path": "/b.txt", "content": ""})), "last_read_hash"),
        (409, "edit", stale(edit("/b.txt")), "last_read_hash"),
        (409, "rm", stale(json!({"path": "/b.txt"})), "last_read_hash"),
        (409, "touch", stale(json!({"path": "/b.txt"})), "last_read_hash"),
        (409, "mv", stale(mv("/b.txt", "/c.txt")), "last_read_hash"),
    ] {
        let code = if status == 404 { "NOT_FOUND" } else { "CONFLICT" };
        let refused = workspace.refused(status, code, tool, args.clone()).await;
        assert!(refused["fields"][argument].is_string(), "{tool} {args}: {refused}");
        assert_eq!(refused["fields"].as_object().unwrap().len(), 1, "{tool} {args}: {refused}");
    }
    let args = json!({"from": "b.txt", "to": "dir/a.txt"});
    let body = refusal(&workspace, "system", "move_file", args).await;
    assert_eq!(body["error"]["details"]["argument"], "to", "{body}");
}

async fn a_path_too_long_below_the_destination_is_an_error_of_the_destination(on: On) {
    let workspace = on.workspace().await;
    let deep = |name: &str, levels: usize| format!("/{}", vec![name.repeat(200); levels].join("/"));
    workspace.write(&format!("/dir{}", deep("a", 6)), "x").await;
    workspace.ok("mkdir", json!({"path": deep("b", 5)})).await;
    let args = json!({"source": "/dir", "destination": deep("b", 5)});
    let refused = workspace.refused(400, "VALIDATION_ERROR", "mv", args).await;
    assert!(refused["fields"]["destination"].is_string(), "{refused}");
}

async fn undoing_a_commit_twice_names_the_first_undo(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one").await;
    workspace.write("/a.txt", "two").await;
    let commits = workspace.get("/commits").await.success();
    let newest = text_at(&commits, "/commits/0/id").to_owned();
    let undo = async |id: &str| workspace.post(&format!("/commits/{id}/undo"), &json!({})).await;
    let undone = undo(&newest).await.success();
    let by = text_at(&undone, "/commit/id").to_owned();
    let refused = undo(&newest).await.refused(409, "CONFLICT");
    assert!(text_at(&refused, "/error").contains("was undone already"), "{refused}");
    undo(&by).await.success();
    workspace.write("/a.txt", "three").await;
    let refused = undo(&newest).await.refused(409, "CONFLICT");
    assert!(!text_at(&refused, "/error").contains("undone already"), "it stands again: {refused}");
}

async fn a_chat_has_the_same_lines_for_searches_and_readers(on: On) {
    let workspace = on.workspace().await;
    let chat = workspace.post("/chats", &json!({"title": "Plans"})).await.success();
    let messages = format!("/chats/{}/messages", text_at(&chat, "/chat/id"));
    for content in ["first line\nsecond line ä", "an answer"] {
        workspace.post(&messages, &json!({"role": "user", "content": content})).await.success();
    }
    let path = text_at(&chat, "/chat/path").trim_start_matches('/').to_owned();
    let lines = FILE.ok(&workspace, "file.read", json!({"path": path})).await;
    let found = FILE.ok(&workspace, "file.search", json!({"pattern": "second"})).await;
    let line = found["matches"][0]["line"].as_u64().unwrap();
    let content = text_at(&found, "/matches/0/content");
    assert!(
        text_at(&lines, "/content").lines().any(|shown| shown == format!("{line:>6}\t{content}")),
        "{lines} {found}"
    );
    let grep = workspace.ok("grep", json!({"pattern": "an answer"})).await;
    let number = grep["matches"][0]["line_number"].as_u64().unwrap();
    let page = json!({"filePath": path, "offset": number - 1, "limit": 1});
    let page = CODING.ok(&workspace, "read", page).await;
    assert!(text_at(&page, "/content").ends_with(text_at(&grep, "/matches/0/line_text")), "{page} {grep}");
    let listed = SYSTEM.ok(&workspace, "list_directory", json!({"path": "chats"})).await;
    let read = SYSTEM.ok(&workspace, "read_file", json!({"path": path})).await;
    assert_eq!(listed["entries"][0]["size"], read["size"], "{listed}");
    assert_eq!(read["size"], text_at(&read, "/content").len());
}

async fn sizes_agree_between_listings_and_reads(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/text", "grüße").await;
    workspace.ok("write", json!({"path": "/fields", "content": {"text": "grüße", "more": [1, 2]}})).await;
    workspace.ok("write", json!({"path": "/canvas", "content": {"a": [1, {"b": 2}]}, "file_type": "canvas"})).await;
    workspace.ok("write", json!({"path": "/canvas", "content": {"a": [1, {"b": 3}]}, "file_type": "canvas"})).await;
    let bytes = json!({"path": "bytes", "content": "AP8A", "encoding": "base64"});
    SYSTEM.ok(&workspace, "write_file", bytes).await;
    let bytes = json!({"path": "latin1", "content": "Y2Fm6Q==", "encoding": "base64"});
    SYSTEM.ok(&workspace, "write_file", bytes).await;
    let listed = SYSTEM.ok(&workspace, "list_directory", json!({"path": "."})).await;
    let files = FILE.ok(&workspace, "file.list", json!({})).await;
    for (entry, file) in list_at(&listed, "/entries").iter().zip(list_at(&files, "/files")) {
        let name = text_at(entry, "/name");
        let read = SYSTEM.ok(&workspace, "read_file", json!({"path": name, "encoding": "base64"})).await;
        assert_eq!((&entry["size"], &file["size"]), (&read["size"], &read["size"]), "{name}");
    }
}

#[tokio::test]
async fn a_duplicate_key_is_refused_everywhere() {
    let workspace = On::Sqlite.workspace().await;
    workspace.write("/a.txt", "x").await;
    let long = "x".repeat(100_000);
    for (body, argument) in [
        (r#"{"tool": "read", "args": {"path": "/a.txt", "path": "/b.txt"}}"#, "path"),
        (r#"{"tool": "read", "tool": "ls", "args": {}}"#, "tool"),
        (r#"{"tool": "read", "args": {"path": "/a.txt"}, "args": {}}"#, "args"),
        (r#"{"tool": "write", "args": {"path": "/b", "content": {"text": "x", "a": {"b": 1, "b": 2}}}}"#, "content"),
        (&format!(r#"{{"tool": "write", "args": {{"path": "/b", "content": {{"t": "{long}", "t": 1}}}}}}"#), "content"),
        (r#"{"tool": "write", "args": {"path": "/b", "content": {"text": "x", "a": 1e400}}}"#, "content"),
        (r#"{"tool": "ls", "args": {"path": "/", "recursive": 1e400}}"#, "recursive"),
    ] {
        let refused = workspace.call_text(body).await.refused(400, "VALIDATION_ERROR");
        assert!(!text_at(&refused, "/error").contains(" at line "), "{refused}");
        assert!(refused["fields"][argument].is_string(), "{argument}: {refused}");
    }
    let path = format!("/api/v1/workspaces/{}/toolsets/system", workspace.id);
    let body = r#"{"tool": "run_code", "args": {"language": "bash", "code": "true", "env": {"A": "1", "A": "2"}}}"#;
    let request = Request::new("POST", &path).bearer(&workspace.account.access_token);
    let reply = workspace.account.client.send(request.header("Content-Type", "application/json").body(body)).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!("INVALID_ARGUMENT")), "{reply}");
}

#[tokio::test]
async fn a_call_of_the_backend_needs_a_correlation_id() {
    let workspace = On::Sqlite.workspace().await;
    let body = json!({"tool": "executeShellCommand", "args": {"command": "true"}});
    let reply = workspace.post("/toolsets/backend", &body).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!("INVALID_ARGUMENT")), "{reply}");
    assert!(text_at(&reply.json(), "/error/message").contains("correlationId"), "{reply}");
    assert!(!text_at(&reply.json(), "/correlationId").is_empty(), "{reply}");
    BACKEND.ok(&workspace, "executeShellCommand", json!({"command": "true"})).await;
}

#[tokio::test]
async fn a_body_that_does_not_fit_is_refused_with_the_member_at_fault() {
    let workspace = On::Sqlite.workspace().await;
    for (body, name, words) in [
        (r#"{"settings": {"run": {"timeout_ms": "x"}}}"#, "settings", "`settings.run.timeout_ms`: invalid type"),
        (
            r#"{"settings": {"run": {"timeout_ms": 1e400}}}"#,
            "settings",
            "`settings.run.timeout_ms`: number out of range",
        ),
        (r#"{"settings": {"run": {"processes": -1}}}"#, "settings", "expected a whole number from 0 on"),
        (r#"{"settings": 5}"#, "settings", "expected an object"),
        (r#"{"name": 5}"#, "name", "`name`: invalid type: integer `5`, expected a string"),
        (r#"{"nam": "x"}"#, "nam", "unknown field `nam`, expected `name` or `settings`"),
        (r#"{"name": "x", "name": "y"}"#, "name", "duplicate field `name`"),
    ] {
        let path = format!("/api/v1/workspaces/{}", workspace.id);
        let request = Request::new("PATCH", &path).bearer(&workspace.account.access_token);
        let reply = workspace.account.client.send(request.header("Content-Type", "application/json").body(body)).await;
        let refused = reply.refused(400, "VALIDATION_ERROR");
        assert!(text_at(&refused, "/error").contains(words), "{body}: {refused}");
        assert!(refused["fields"][name].is_string(), "{body}: {refused}");
        assert!(!refused.to_string().contains("u64"), "{body}: {refused}");
    }
    let broken = workspace.call_text(r#"{"tool": 5, "args": {}"#).await.refused(400, "VALIDATION_ERROR");
    assert!(text_at(&broken, "/error").starts_with("The body is not valid JSON"), "{broken}");
}
