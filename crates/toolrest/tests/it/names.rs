//! Names and paths.

use serde_json::json;

use crate::on::{On, list_at};
use crate::toolset::{CODING, FILE, SYSTEM};

on_every_backend![
    a_file_is_read_under_the_very_name_it_was_written,
    a_name_keeps_the_spaces_that_do_not_surround_the_whole_path,
    composed_and_decomposed_letters_are_different_names,
    names_that_differ_in_case_are_different_files,
    dots_are_resolved_as_from_a_posix_root,
    the_answer_carries_the_normalised_path,
    a_name_of_three_dots_is_a_name,
    control_characters_in_a_path_are_refused_by_every_tool,
    a_nul_byte_in_a_path_is_refused_by_every_tool,
    a_name_of_255_bytes_is_kept_and_one_of_256_is_refused,
    underscore_and_percent_are_ordinary_characters,
    a_folder_does_not_list_folders_of_similar_names,
    a_path_through_a_file_is_a_conflict,
    names_keep_the_spaces_around_them_in_every_toolset_but_workspace,
    the_workspace_toolset_trims_a_path_unless_a_file_has_the_untrimmed_name,
    every_toolset_accepts_paths_as_programs_print_them,
    a_folder_that_is_named_workspace_is_found_by_its_own_name,
];

async fn a_file_is_read_under_the_very_name_it_was_written(on: On) {
    let workspace = on.workspace().await;
    let names = [
        "README.md",
        "My Notes (1).txt",
        "Ünï©ödé ✓.md",
        "日本語.txt",
        "👩‍💻.rs",
        "quote'\"back\\slash.txt",
        "semi;colon&amp<>.txt",
        "-rf",
        ".hidden",
        "trailing.dot.",
        "$1 ${x} %s {0}.txt",
    ];
    for name in names {
        let path = format!("/{name}");
        let written = workspace.write(&path, name).await;
        assert_eq!(written["path"], path);
        assert_eq!(workspace.text(&path).await, name);
    }
    let listing = workspace.ok("ls", json!({})).await;
    for name in names {
        let entry = list_at(&listing, "/entries")
            .iter()
            .find(|entry| entry["name"] == name)
            .unwrap_or_else(|| panic!("{name} is not listed: {listing}"));
        assert_eq!(entry["display_name"], name, "no slug is made");
        assert_eq!(entry["path"], format!("/{name}"));
    }
    assert_eq!(list_at(&listing, "/entries").len(), names.len());
}

async fn a_name_keeps_the_spaces_that_do_not_surround_the_whole_path(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/folder / lead.txt", "text").await;
    assert_eq!(workspace.paths_below("/").await, ["/folder ", "/folder / lead.txt"]);
    assert_eq!(workspace.text("  /folder / lead.txt  ").await, "text");
}

async fn composed_and_decomposed_letters_are_different_names(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/caf\u{e9}.txt", "composed").await;
    workspace.write("/cafe\u{301}.txt", "decomposed").await;
    assert_eq!(workspace.text("/caf\u{e9}.txt").await, "composed");
    assert_eq!(workspace.text("/cafe\u{301}.txt").await, "decomposed");
}

async fn names_that_differ_in_case_are_different_files(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/Readme.md", "one").await;
    workspace.write("/README.md", "other").await;
    assert_eq!(workspace.text("/Readme.md").await, "one");
    assert_eq!(workspace.paths_in("/").await, ["/README.md", "/Readme.md"]);
}

async fn dots_are_resolved_as_from_a_posix_root(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a/b.txt", "text").await;
    for path in [
        "/a/b.txt",
        "a/b.txt",
        "/../a/b.txt",
        "../../a/b.txt",
        "/a/../a/./b.txt",
        "/missing/../a/b.txt",
        "//a///b.txt",
        "/a/b.txt/",
        " /a/b.txt\n",
    ] {
        let read = workspace.read(path).await;
        assert_eq!(read["content"], "text", "{path:?}");
        assert_eq!(read["path"], "/a/b.txt", "{path:?}");
    }
    for root in ["/", "/..", "/../..", "/a/..", "//", "/.", "."] {
        let listing = workspace.ok("ls", json!({"path": root})).await;
        assert_eq!(listing["path"], "/", "{root:?}");
        assert_eq!(list_at(&listing, "/entries").len(), 1, "{root:?}");
    }
}

