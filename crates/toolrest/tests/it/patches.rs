//! Patches of many files: atomic, positioned as in git, and reported in git's format.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolrest_testkit::Workspace;

use crate::folders::folder_workspace;
use crate::on::{On, list_at, text_at};
use crate::toolset::{CODING, FILE, SYSTEM};

on_every_backend![
    text_after_the_end_of_a_patch_is_another_patch_or_refused,
    a_patch_that_is_cut_off_is_refused,
    spaces_around_markers_are_accepted,
    spaces_around_a_name_mean_the_file_that_has_them,
    submodules_are_refused_by_name,
    a_change_without_content_is_refused,
    all_failing_parts_are_reported_together,
    a_hunk_at_line_1_is_anchored_at_the_start_of_the_file,
    the_first_line_of_a_file_with_a_byte_order_mark_is_matched,
    files_are_expected_to_have_their_hashes,
    a_hunk_at_the_end_of_the_file_is_anchored_there,
    folders_that_a_patch_leaves_empty_are_removed,
    the_diff_of_a_renamed_file_has_no_lines,
    a_change_of_mode_alone_is_shown,
    binary_patches_apply_to_the_bytes,
    a_file_moves_below_its_own_name_and_back,
    files_swap_names,
    files_are_counted_once,
    a_text_in_other_case_or_with_other_spaces_is_shown,
    several_matches_in_a_line_are_reported_by_column,
    edits_are_counted_from_one,
    a_patch_ends_when_its_caller_disconnects,
];
on!(on_disk, Folder: absolute_paths_inside_the_folder_are_accepted, modes_survive_a_rename_below_the_own_name, a_folder_with_something_else_in_it_stays);

async fn apply(workspace: &Workspace, patch: &str) -> Value {
    CODING.ok(workspace, "apply_patch", json!({"patchText": patch})).await
}

async fn refused(workspace: &Workspace, status: u16, code: &str, patch: &str) -> String {
    CODING.refused(workspace, status, code, "apply_patch", json!({"patchText": patch})).await
}

async fn undo_newest(workspace: &Workspace) {
    let commits = workspace.get("/commits").await.success();
    let newest = text_at(&list_at(&commits, "/commits")[0], "/id").to_owned();
    workspace.post(&format!("/commits/{newest}/undo"), &json!({})).await.success();
}

fn rename(from: &str, to: &str) -> String {
    format!("diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n")
}

async fn text_after_the_end_of_a_patch_is_another_patch_or_refused(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\ntwo\n").await;
    let block = |name: &str| format!("*** Begin Patch\n*** Add File: {name}\n+new\n*** End Patch\n");
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n";
    let applied = apply(&workspace, &format!("{}\n{}{diff}", block("x"), block("y"))).await;
    assert_eq!(applied["filesModified"], 3, "{applied}");
    assert_eq!(workspace.paths_below("/").await, ["/a.txt", "/x", "/y"]);
    assert_eq!(workspace.text("/a.txt").await, "1\ntwo\n");
    let after_a_diff = format!("--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-1\n+one\n two\n{}", block("z"));
    assert_eq!(apply(&workspace, &after_a_diff).await["filesModified"], 2);
    let message = refused(&workspace, 400, "INVALID_PATCH", &format!("{}and this\n", block("w"))).await;
    assert!(message.contains("patch line 5") && message.contains("`and this` follows `*** End Patch`"), "{message}");
    for line in ["From here on", "diff of nothing", "Index: x", "Only in a: x", "-- "] {
        let message = refused(&workspace, 400, "INVALID_PATCH", &format!("{}{line}\n", block("w"))).await;
        assert!(message.contains(&format!("`{line}` follows `*** End Patch`")), "{message}");
    }
    // One part that does not fit keeps all others from being applied.
    let stale = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-uno\n+1\n two\n";
    refused(&workspace, 400, "STRING_NOT_FOUND", &format!("{}{stale}", block("w"))).await;
    assert_eq!(workspace.paths_below("/").await, ["/a.txt", "/x", "/y", "/z"]);
}

