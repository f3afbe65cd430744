//! The history of folders that others change too: versions, undo, crashes.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::{Account, Port, Workspace, sha256_hex, unique_email};

use crate::folders::folder_workspace;
use crate::on::{On, list_at, text_at};
use crate::toolset::CODING;

on!(folder, Folder:
    changes_by_others_are_visible_at_once,
    a_change_by_others_is_kept_as_a_version,
    files_that_others_removed_are_removed_from_the_record,
    undo_brings_back_bytes_modes_and_names,
    a_patch_sets_modes_and_undo_takes_them_back,
    removing_a_link_keeps_its_target,
    a_file_with_several_names_keeps_them,
    changes_over_the_limits_of_history_have_a_warning,
    two_workspaces_of_one_folder_lose_nothing
);

on!(folder_on_postgres, FolderOnPostgres:
    changes_by_others_are_visible_at_once,
    a_change_by_others_is_kept_as_a_version,
    files_that_others_removed_are_removed_from_the_record,
    undo_brings_back_bytes_modes_and_names,
    a_patch_sets_modes_and_undo_takes_them_back,
    removing_a_link_keeps_its_target,
    changes_over_the_limits_of_history_have_a_warning,
    two_workspaces_of_one_folder_lose_nothing
);

async fn undo_last(workspace: &Workspace) -> Value {
    let listed = workspace.get("/commits").await.success();
    workspace.post(&format!("/commits/{}/undo", text_at(&listed, "/commits/0/id")), &json!({})).await.success()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

async fn changes_by_others_are_visible_at_once(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    let written = workspace.write("/a.txt", "one\n").await;
    fs::write(folder.join("a.txt"), "two\n").unwrap();
    assert_eq!(workspace.text("/a.txt").await, "two\n");
    let stale = json!({
        "path": "/a.txt", "old_string": "two", "new_string": "2", "last_read_hash": written["hash"],
    });
    workspace.refused(409, "CONFLICT", "edit", stale).await;
    assert_eq!(fs::read_to_string(folder.join("a.txt")).unwrap(), "two\n");
    fs::remove_file(folder.join("a.txt")).unwrap();
    workspace.refused(404, "NOT_FOUND", "read", json!({"path": "/a.txt"})).await;
    fs::create_dir(folder.join("a.txt")).unwrap();
    fs::write(folder.join("a.txt/inside"), "x").unwrap();
    assert_eq!(workspace.paths_below("/").await, ["/a.txt", "/a.txt/inside"]);
    workspace.write("/a.txt/inside", "y").await;
    assert_eq!(fs::read_to_string(folder.join("a.txt/inside")).unwrap(), "y");
}

async fn a_change_by_others_is_kept_as_a_version(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    let file = workspace.write("/a.txt", "one").await;
    fs::write(folder.join("a.txt"), "two").unwrap();
    let first = text_at(&workspace.get("/commits").await.success(), "/commits/0/id").to_owned();
    // Undo must not take away what somebody else wrote.
    workspace.post(&format!("/commits/{first}/undo"), &json!({})).await.refused(409, "CONFLICT");
    workspace.write("/a.txt", "three").await;
    let versions = workspace.get(&format!("/files/{}/versions", text_at(&file, "/file_id"))).await.success();
    let hashes: Vec<_> = list_at(&versions, "/versions").iter().map(|version| version["hash"].clone()).collect();
    assert_eq!(hashes, [sha256_hex(b"three"), sha256_hex(b"two"), sha256_hex(b"one")]);
    undo_last(&workspace).await;
    assert_eq!(fs::read_to_string(folder.join("a.txt")).unwrap(), "two");
}

async fn files_that_others_removed_are_removed_from_the_record(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    let first = workspace.write("/dir/a.txt", "one").await;
    workspace.write("/dir/sub/b.txt", "two").await;
    fs::remove_dir_all(folder.join("dir")).unwrap();
    workspace.write("/other.txt", "x").await;
    workspace.ok("mkdir", json!({"path": "/new"})).await;
    fs::write(folder.join("new/b.txt"), "y").unwrap();
    // Where the record still shows the old folder, another can be moved to, with all that is in it.
    workspace.ok("mv", json!({"source": "/new", "destination": "/dir"})).await;
    assert_eq!(workspace.paths_below("/").await, ["/dir", "/dir/b.txt", "/other.txt"]);
    let second = workspace.write("/dir/a.txt", "again").await;
    assert_ne!(first["file_id"], second["file_id"]);
    let trash = workspace.get("/trash").await.success();
    assert!(list_at(&trash, "/files").iter().any(|file| file["id"] == first["file_id"]), "{trash}");
}

async fn undo_brings_back_bytes_modes_and_names(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    let script = folder.join("bin/run.sh");
    fs::create_dir(folder.join("bin")).unwrap();
    fs::write(&script, b"#!/bin/sh\r\necho \xff\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(folder.join("bin"), fs::Permissions::from_mode(0o710)).unwrap();
    workspace.ok("rm", json!({"path": "/bin/run.sh"})).await;
    assert!(!script.exists());
    undo_last(&workspace).await;
    assert_eq!(fs::read(&script).unwrap(), b"#!/bin/sh\r\necho \xff\n");
    assert_eq!(mode(&script), 0o751);
    workspace.write("/bin/run.sh", "text\n").await;
    assert_eq!(mode(&script), 0o751, "a write keeps the mode");
    undo_last(&workspace).await;
    assert_eq!((fs::read(&script).unwrap().len(), mode(&script)), (18, 0o751));
    workspace.ok("mv", json!({"source": "/bin", "destination": "/tools"})).await;
    assert_eq!(mode(&folder.join("tools/run.sh")), 0o751);
    undo_last(&workspace).await;
    assert_eq!(workspace.paths_below("/").await, ["/bin", "/bin/run.sh"]);
    // A whole tree, removed and brought back.
    let args = json!({"tool": "delete_file", "args": {"path": "bin", "recursive": true}});
    workspace.post("/toolsets/system", &args).await.success();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    undo_last(&workspace).await;
    assert_eq!(fs::read(&script).unwrap(), b"#!/bin/sh\r\necho \xff\n");
    assert_eq!((mode(&script), mode(&folder.join("bin"))), (0o751, 0o710));
}

async fn a_patch_sets_modes_and_undo_takes_them_back(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    let (new, old) = (folder.join("new.sh"), folder.join("old.sh"));
    fs::write(&old, "x\n").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
    let patch = "diff --git a/new.sh b/new.sh\nnew file mode 100755\n--- /dev/null\n+++ b/new.sh\n@@ -0,0 +1 @@\n+run\n\
                 diff --git a/old.sh b/old.sh\nold mode 100644\nnew mode 100755\n";
    CODING.ok(&workspace, "apply_patch", json!({"patchText": patch})).await;
    assert_eq!((mode(&new), mode(&old)), (0o755, 0o750));
    assert_eq!(fs::read_to_string(&old).unwrap(), "x\n");
    undo_last(&workspace).await;
    assert_eq!((new.exists(), mode(&old)), (false, 0o640));
    undo_last(&workspace).await;
    assert_eq!((mode(&new), mode(&old)), (0o755, 0o750), "an undo can be undone");
    let patch = "diff --git a/old.sh b/old.sh\nold mode 100755\nnew mode 100644\n--- a/old.sh\n+++ b/old.sh\n@@ -1 +1 @@\n-x\n+y\n";
    CODING.ok(&workspace, "apply_patch", json!({"patchText": patch})).await;
    assert_eq!((mode(&old), &fs::read_to_string(&old).unwrap()[..]), (0o640, "y\n"));
}

async fn removing_a_link_keeps_its_target(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    fs::write(folder.join("target.txt"), "inside").unwrap();
    symlink("target.txt", folder.join("near")).unwrap();
    symlink("/etc/hostname", folder.join("far")).unwrap();
    for link in ["near", "far"] {
        workspace.ok("rm", json!({"path": format!("/{link}")})).await;
        assert!(!folder.join(link).is_symlink());
        let commit = text_at(&workspace.get("/commits").await.success(), "/commits/0/id").to_owned();
        workspace.post(&format!("/commits/{commit}/undo"), &json!({})).await.refused(409, "CONFLICT");
        assert!(!folder.join(link).exists());
    }
    assert_eq!(fs::read_to_string(folder.join("target.txt")).unwrap(), "inside");
    // Nor does what lies in a folder go with a link to it.
    fs::create_dir_all(folder.join("tree/deep")).unwrap();
    fs::write(folder.join("tree/deep/leaf"), "green").unwrap();
    symlink("tree", folder.join("shortcut")).unwrap();
    let args = json!({"tool": "delete_file", "args": {"path": "shortcut", "recursive": true}});
    let gone = workspace.post("/toolsets/system", &args).await.success();
    assert_eq!(gone["value"]["deleted"], json!(["shortcut"]));
    assert!(!folder.join("shortcut").is_symlink());
    assert_eq!(fs::read_to_string(folder.join("tree/deep/leaf")).unwrap(), "green");
}

async fn a_file_with_several_names_keeps_them(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    fs::write(folder.join("one"), "text").unwrap();
    fs::hard_link(folder.join("one"), folder.join("two")).unwrap();
    let written = workspace.write("/one", "changed").await;
    assert_eq!(fs::read_to_string(folder.join("two")).unwrap(), "changed");
    assert_eq!(fs::metadata(folder.join("one")).unwrap().nlink(), 2);
    assert!(text_at(&written, "/warnings/0").contains("/one was changed in place"), "{written}");
    assert!(workspace.write("/other", "x").await.get("warnings").is_none());
}

async fn changes_over_the_limits_of_history_have_a_warning(on: On) {
    let server = on.options().env("TOOLREST__FOLDERS__HISTORY_FILE_BYTES", "1000").start();
    let account = Account::register(&server.client(), &unique_email("someone")).await;
    let folder = server.new_folder();
    let workspace = account.folder_workspace("Bench", &folder).await;
    fs::write(folder.join("large.txt"), "x".repeat(5000)).unwrap();
    let written = workspace.write("/large.txt", "small").await;
    assert!(text_at(&written, "/warnings/0").contains("/large.txt"), "{written}");
    let commit = text_at(&workspace.get("/commits").await.success(), "/commits/0/id").to_owned();
    workspace.post(&format!("/commits/{commit}/undo"), &json!({})).await.refused(404, "NOT_FOUND");
    assert_eq!(workspace.text("/large.txt").await, "small");
}

async fn two_workspaces_of_one_folder_lose_nothing(on: On) {
    const EDITS: usize = 40;
    let folder = on.shared().new_folder();
    let (one, other) = (on.account().await, on.account().await);
    let rooms = [one.folder_workspace("One", &folder).await, other.folder_workspace("Other", &folder).await];
    fs::write(folder.join("list.txt"), "end\n").unwrap();
    let mut edits = tokio::task::JoinSet::new();
    for n in 0..EDITS {
        let workspace = rooms[n % 2].clone();
        edits.spawn(async move {
            let args = json!({"path": "/list.txt", "old_string": "end\n", "new_string": format!("line {n}\nend\n")});
            workspace.ok("edit", args).await;
        });
    }
    edits.join_all().await;
    let text = fs::read_to_string(folder.join("list.txt")).unwrap();
    for n in 0..EDITS {
        assert!(text.contains(&format!("line {n}\n")), "edit {n} is missing from {text}");
    }
}

/// A patch that rewrites `files` files, each from one round's line to the next's.
fn patch(files: usize, round: usize) -> String {
    let next = round + 1;
    let one = |n| format!("--- a/f{n}\n+++ b/f{n}\n@@ -1 +1 @@\n-round {round}\n+round {next}\n");
    (0..files).map(one).collect::<Vec<_>>().concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_amid_a_commit_of_many_files_leaves_all_or_none() {
    const FILES: usize = 20;
    let mut server = On::Folder.options().start();
    let folder = server.new_folder();
    let account = Account::register(&server.client(), &unique_email("someone")).await;
    let mut workspace = account.folder_workspace("Bench", &folder).await;
    for n in 0..FILES {
        fs::write(folder.join(format!("f{n}")), "round 0\n").unwrap();
    }
    let (mut round, mut torn) = (0, 0);
    for kill in 0..40u64 {
        let body = json!({"tool": "apply_patch", "args": {"patchText": patch(FILES, round)}});
        let call = {
            let workspace = workspace.clone();
            tokio::spawn(async move { workspace.try_post("/toolsets/coding", &body).await })
        };
        // Another moment in each round.
        tokio::time::sleep(Duration::from_millis(kill * 4)).await;
        server.kill9();
        let acknowledged = call.await.unwrap().is_ok_and(|reply| reply.status == 200);
        server.restart(Port::New);
        workspace = workspace.through(&server.client());
        // The first look settles what was interrupted.
        workspace.paths_in("/").await;
        let texts: Vec<String> =
            (0..FILES).map(|n| fs::read_to_string(folder.join(format!("f{n}"))).unwrap()).collect();
        assert!(texts.iter().all(|text| *text == texts[0]), "kill {kill}: torn: {texts:?}");
        let made = texts[0] == format!("round {}\n", round + 1);
        assert!(made || texts[0] == format!("round {round}\n"), "kill {kill}: {texts:?}");
        assert!(made || !acknowledged, "kill {kill}: an acknowledged commit is lost");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), FILES, "kill {kill}: temporary files are left");
        if made {
            // What was made is recorded, and can be taken back.
            let done = undo_last(&workspace).await;
            assert_eq!(list_at(&done, "/commit/changes").len(), FILES);
            assert_eq!(fs::read_to_string(folder.join("f0")).unwrap(), format!("round {round}\n"));
            workspace
                .post("/toolsets/coding", &json!({"tool": "apply_patch", "args": {"patchText": patch(FILES, round)}}))
                .await
                .success();
            round += 1;
            torn += usize::from(!acknowledged);
        }
    }
    assert!(round > 0, "no commit was ever made before its kill");
    eprintln!("{round} of 40 were made, {torn} of them never acknowledged");
}