async fn the_answer_carries_the_normalised_path(on: On) {
    let workspace = on.workspace().await;
    assert_eq!(workspace.write(" x//y/ ", "text").await["path"], "/x/y");
    let made = workspace.ok("mkdir", json!({"path": "d/./e//"})).await;
    assert_eq!(made["path"], "/d/e");
    let touched = workspace.ok("touch", json!({"path": "/d/e/../t"})).await;
    assert_eq!(touched["path"], "/d/t");
    let moved = workspace.ok("mv", json!({"source": "x//y", "destination": "//d/e/./"})).await;
    assert_eq!(moved["from_path"], "/x/y");
    assert_eq!(moved["to_path"], "/d/e/y");
    let removed = workspace.ok("rm", json!({"path": "d//t"})).await;
    assert_eq!(removed["path"], "/d/t");
}

async fn a_name_of_three_dots_is_a_name(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/.../..a", "text").await;
    assert_eq!(workspace.paths_below("/").await, ["/...", "/.../..a"]);
}

/// Calls every tool with this path; each must refuse it as an argument.
async fn every_tool_refuses(on: On, path: &str) {
    let workspace = on.workspace().await;
    workspace.write("/kept.txt", "kept").await;
    for (tool, args) in [
        ("ls", json!({"path": path})),
        ("read", json!({"path": path})),
        ("write", json!({"path": path, "content": "text"})),
        ("rm", json!({"path": path})),
        ("touch", json!({"path": path})),
        ("mkdir", json!({"path": path})),
        ("mv", json!({"source": path, "destination": "/other"})),
        ("mv", json!({"source": "/kept.txt", "destination": path})),
        ("edit", json!({"path": path, "old_string": "a", "new_string": "b"})),
        ("edit-many", json!({"path": path, "old_string": "a", "new_string": "b"})),
    ] {
        workspace.refused(400, "VALIDATION_ERROR", tool, args).await;
    }
    assert_eq!(workspace.paths_below("/").await, ["/kept.txt"]);
}

async fn control_characters_in_a_path_are_refused_by_every_tool(on: On) {
    for control in ["\u{1}", "\n", "\t", "\r", "\u{1b}", "\u{7f}"] {
        every_tool_refuses(on, &format!("/a{control}b")).await;
    }
}

async fn a_nul_byte_in_a_path_is_refused_by_every_tool(on: On) {
    every_tool_refuses(on, "/a\0b").await;
    every_tool_refuses(on, "/folder\0/b").await;
}

async fn a_name_of_255_bytes_is_kept_and_one_of_256_is_refused(on: On) {
    let workspace = on.workspace().await;
    for longest in ["n".repeat(255), format!("n{}", "é".repeat(127))] {
        let path = format!("/{longest}/{longest}");
        workspace.write(&path, "text").await;
        assert_eq!(workspace.text(&path).await, "text");
    }
    for too_long in ["n".repeat(256), "é".repeat(128)] {
        every_tool_refuses(on, &format!("/{too_long}")).await;
        every_tool_refuses(on, &format!("/{too_long}/x")).await;
    }
}

async fn underscore_and_percent_are_ordinary_characters(on: On) {
    let workspace = on.workspace().await;
    for path in ["/a_b/in.txt", "/axb/in.txt", "/50%/in.txt", "/50x/in.txt"] {
        workspace.write(path, path).await;
    }
    for (folder, only) in [("/a_b", "/a_b/in.txt"), ("/50%", "/50%/in.txt")] {
        assert_eq!(workspace.paths_in(folder).await, [only]);
        assert_eq!(workspace.paths_below(folder).await, [only]);
    }
    for pattern in ["/a%", "/%", "/_x_", "/50_", "/*"] {
        workspace.refused(404, "NOT_FOUND", "ls", json!({"path": pattern})).await;
        workspace.refused(404, "NOT_FOUND", "read", json!({"path": pattern})).await;
    }
    workspace.ok("rm", json!({"path": "/a_b/in.txt"})).await;
    workspace.ok("rm", json!({"path": "/a_b"})).await;
    assert_eq!(workspace.paths_in("/axb").await, ["/axb/in.txt"]);
}