async fn a_patch_that_is_cut_off_is_refused(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\ntwo\nthree\n").await;
    let message = refused(&workspace, 400, "INVALID_PATCH", "*** Begin Patch\n*** Add File: x\n+new\n").await;
    assert!(message.contains("without `*** End Patch`"), "{message}");
    let short = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n";
    let message = refused(&workspace, 400, "INVALID_PATCH", short).await;
    assert!(message.contains("announces 3 old and 4 new lines, but has 2 and 2"), "{message}");
    assert_eq!(workspace.paths_below("/").await, ["/a.txt"]);
    assert_eq!(workspace.text("/a.txt").await, "one\ntwo\nthree\n");
}

async fn spaces_around_markers_are_accepted(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\ntwo\n").await;
    let patch = " *** Begin Patch\n  *** Update File: a.txt \n@@\n-one\n+1\n *** End Patch \n";
    apply(&workspace, patch).await;
    assert_eq!(workspace.text("/a.txt").await, "1\ntwo\n");
}

async fn spaces_around_a_name_mean_the_file_that_has_them(on: On) {
    let workspace = on.workspace().await;
    let write = async |path: &str| {
        SYSTEM.ok(&workspace, "write_file", json!({"path": path, "content": "one\n"})).await;
    };
    for name in ["x", "x ", " x"] {
        write(name).await;
    }
    let delete = "*** Begin Patch\n*** Delete File: x \n*** End Patch\n";
    apply(&workspace, delete).await;
    assert_eq!(workspace.paths_below("/").await, ["/ x", "/x"]);
    apply(&workspace, "*** Begin Patch\n*** Update File:  x\n*** Move to:  y \n@@\n-one\n+1\n*** End Patch\n").await;
    assert_eq!(workspace.paths_below("/").await, ["/x", "/y"], "no file is named like the target with its blanks");
    write("x ").await;
    let diff = |old: &str, new: &str| format!("--- a/x \n+++ b/x \n@@ -1 +1 @@\n-{old}\n+{new}\n");
    apply(&workspace, &diff("one", "two")).await;
    let text = async |path: &str| SYSTEM.ok(&workspace, "read_file", json!({"path": path})).await["content"].clone();
    assert_eq!((text("x ").await, text("x").await), (json!("two\n"), json!("one\n")));
    apply(&workspace, delete).await;
    apply(&workspace, &diff("one", "three")).await;
    assert_eq!(text("x").await, "three\n", "without such a file blanks are padding");
    apply(&workspace, delete).await;
    assert_eq!(workspace.paths_below("/").await, ["/y"]);
    apply(&workspace, "--- /dev/null\n+++ b/z \t\n@@ -0,0 +1 @@\n+new\n").await;
    assert_eq!(workspace.paths_below("/").await, ["/y", "/z "], "git sets blanks of a name off by a tab");
}

async fn submodules_are_refused_by_name(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\n").await;
    workspace.write("/dir/kept.txt", "one\n").await;
    let (old, new) = ("1".repeat(40), "2".repeat(40));
    let lines = format!("@@ -1 +1 @@\n-Subproject commit {old}\n+Subproject commit {new}\n");
    let other = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n";
    let mode = "diff --git a/s b/s\nindex 1111111..2222222 160000\n";
    let added = format!("--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+Subproject commit {new}\n");
    for part in [
        format!("{mode}--- a/s\n+++ b/s\n{lines}"),
        format!("--- a/s\n+++ b/s\n{lines}"),
        format!("--- a/dir\n+++ b/dir\n{lines}"),
        added,
    ] {
        let message = refused(&workspace, 400, "INVALID_ARGUMENT", &format!("{other}{part}")).await;
        assert!(message.contains("is a submodule in the patch"), "{part}: {message}");
    }
    assert_eq!(workspace.text("/a.txt").await, "one\n");
    // A file may hold such a line, but is no submodule.
    workspace.write("/s", &format!("Subproject commit {old}\n")).await;
    refused(&workspace, 400, "INVALID_ARGUMENT", &format!("{mode}--- a/s\n+++ b/s\n{lines}")).await;
    apply(&workspace, &format!("--- a/s\n+++ b/s\n{lines}")).await;
    assert_eq!(workspace.text("/s").await, format!("Subproject commit {new}\n"));
}

