//! ls, read, write, mkdir, touch and rm.

use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::{Workspace, eventually, sha256_hex};

use crate::on::{On, list_at, text_at};

on_every_backend![
    entries_are_sorted_by_path_folders_and_files_together,
    entries_carry_exactly_the_fields_of_the_specification,
    a_missing_folder_cannot_be_listed,
    thousands_of_entries_are_listed_whole,
    a_folder_cannot_be_read_or_edited,
    a_large_text_is_read_as_it_was_written,
    an_empty_text_is_a_text,
    every_write_makes_a_version_even_of_equal_content,
    the_root_cannot_be_written_removed_or_moved,
    a_nul_byte_in_a_content_is_refused,
    an_unknown_argument_is_refused_with_the_nearest_known_one,
    an_argument_of_the_wrong_type_is_refused_by_name,
    an_unknown_file_type_is_refused,
    a_write_of_type_folder_makes_a_folder,
    making_a_folder_twice_gives_the_same_folder,
    a_touch_moves_the_time_forward_and_nothing_else,
    a_touch_creates_an_empty_document_and_its_folders,
    a_folder_can_be_removed_once_it_is_empty,
    a_removed_path_can_be_written_again_as_a_new_file,
    a_refused_write_leaves_no_folders_behind;
    a_file_type_is_accepted_in_any_case,
];

async fn entries_are_sorted_by_path_folders_and_files_together(on: On) {
    let workspace = on.workspace().await;
    for path in ["/b", "/a/x", "/a.txt", "/a-b", "/a b", "/B", "/ä", "/a/X"] {
        workspace.write(path, path).await;
    }
    assert_eq!(workspace.paths_in("/").await, ["/B", "/a", "/a b", "/a-b", "/a.txt", "/b", "/ä"]);
    assert_eq!(workspace.paths_below("/").await, ["/B", "/a", "/a b", "/a-b", "/a.txt", "/a/X", "/a/x", "/b", "/ä"]);
}

async fn entries_carry_exactly_the_fields_of_the_specification(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/folder/a.md", "text").await;
    let listing = workspace.ok("ls", json!({"recursive": true})).await;
    assert_eq!(list_at(&listing, "/entries").len(), 2);
    for entry in list_at(&listing, "/entries") {
        let fields: Vec<_> = entry.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["name", "display_name", "path", "file_type", "is_virtual", "updated_at"], "{entry}");
    }
}

async fn a_missing_folder_cannot_be_listed(on: On) {
    let workspace = on.workspace().await;
    for recursive in [false, true] {
        workspace.refused(404, "NOT_FOUND", "ls", json!({"path": "/missing", "recursive": recursive})).await;
    }
}