async fn a_folder_does_not_list_folders_of_similar_names(on: On) {
    let workspace = on.workspace().await;
    for path in ["/pre/a", "/prefix/x", "/pre-b", "/pre.c", "/pre b"] {
        workspace.write(path, path).await;
    }
    assert_eq!(workspace.paths_in("/pre").await, ["/pre/a"]);
    assert_eq!(workspace.paths_below("/pre").await, ["/pre/a"]);
    workspace.ok("rm", json!({"path": "/pre/a"})).await;
    workspace.ok("rm", json!({"path": "/pre"})).await;
    assert_eq!(workspace.paths_in("/prefix").await, ["/prefix/x"]);
}

async fn a_path_through_a_file_is_a_conflict(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/file.txt", "text").await;
    workspace.write("/other.txt", "text").await;
    for (tool, args) in [
        ("write", json!({"path": "/file.txt/a", "content": "x"})),
        ("write", json!({"path": "/file.txt/a/b", "content": "x"})),
        ("touch", json!({"path": "/file.txt/a"})),
        ("mkdir", json!({"path": "/file.txt/a"})),
        ("mkdir", json!({"path": "/file.txt"})),
        ("mv", json!({"source": "/other.txt", "destination": "/file.txt/a"})),
        ("mv", json!({"source": "/other.txt", "destination": "/file.txt/"})),
    ] {
        workspace.refused(409, "CONFLICT", tool, args).await;
    }
    assert_eq!(workspace.paths_below("/").await, ["/file.txt", "/other.txt"]);
}

async fn names_keep_the_spaces_around_them_in_every_toolset_but_workspace(on: On) {
    let workspace = on.workspace().await;
    FILE.ok(&workspace, "file.write", json!({"path": "x", "content": "plain"})).await;
    FILE.refused(&workspace, 404, "file_not_found", "file.delete", json!({"path": "x "})).await;
    SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "delete_file", json!({"path": " x"})).await;
    CODING.refused(&workspace, 404, "FILE_NOT_FOUND", "read", json!({"filePath": "x "})).await;
    FILE.ok(&workspace, "file.write", json!({"path": "x ", "content": "behind"})).await;
    SYSTEM.ok(&workspace, "write_file", json!({"path": " x", "content": "before"})).await;
    CODING.ok(&workspace, "write", json!({"filePath": " x ", "content": "around"})).await;
    assert_eq!(workspace.paths_below("/").await, ["/ x", "/ x ", "/x", "/x "]);
    for (name, text) in [("x", "plain"), ("x ", "behind"), (" x", "before"), (" x ", "around")] {
        let read = SYSTEM.ok(&workspace, "read_file", json!({"path": name})).await;
        assert_eq!(read["content"], text, "{name:?}");
        let read = FILE.ok(&workspace, "file.read", json!({"path": name})).await;
        assert_eq!(read["content"], format!("     1\t{text}"), "{name:?}");
        let edit = json!({"filePath": name, "oldString": text, "newString": text.to_uppercase()});
        assert_eq!(CODING.ok(&workspace, "edit", edit).await["filePath"], name);
    }
    SYSTEM.ok(&workspace, "move_file", json!({"from": "x ", "to": "y "})).await;
    FILE.ok(&workspace, "file.delete", json!({"path": " x "})).await;
    assert_eq!(workspace.paths_below("/").await, ["/ x", "/x", "/y "]);
}