async fn a_change_without_content_is_refused(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\n").await;
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n";
    for line in ["Submodule s 1234567..89abcde:", "Binary files a/x.png and b/x.png differ"] {
        let message = refused(&workspace, 400, "INVALID_PATCH", &format!("{diff}{line}\n")).await;
        assert!(message.contains("patch line 6") && message.contains(line), "{message}");
    }
    assert_eq!(workspace.text("/a.txt").await, "one\n");
}

async fn all_failing_parts_are_reported_together(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/config.rs", "one\n").await;
    let part = |name: &str| format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-uno\n+1\n");
    let parts = format!("{}{}", part("confg.rs"), part("config.rs"));
    let message = refused(&workspace, 404, "FILE_NOT_FOUND", &parts).await;
    assert!(message.starts_with("File not found: confg.rs\nconfig.rs: hunk 1"), "{message}");
    assert!(message.ends_with("Did you mean config.rs?"), "{message}");
}

async fn a_hunk_at_line_1_is_anchored_at_the_start_of_the_file(on: On) {
    let workspace = on.workspace().await;
    let hunk = "--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,3 @@\n {\n-  a\n+  b\n }\n";
    workspace.write("/a.rs", "{\n  a\n}\n{\n  a\n}\n").await;
    apply(&workspace, hunk).await;
    assert_eq!(workspace.text("/a.rs").await, "{\n  b\n}\n{\n  a\n}\n");
    let message = refused(&workspace, 400, "STRING_NOT_FOUND", hunk).await;
    assert!(message.contains("its header has line number 1, as at the start of a file"), "{message}");
}

async fn the_first_line_of_a_file_with_a_byte_order_mark_is_matched(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "\u{feff}one\r\ntwo\r\n").await;
    apply(&workspace, "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n").await;
    assert_eq!(workspace.text("/a.txt").await, "\u{feff}1\r\ntwo\r\n");
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let write = json!({"path": "w.txt", "content": STANDARD.encode(utf16("\u{feff}one\ntwo\n")), "encoding": "base64"});
    SYSTEM.ok(&workspace, "write_file", write).await;
    apply(&workspace, "--- a/w.txt\n+++ b/w.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n").await;
    let read = SYSTEM.ok(&workspace, "read_file", json!({"path": "w.txt", "encoding": "base64"})).await;
    assert_eq!(STANDARD.decode(text_at(&read, "/content")).unwrap(), utf16("\u{feff}1\ntwo\n"));
}

async fn files_are_expected_to_have_their_hashes(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\n").await;
    workspace.write("/b.txt", "two\n").await;
    let hash = async |path: &str| workspace.read(path).await["hash"].clone();
    let (a, b) = (hash("/a.txt").await, hash("/b.txt").await);
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-two\n+2\n";
    let args = |hashes: Value| json!({"patchText": patch, "expectedHashes": hashes});
    let stale = args(json!({"a.txt": a, "b.txt": a}));
    CODING.refused(&workspace, 409, "CONFLICT", "apply_patch", stale).await;
    assert_eq!(workspace.text("/a.txt").await, "one\n");
    let unnamed = args(json!({"c.txt": a}));
    let message = CODING.refused(&workspace, 400, "INVALID_ARGUMENT", "apply_patch", unnamed).await;
    assert!(message.contains("c.txt") && message.contains("does not name"), "{message}");
    CODING.ok(&workspace, "apply_patch", args(json!({"./a.txt": a, "b.txt": b}))).await;
    assert_eq!(workspace.text("/b.txt").await, "2\n");
    let twice = args(json!({"a.txt": a, "./a.txt": b}));
    let message = CODING.refused(&workspace, 400, "INVALID_ARGUMENT", "apply_patch", twice).await;
    assert!(message.contains("`expectedHashes` names a.txt twice"), "{message}");
    let new = json!({"patchText": "*** Begin Patch\n*** Add File: n\n+x\n*** End Patch", "expectedHashes": {"n": a}});
    CODING.refused(&workspace, 409, "CONFLICT", "apply_patch", new).await;
}

async fn a_hunk_at_the_end_of_the_file_is_anchored_there(on: On) {
    let workspace = on.workspace().await;
    let file = "fn a() {\n    x();\n}\n\nfn b() {\n    x();\n}\n";
    workspace.write("/a.rs", file).await;
    // Its lines stand where its header says, too, but a hunk without lines after its change goes to the end.
    apply(&workspace, "--- a/a.rs\n+++ b/a.rs\n@@ -2,2 +2,4 @@\n     x();\n }\n+\n+fn c() {}\n").await;
    assert_eq!(workspace.text("/a.rs").await, format!("{file}\nfn c() {{}}\n"));
}