/// Lists more than any page: `ls` of the `workspace` toolset has no paging, so the answer must be complete.
async fn thousands_of_entries_are_listed_whole(on: On) {
    const WRITERS: usize = 32;
    const COUNT: usize = 2_500;
    let workspace = on.workspace().await;
    workspace.ok("mkdir", json!({"path": "/many"})).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let workspace = workspace.clone();
            tokio::spawn(async move {
                for number in (writer..COUNT).step_by(WRITERS) {
                    workspace.ok("touch", json!({"path": format!("/many/{number:05}")})).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let expected: Vec<_> = (0..COUNT).map(|n| format!("/many/{n:05}")).collect();
    assert_eq!(workspace.paths_in("/many").await, expected);
    assert_eq!(workspace.paths_below("/many").await, expected);
}

async fn a_folder_cannot_be_read_or_edited(on: On) {
    let workspace = on.workspace().await;
    workspace.ok("mkdir", json!({"path": "/folder"})).await;
    for path in ["/folder", "/"] {
        let edit = json!({"path": path, "old_string": "a", "new_string": "b"});
        for (tool, args) in [("read", json!({"path": path})), ("edit", edit.clone()), ("edit-many", edit)] {
            workspace.refused(400, "VALIDATION_ERROR", tool, args).await;
        }
    }
}

async fn a_large_text_is_read_as_it_was_written(on: On) {
    let workspace = on.workspace().await;
    let text = "A line with ünïcode, \"quotes\", \\ and a tab\t.\r\n".repeat(100_000);
    let written = workspace.write("/large.txt", &text).await;
    assert_eq!(written["hash"], sha256_hex(&text));
    assert!(workspace.text("/large.txt").await == text, "bytes changed");
}

async fn an_empty_text_is_a_text(on: On) {
    let workspace = on.workspace().await;
    let written = workspace.write("/empty.txt", "").await;
    assert_eq!(written["hash"], sha256_hex(""));
    assert_eq!(workspace.text("/empty.txt").await, "");
}

async fn every_write_makes_a_version_even_of_equal_content(on: On) {
    let workspace = on.workspace().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let written = workspace.write("/same.txt", "same").await;
        ids.push(text_at(&written, "/version_id").to_owned());
    }
    let file = workspace.write("/same.txt", "same").await;
    ids.push(text_at(&file, "/version_id").to_owned());
    let versions = versions(&workspace, text_at(&file, "/file_id")).await;
    let listed: Vec<_> = versions.iter().map(|v| text_at(v, "/id")).collect();
    ids.reverse();
    assert_eq!(listed, ids, "newest first");
}

async fn versions(workspace: &Workspace, file: &str) -> Vec<Value> {
    let reply = workspace.get(&format!("/files/{file}/versions")).await;
    list_at(&reply.success(), "/versions").to_vec()
}

async fn the_root_cannot_be_written_removed_or_moved(on: On) {
    let workspace = on.workspace().await;
    for root in ["/", "", "/..", "//"] {
        for (tool, args) in [
            ("write", json!({"path": root, "content": "text"})),
            ("rm", json!({"path": root})),
            ("mv", json!({"source": root, "destination": "/x"})),
        ] {
            workspace.refused(400, "VALIDATION_ERROR", tool, args).await;
        }
    }
}

async fn a_nul_byte_in_a_content_is_refused(on: On) {
    let workspace = on.workspace().await;
    let before = workspace.write("/a.txt", "before").await;
    for (tool, args) in [
        ("write", json!({"path": "/a.txt", "content": "a\0b"})),
        ("write", json!({"path": "/a.txt", "content": {"text": "a\0b"}})),
        ("edit", json!({"path": "/a.txt", "old_string": "before", "new_string": "\0"})),
    ] {
        workspace.refused(400, "VALIDATION_ERROR", tool, args).await;
    }
    assert_eq!(workspace.read("/a.txt").await["hash"], before["hash"]);
}

async fn an_unknown_argument_is_refused_with_the_nearest_known_one(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "text").await;
    let edit = json!({"path": "/a.txt", "old_string": "text", "new_string": "x", "last_read_hsh": "0"});
    for (tool, args, unknown, nearest) in [
        ("ls", json!({"pth": "/"}), "pth", "path"),
        ("ls", json!({"recursiv": true}), "recursiv", "recursive"),
        ("write", json!({"path": "/a.txt", "content": "x", "filetype": "document"}), "filetype", "file_type"),
        ("edit", edit, "last_read_hsh", "last_read_hash"),
        ("mv", json!({"source": "/a.txt", "destination": "/b", "destinatoin": "/c"}), "destinatoin", "destination"),
    ] {
        let body = workspace.refused(400, "VALIDATION_ERROR", tool, args).await;
        let message = text_at(&body, "/error");
        assert!(message.contains(unknown), "{body} does not name {unknown}");
        assert!(message.contains(nearest), "{body} does not offer {nearest}");
        assert!(body["fields"][unknown].is_string(), "{body}");
    }
    assert_eq!(workspace.text("/a.txt").await, "text");
}

async fn an_argument_of_the_wrong_type_is_refused_by_name(on: On) {
    let workspace = on.workspace().await;
    for (tool, args, field) in [
        ("read", json!({"path": 5}), "path"),
        ("read", json!({"path": null}), "path"),
        ("ls", json!({"path": ["/"]}), "path"),
        ("ls", json!({"recursive": "sometimes"}), "recursive"),
    ] {
        let body = workspace.refused(400, "VALIDATION_ERROR", tool, args).await;
        assert!(body["fields"][field].is_string(), "{body}");
    }
}

async fn a_file_type_is_accepted_in_any_case(on: On) {
    let workspace = on.workspace().await;
    for (path, given) in [("/a", "canvas"), ("/b", "Canvas"), ("/c", "CANVAS")] {
        let args = json!({"path": path, "content": {}, "file_type": given});
        workspace.ok("write", args).await;
    }
    let listing = workspace.ok("ls", json!({})).await;
    for entry in list_at(&listing, "/entries") {
        assert_eq!(entry["file_type"], "Canvas");
    }
}

async fn an_unknown_file_type_is_refused(on: On) {
    let workspace = on.workspace().await;
    let args = json!({"path": "/a", "content": {}, "file_type": "spreadsheet"});
    let body = workspace.refused(400, "VALIDATION_ERROR", "write", args).await;
    assert!(text_at(&body, "/error").contains("spreadsheet"), "{body}");
}

async fn a_write_of_type_folder_makes_a_folder(on: On) {
    let workspace = on.workspace().await;
    let args = json!({"path": "/new/folder", "content": {}, "file_type": "folder"});
    workspace.ok("write", args).await;
    let listing = workspace.ok("ls", json!({"path": "/new"})).await;
    assert_eq!(listing["entries"][0]["file_type"], "Folder", "{listing}");
    workspace.write("/new/folder/a.md", "text").await;
}

async fn making_a_folder_twice_gives_the_same_folder(on: On) {
    let workspace = on.workspace().await;
    let made = workspace.ok("mkdir", json!({"path": "/a/b"})).await;
    workspace.write("/a/b/c.md", "text").await;
    let again = workspace.ok("mkdir", json!({"path": "/a/b/"})).await;
    assert_eq!(made["file_id"], again["file_id"]);
    assert_eq!(workspace.paths_in("/a/b").await, ["/a/b/c.md"]);
}

async fn a_touch_moves_the_time_forward_and_nothing_else(on: On) {
    let workspace = on.workspace().await;
    let written = workspace.write("/a.txt", "text").await;
    let updated_at = async || {
        let listing = workspace.ok("ls", json!({})).await;
        text_at(&listing, "/entries/0/updated_at").to_owned()
    };
    let before = updated_at().await;
    // The clock may be too coarse to show a single touch.
    let after = eventually("the time moved", Duration::from_secs(5), async || {
        let touched = workspace.ok("touch", json!({"path": "/a.txt"})).await;
        assert_eq!(touched["file_id"], written["file_id"]);
        Some(updated_at().await).filter(|after| *after != before)
    })
    .await;
    assert!(sortable(&after) > sortable(&before), "{before} -> {after}");
    let read = workspace.read("/a.txt").await;
    assert_eq!(read["content"], "text");
    assert_eq!(read["hash"], written["hash"]);
}

/// Makes times comparable as text, whatever the number of their decimals.
fn sortable(timestamp: &str) -> String {
    let time = timestamp.trim_end_matches('Z');
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    format!("{seconds}.{fraction:0<9}")
}

async fn a_touch_creates_an_empty_document_and_its_folders(on: On) {
    let workspace = on.workspace().await;
    workspace.ok("touch", json!({"path": "/a/b/c.txt"})).await;
    assert_eq!(workspace.text("/a/b/c.txt").await, "");
    let listing = workspace.ok("ls", json!({"path": "/a/b"})).await;
    assert_eq!(listing["entries"][0]["file_type"], "Document");
    assert_eq!(workspace.paths_below("/").await, ["/a", "/a/b", "/a/b/c.txt"]);
}

async fn a_folder_can_be_removed_once_it_is_empty(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a/b/c.txt", "text").await;
    for folder in ["/a", "/a/b"] {
        workspace.refused(409, "CONFLICT", "rm", json!({"path": folder})).await;
    }
    for path in ["/a/b/c.txt", "/a/b", "/a"] {
        workspace.ok("rm", json!({"path": path})).await;
    }
    assert!(workspace.paths_below("/").await.is_empty());
    workspace.refused(404, "NOT_FOUND", "rm", json!({"path": "/a"})).await;
}

async fn a_removed_path_can_be_written_again_as_a_new_file(on: On) {
    let workspace = on.workspace().await;
    let old = workspace.write("/a.txt", "old").await;
    workspace.ok("rm", json!({"path": "/a.txt"})).await;
    let new = workspace.write("/a.txt", "new").await;
    assert_ne!(old["file_id"], new["file_id"]);
    assert_eq!(versions(&workspace, text_at(&new, "/file_id")).await.len(), 1);
    workspace.ok("rm", json!({"path": "/a.txt"})).await;
    workspace.ok("mkdir", json!({"path": "/a.txt"})).await;
    assert_eq!(workspace.paths_in("/").await, ["/a.txt"]);
}

async fn a_refused_write_leaves_no_folders_behind(on: On) {
    let workspace = on.workspace().await;
    let args = json!({"path": "/a/b/c.canvas", "content": "no object", "file_type": "canvas"});
    workspace.refused(400, "VALIDATION_ERROR", "write", args).await;
    assert!(workspace.paths_below("/").await.is_empty());
}