async fn the_workspace_toolset_trims_a_path_unless_a_file_has_the_untrimmed_name(on: On) {
    let workspace = on.workspace().await;
    assert_eq!(workspace.write("  /x ", "plain").await["path"], "/x");
    assert_eq!(workspace.text(" /x\n").await, "plain");
    SYSTEM.ok(&workspace, "write_file", json!({"path": "x ", "content": "behind"})).await;
    assert_eq!(workspace.text("/x ").await, "behind");
    assert_eq!(workspace.text("/x  ").await, "plain");
    workspace.ok("rm", json!({"path": "/x "})).await;
    assert_eq!(workspace.paths_below("/").await, ["/x"]);
    workspace.ok("mv", json!({"source": "/x ", "destination": " /y "})).await;
    assert_eq!(workspace.paths_below("/").await, ["/y"]);
}

async fn every_toolset_accepts_paths_as_programs_print_them(on: On) {
    let server = on.shared();
    let account = on.account().await;
    let mut roots = vec!["/workspace".to_owned()];
    let workspace = if matches!(on, On::Folder | On::FolderOnPostgres) {
        let folder = server.new_folder();
        roots.push(folder.to_str().unwrap().to_owned());
        account.folder_workspace("Bench", &folder).await
    } else {
        account.workspace("Bench").await
    };
    workspace.write("/src/a.txt", "text\n").await;
    for root in roots {
        let path = format!("{root}/src/a.txt");
        let read = workspace.ok("read", json!({"path": path})).await;
        assert_eq!((&read["path"], &read["content"]), (&json!("/src/a.txt"), &json!("text\n")), "{path}");
        assert_eq!(FILE.ok(&workspace, "file.read", json!({"path": path})).await["content"], "     1\ttext");
        assert_eq!(SYSTEM.ok(&workspace, "read_file", json!({"path": path})).await["content"], "text\n");
        let read = CODING.ok(&workspace, "read", json!({"filePath": path})).await;
        assert_eq!(read["metadata"]["filePath"], "src/a.txt");
        assert_eq!(workspace.paths_in(&root).await, ["/src"]);
        let listed = SYSTEM.ok(&workspace, "list_directory", json!({"path": root})).await;
        assert_eq!(listed["entries"][0]["name"], "src");
        let written = SYSTEM.ok(&workspace, "write_file", json!({"path": format!("{root}/new"), "content": ""})).await;
        assert_eq!(written["path"], "new");
        workspace.ok("rm", json!({"path": format!("{root}/new")})).await;
        let above = format!("{root}/../x");
        SYSTEM.refused(&workspace, 400, "INVALID_PATH", "read_file", json!({"path": above})).await;
        FILE.refused(&workspace, 400, "path_outside_workspace", "file.read", json!({"path": above})).await;
        CODING.refused(&workspace, 400, "PATH_OUTSIDE_WORKSPACE", "read", json!({"filePath": above})).await;
    }
    SYSTEM.refused(&workspace, 400, "INVALID_PATH", "read_file", json!({"path": "/src/a.txt"})).await;
    SYSTEM.refused(&workspace, 400, "INVALID_PATH", "read_file", json!({"path": "/workspaces/src/a.txt"})).await;
    FILE.refused(&workspace, 400, "path_outside_workspace", "file.read", json!({"path": "/src/a.txt"})).await;
}

async fn a_folder_that_is_named_workspace_is_found_by_its_own_name(on: On) {
    let workspace = on.workspace().await;
    workspace.write("workspace/a.txt", "inner").await;
    workspace.write("/a.txt", "outer").await;
    assert_eq!(workspace.paths_below("/").await, ["/a.txt", "/workspace", "/workspace/a.txt"]);
    assert_eq!(workspace.text("/workspace/a.txt").await, "inner");
    assert_eq!(SYSTEM.ok(&workspace, "read_file", json!({"path": "/workspace/a.txt"})).await["content"], "outer");
    assert_eq!(SYSTEM.ok(&workspace, "read_file", json!({"path": "workspace/a.txt"})).await["content"], "inner");
}