async fn folders_that_a_patch_leaves_empty_are_removed(on: On) {
    let workspace = on.workspace().await;
    for path in ["/a/b/c.txt", "/a/d.txt", "/m/n/x.txt", "/m/kept.txt"] {
        workspace.write(path, "x\n").await;
    }
    let deleted = "*** Begin Patch\n*** Delete File: a/b/c.txt\n*** Delete File: a/d.txt\n*** End Patch\n";
    apply(&workspace, &format!("{deleted}{}", rename("m/n/x.txt", "o/x.txt"))).await;
    assert_eq!(workspace.paths_below("/").await, ["/m", "/m/kept.txt", "/o", "/o/x.txt"]);
    undo_newest(&workspace).await;
    let all = ["/a", "/a/b", "/a/b/c.txt", "/a/d.txt", "/m", "/m/kept.txt", "/m/n", "/m/n/x.txt"];
    assert_eq!(workspace.paths_below("/").await, all);
}

async fn the_diff_of_a_renamed_file_has_no_lines(on: On) {
    let workspace = on.workspace().await;
    let text: String = (0..1_500).map(|n| n.to_string() + "\n").collect();
    let before = workspace.write("/a.txt", &text).await;
    let moved = apply(&workspace, &rename("a.txt", "d/b.txt")).await;
    assert_eq!(moved["diff"], "diff --git a/a.txt b/d/b.txt\nrename from a.txt\nrename to d/b.txt\n");
    assert_eq!(moved["files"], json!([{"path": "d/b.txt", "action": "move"}]));
    let file = workspace.get(&format!("/files/{}", text_at(&before, "/file_id"))).await.success();
    assert!(file.to_string().contains("/d/b.txt"), "it keeps its history: {file}");
}

async fn a_change_of_mode_alone_is_shown(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.sh", "echo\n").await;
    let patch = "diff --git a/a.sh b/a.sh\nold mode 100644\nnew mode 100755\n";
    let applied = apply(&workspace, patch).await;
    assert_eq!((&applied["diff"], &applied["filesModified"]), (&json!(patch), &json!(1)));
    let commits = workspace.get("/commits").await.success();
    let newest = text_at(&list_at(&commits, "/commits")[0], "/id").to_owned();
    let shown = workspace.get(&format!("/commits/{newest}/diff")).await.success();
    assert!(text_at(&shown, "/diff").starts_with("diff --git a/a.sh b/a.sh\nold mode 100"), "{shown}");
    assert!(text_at(&shown, "/diff").contains("\nnew mode 1007"), "{shown}");
}

async fn binary_patches_apply_to_the_bytes(on: On) {
    let workspace = on.workspace().await;
    // Created by git from texts in Latin-1 that are marked as binary.
    let patch = "diff --git a/x b/x\nindex 6f83395..030ede5 100644\nGIT binary patch\nliteral 5\n\
                 McmYdJOnbov00x8t9RL6T\n\nliteral 5\nMcmYdJOnb=%00xEv9smFU\n\n";
    let write = json!({"path": "x", "content": STANDARD.encode(b"caf\xe9\n"), "encoding": "base64"});
    SYSTEM.ok(&workspace, "write_file", write).await;
    apply(&workspace, patch).await;
    let read = SYSTEM.ok(&workspace, "read_file", json!({"path": "x", "encoding": "base64"})).await;
    assert_eq!(STANDARD.decode(text_at(&read, "/content")).unwrap(), b"caf\xe8\n");
    refused(&workspace, 409, "ALREADY_APPLIED", patch).await;
}

async fn a_file_moves_below_its_own_name_and_back(on: On) {
    let workspace = on.workspace().await;
    let before = workspace.write("/bs", "x\ny\n").await;
    let moved = apply(&workspace, &rename("bs", "bs/bs")).await;
    assert_eq!(moved["files"], json!([{"path": "bs/bs", "action": "move"}]));
    assert_eq!(workspace.paths_below("/").await, ["/bs", "/bs/bs"]);
    assert_eq!(workspace.text("/bs/bs").await, "x\ny\n");
    let file = workspace.get(&format!("/files/{}", text_at(&before, "/file_id"))).await.success();
    assert!(file.to_string().contains("/bs/bs"), "it keeps its history: {file}");
    let commits = workspace.get("/commits").await.success();
    let newest = text_at(&list_at(&commits, "/commits")[0], "/id").to_owned();
    let shown = workspace.get(&format!("/commits/{newest}/diff")).await.success();
    assert!(text_at(&shown, "/diff").contains("rename from bs\nrename to bs/bs\n"), "{shown}");
    undo_newest(&workspace).await;
    assert_eq!(workspace.text("/bs").await, "x\ny\n");
    let changed = format!("{}--- a/bs\n+++ b/bs/bs\n@@ -1,2 +1,2 @@\n-x\n+X\n y\n", rename("bs", "bs/bs"));
    apply(&workspace, &changed).await;
    assert_eq!(workspace.text("/bs/bs").await, "X\ny\n");
    apply(&workspace, &rename("bs/bs", "bs")).await;
    assert_eq!(workspace.paths_below("/").await, ["/bs"]);
    assert_eq!(workspace.text("/bs").await, "X\ny\n");
    // A folder that holds something else is in the way.
    workspace.write("/d/one", "1\n").await;
    workspace.write("/d/other", "2\n").await;
    let reply = workspace.call_of("coding", "apply_patch", &json!({"patchText": rename("d/one", "d")})).await;
    assert!((400..500).contains(&reply.status), "{reply}");
    assert_eq!(workspace.paths_below("/d").await, ["/d/one", "/d/other"]);
}

async fn files_swap_names(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a", "A\n").await;
    workspace.write("/b", "B\n").await;
    apply(&workspace, &format!("{}{}", rename("b", "a"), rename("a", "b"))).await;
    assert_eq!((workspace.text("/a").await.as_str(), workspace.text("/b").await.as_str()), ("B\n", "A\n"));
    assert_eq!(workspace.paths_below("/").await, ["/a", "/b"]);
    undo_newest(&workspace).await;
    assert_eq!((workspace.text("/a").await.as_str(), workspace.text("/b").await.as_str()), ("A\n", "B\n"));
    // A file makes way for a folder of its name, in whatever order the patch has them.
    let deleted = "diff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-A\n";
    let created = "diff --git a/a/n b/a/n\nnew file mode 100644\n--- /dev/null\n+++ b/a/n\n@@ -0,0 +1 @@\n+n\n";
    apply(&workspace, &format!("{created}{deleted}")).await;
    assert_eq!(workspace.paths_below("/").await, ["/a", "/a/n", "/b"]);
    undo_newest(&workspace).await;
    assert_eq!(workspace.paths_below("/").await, ["/a", "/b"]);
}

async fn files_are_counted_once(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a", "1\n2\n").await;
    let patch = "*** Begin Patch\n*** Update File: a\n-1\n+one\n*** Update File: a\n-2\n+two\n*** End Patch\n";
    let applied = apply(&workspace, patch).await;
    assert_eq!(
        (&applied["filesModified"], &applied["files"]),
        (&json!(1), &json!([{"path": "a", "action": "update"}]))
    );
}

async fn a_text_in_other_case_or_with_other_spaces_is_shown(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "first\n  total = computeSum( items );  // all\nlast\n").await;
    let edit = |old: &str| json!({"filePath": "a.txt", "oldString": old, "newString": "x"});
    for (old, overlooked) in [("ComputeSum( items )", "upper and lower case"), ("computeSum(items)", "spaces")] {
        let message = CODING.refused(&workspace, 400, "STRING_NOT_FOUND", "edit", edit(old)).await;
        assert!(message.contains("line 2 would match") && message.contains(overlooked), "{message}");
        assert!(message.contains("computeSum( items )"), "what is there is shown: {message}");
    }
}

async fn several_matches_in_a_line_are_reported_by_column(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "f(x, x, x)\n").await;
    let args = json!({"filePath": "a.txt", "oldString": "x", "newString": "y"});
    let message = CODING.refused(&workspace, 400, "STRING_NOT_UNIQUE", "edit", args).await;
    assert!(message.contains("found 3 times") && message.contains("line 1, columns 3, 6 and 9"), "{message}");
}

async fn edits_are_counted_from_one(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "a\n").await;
    let edits = json!([{"oldString": "a", "newString": "b"}, {"oldString": "nothing", "newString": "x"}]);
    let args = json!({"filePath": "a.txt", "edits": edits});
    let message = CODING.refused(&workspace, 400, "STRING_NOT_FOUND", "multiedit", args).await;
    assert!(message.starts_with("String not found in file: \"nothing...\"\n"), "{message}");
    assert!(message.contains("edit 2 of 2: "), "{message}");
    let patches = json!([{"find": "a", "replace": "b"}, {"find": "nothing", "replace": "x"}]);
    let args = json!({"path": "a.txt", "patches": patches});
    let message = FILE.refused(&workspace, 400, "find_not_found", "file.patch", args).await;
    assert!(message.contains("edit 2 of 2: "), "{message}");
}

async fn a_patch_ends_when_its_caller_disconnects(on: On) {
    let server = on.options().env("TOOLREST__LIMITS__CALL_TIMEOUT_MS", "2000").start();
    let workspace = on.workspace_at(&server).await;
    let text: String = (0..100_000).map(|n| format!("line number {n} of many\n")).collect::<Vec<_>>().concat();
    workspace.write("/large.txt", &text).await;
    let edit = |n: usize| json!({"oldString": format!("line number {n} of"), "newString": format!("{n} is one of")});
    let edits: Vec<Value> = (0..40_000).map(edit).collect();
    let reply = workspace.call_of("coding", "multiedit", &json!({"filePath": "large.txt", "edits": edits})).await;
    assert_eq!(reply.status, 504, "{reply}");
    // A busy thread is in this state also while others have all processors; the threads of an idle server sleep.
    let runs = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|state| state.trim_start().starts_with('R'))
    };
    let is_busy = || fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap().flatten().any(runs);
    let (begun, mut idle_checks) = (Instant::now(), 0);
    while idle_checks < 20 {
        assert!(begun.elapsed() < Duration::from_secs(6), "the server is still busy with an edit that timed out");
        tokio::time::sleep(Duration::from_millis(10)).await;
        idle_checks = if is_busy() { 0 } else { idle_checks + 1 };
    }
}

async fn absolute_paths_inside_the_folder_are_accepted(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    fs::write(folder.join("a.txt"), "one\n").unwrap();
    let name = folder.join("a.txt").display().to_string();
    apply(&workspace, &format!("--- {name}\n+++ {name}\n@@ -1 +1 @@\n-one\n+1\n")).await;
    let new = folder.join("d/new.txt").display().to_string();
    apply(
        &workspace,
        &format!("*** Begin Patch\n*** Update File: {name}\n-1\n+2\n*** Add File: {new}\n+x\n*** End Patch"),
    )
    .await;
    assert_eq!(fs::read_to_string(folder.join("a.txt")).unwrap(), "2\n");
    assert_eq!(fs::read_to_string(folder.join("d/new.txt")).unwrap(), "x\n");
    let outside = "*** Begin Patch\n*** Add File: /etc/evil.txt\n+x\n*** End Patch\n";
    refused(&workspace, 400, "PATH_OUTSIDE_WORKSPACE", outside).await;
}

async fn modes_survive_a_rename_below_the_own_name(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    fs::write(folder.join("bs"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(folder.join("bs"), fs::Permissions::from_mode(0o755)).unwrap();
    apply(&workspace, &rename("bs", "bs/bs")).await;
    assert_eq!(fs::metadata(folder.join("bs/bs")).unwrap().permissions().mode() & 0o777, 0o755);
    let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["bs"], "nothing is left behind");
}

async fn a_folder_with_something_else_in_it_stays(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    fs::create_dir_all(folder.join("d/e")).unwrap();
    fs::write(folder.join("d/e/x"), "x\n").unwrap();
    fs::write(folder.join("d/.gitignore"), "e/junk\n").unwrap();
    fs::write(folder.join("d/e/junk"), "").unwrap();
    apply(&workspace, "*** Begin Patch\n*** Delete File: d/e/x\n*** Delete File: d/.gitignore\n*** End Patch\n").await;
    assert!(folder.join("d/e/junk").exists() && !folder.join("d/e/x").exists());
}
