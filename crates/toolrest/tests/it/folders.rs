//! Features of folder workspaces only: allowed roots, links, pipes, unusual names, events.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::{Account, Request, Server, Workspace, sha256_hex, unique_email};

use crate::on::{On, list_at, text_at};
use crate::toolset::{CODING, FILE};

on!(folder, Folder:
    a_folder_below_an_allowed_root_becomes_a_workspace,
    a_folder_that_is_not_allowed_is_refused,
    a_stranger_gets_nothing_and_a_viewer_changes_nothing,
    links_inside_are_followed_and_links_out_are_refused,
    a_link_to_nothing_is_written_through,
    reading_a_slow_file_does_not_delay_others,
    files_with_names_that_are_not_utf8_are_kept,
    a_pipe_is_refused_without_waiting_for_it,
    json_is_stored_as_text_for_people,
    chats_appear_among_the_files_of_a_folder,
    a_folder_that_was_deleted_and_created_again_is_used,
    a_link_in_the_place_of_a_folder_is_refused,
    deleting_a_workspace_leaves_the_folder,
    an_absolute_path_inside_the_folder_is_accepted,
    events_are_sent_as_changes_happen,
    events_are_in_order_and_leave_out_git_files,
    a_removed_member_gets_no_more_events,
    a_large_file_is_read_in_parts_and_in_little_memory
);

on!(folder_on_postgres, FolderOnPostgres:
    chats_appear_among_the_files_of_a_folder
);

/// A new user's workspace in a new folder.
pub async fn folder_workspace(on: On) -> (Workspace, PathBuf) {
    let (account, folder) = (on.account().await, on.shared().new_folder());
    (account.folder_workspace("Bench", &folder).await, folder)
}

async fn a_folder_below_an_allowed_root_becomes_a_workspace(on: On) {
    let (account, folder) = (on.account().await, on.shared().new_folder());
    fs::write(folder.join("here.txt"), "before").unwrap();
    let body = json!({"name": "Mine", "kind": "directory", "root": folder});
    let made = account.post("/workspaces", &body).await.success();
    assert_eq!(made["workspace"]["kind"], "directory");
    assert_eq!(made["workspace"]["root"], json!(folder));
    let workspace = account.in_workspace(text_at(&made, "/workspace/id"));
    assert_eq!(workspace.get("").await.success()["workspace"]["root"], json!(folder));
    assert_eq!(account.get("/workspaces").await.success()["workspaces"][0]["kind"], "directory");
    let read = workspace.read("/here.txt").await;
    assert_eq!((&read["content"], &read["hash"]), (&json!("before"), &json!(sha256_hex(b"before"))));
    workspace.write("/deep/er/new.txt", "made").await;
    fs::write(folder.join("deep/bytes"), b"\0\xff").unwrap();
    let types = async |args: Value| -> Vec<String> {
        let listed = workspace.ok("ls", args).await;
        list_at(&listed, "/entries").iter().map(|entry| text_at(entry, "/file_type").to_owned()).collect()
    };
    assert_eq!(types(json!({"path": "/deep"})).await, ["File", "Folder"]);
    assert_eq!(types(json!({"path": "/deep", "recursive": true})).await, ["File", "Folder", "Document"]);
    assert_eq!(fs::read_to_string(folder.join("deep/er/new.txt")).unwrap(), "made");
    assert_eq!(account.workspace("Plain").await.get("").await.success()["workspace"]["kind"], "database");
}

async fn a_folder_that_is_not_allowed_is_refused(on: On) {
    let (account, folder) = (on.account().await, on.shared().new_folder());
    let make = async |body: Value| account.post("/workspaces", &body).await;
    let directory = |root: &Path| json!({"name": "Mine", "kind": "directory", "root": root});
    make(directory(Path::new("/"))).await.refused(403, "FORBIDDEN");
    make(directory(&folder.join(".."))).await.success();
    make(directory(&folder.join("../../.."))).await.refused(403, "FORBIDDEN");
    // The answer does not reveal whether a path outside exists.
    for elsewhere in [Path::new("/no/such/folder"), Path::new("/etc/hostname"), &folder.join("../../../missing")] {
        let refusal = make(directory(elsewhere)).await.refused(403, "FORBIDDEN");
        assert!(text_at(&refusal, "/error").contains("--allow-root"), "{refusal}");
    }
    symlink("/etc", folder.join("out")).unwrap();
    make(directory(&folder.join("out"))).await.refused(403, "FORBIDDEN");
    make(directory(&folder.join("missing"))).await.refused(400, "VALIDATION_ERROR");
    fs::write(folder.join("file"), "").unwrap();
    make(directory(&folder.join("file"))).await.refused(400, "VALIDATION_ERROR");
    make(json!({"name": "Mine", "kind": "directory"})).await.refused(400, "VALIDATION_ERROR");
    make(json!({"name": "Mine", "root": folder})).await.refused(400, "VALIDATION_ERROR");
    make(json!({"name": "Mine", "kind": "cloud"})).await.refused(400, "VALIDATION_ERROR");
}

async fn a_stranger_gets_nothing_and_a_viewer_changes_nothing(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    workspace.write("/a.txt", "text").await;
    let (stranger, viewer) = (on.account().await, on.account().await);
    workspace.add_member(&viewer, "viewer").await;
    let calls = [
        ("read", json!({"path": "/a.txt"})),
        ("read", json!({"path": "/missing"})),
        ("ls", json!({})),
        ("write", json!({"path": "/b.txt", "content": "x"})),
        ("rm", json!({"path": "/a.txt"})),
        ("edit", json!({"path": "/a.txt", "old_string": "text", "new_string": "x"})),
    ];
    for (tool, args) in calls {
        workspace.for_user(&stranger).refused(403, "FORBIDDEN", tool, args).await;
    }
    let seen = workspace.for_user(&viewer);
    assert_eq!(seen.text("/a.txt").await, "text");
    seen.refused(403, "FORBIDDEN", "write", json!({"path": "/b.txt", "content": "x"})).await;
    seen.refused(403, "FORBIDDEN", "rm", json!({"path": "/a.txt"})).await;
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    // Only members learn that the folder is missing.
    fs::remove_dir_all(&folder).unwrap();
    workspace.for_user(&stranger).refused(403, "FORBIDDEN", "ls", json!({})).await;
    workspace.refused(503, "UNAVAILABLE", "ls", json!({})).await;
}

async fn links_inside_are_followed_and_links_out_are_refused(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    let outside = on.shared().new_folder();
    fs::write(outside.join("secret"), "secret").unwrap();
    fs::write(folder.join("target.txt"), "inside").unwrap();
    symlink("target.txt", folder.join("near")).unwrap();
    symlink(outside.join("secret"), folder.join("far")).unwrap();
    symlink(&outside, folder.join("away")).unwrap();
    symlink("../x", folder.join("up")).unwrap();
    symlink("loop", folder.join("loop")).unwrap();
    assert_eq!(workspace.text("/near").await, "inside");
    workspace.write("/near", "through").await;
    assert_eq!(fs::read_to_string(folder.join("target.txt")).unwrap(), "through");
    assert!(folder.join("near").is_symlink());
    for path in ["/far", "/away/secret", "/up", "/loop"] {
        for (tool, args) in [
            ("read", json!({"path": path})),
            ("write", json!({"path": path, "content": "x"})),
            ("edit", json!({"path": path, "old_string": "secret", "new_string": "x"})),
        ] {
            let reply = workspace.call(tool, &args).await;
            assert!((400..500).contains(&reply.status), "{tool} {path}: {}", reply.text);
            assert!(!reply.text.contains("\"secret\""), "{}", reply.text);
        }
    }
    workspace.refused(400, "VALIDATION_ERROR", "ls", json!({"path": "/away"})).await;
    workspace.refused(400, "VALIDATION_ERROR", "mkdir", json!({"path": "/away/new"})).await;
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "secret");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    let listed = json!({"tool": "list_directory", "args": {"path": "."}});
    let listed = workspace.post("/toolsets/system", &listed).await.success();
    let kinds: Vec<_> = list_at(&listed, "/value/entries").iter().map(|entry| text_at(entry, "/type")).collect();
    assert_eq!(kinds, ["symlink", "symlink", "symlink", "symlink", "file", "symlink"], "{listed}");
}

async fn a_link_to_nothing_is_written_through(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    for link in ["by-write", "by-coding", "in-the-way"] {
        symlink(format!("{link}.txt"), folder.join(link)).unwrap();
    }
    workspace.write("/by-write", "made").await;
    CODING.ok(&workspace, "write", json!({"filePath": "by-coding", "content": "made"})).await;
    for link in ["by-write", "by-coding"] {
        assert!(folder.join(link).is_symlink());
        assert_eq!(fs::read_to_string(folder.join(format!("{link}.txt"))).unwrap(), "made");
    }
    // To take it back would take the link away, which was there before.
    let commit = text_at(&workspace.get("/commits").await.success(), "/commits/0/id").to_owned();
    workspace.post(&format!("/commits/{commit}/undo"), &json!({})).await.refused(409, "CONFLICT");
    assert_eq!(fs::read_to_string(folder.join("by-coding.txt")).unwrap(), "made");
    // No folder can be made of it, and nothing can be moved to it.
    CODING
        .refused(&workspace, 409, "NOT_A_DIRECTORY", "write", json!({"filePath": "in-the-way/a", "content": ""}))
        .await;
    let patch =
        "*** Begin Patch\n*** Update File: by-write.txt\n*** Move to: in-the-way\n@@\n-made\n+moved\n*** End Patch";
    CODING.refused(&workspace, 409, "CONFLICT", "apply_patch", json!({"patchText": patch})).await;
    assert!(folder.join("in-the-way").is_symlink() && !folder.join("in-the-way.txt").exists());
}

async fn reading_a_slow_file_does_not_delay_others(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    fs::File::create(folder.join("vast")).unwrap().set_len(1 << 40).unwrap();
    let to = json!({"source": "/vast", "destination": "/elsewhere"});
    for (tool, args) in [("mv", to), ("rm", json!({"path": "/vast"}))] {
        workspace.refused(413, "PAYLOAD_TOO_LARGE", tool, args).await;
    }
    workspace.write("/beside", "text").await;
    assert!(folder.join("vast").exists());
}

async fn files_with_names_that_are_not_utf8_are_kept(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    let odd = std::ffi::OsStr::from_bytes(b"odd-\xff\xfe");
    fs::create_dir(folder.join("dir")).unwrap();
    fs::write(folder.join("dir").join(odd), "kept").unwrap();
    fs::write(folder.join("dir/new\nline"), "kept").unwrap();
    fs::write(folder.join("dir/plain"), "x").unwrap();
    assert_eq!(workspace.paths_below("/").await, ["/dir", "/dir/plain"]);
    workspace.ok("rm", json!({"path": "/dir/plain"})).await;
    workspace.refused(409, "CONFLICT", "rm", json!({"path": "/dir"})).await;
    workspace.ok("mv", json!({"source": "/dir", "destination": "/moved"})).await;
    assert_eq!(fs::read_to_string(folder.join("moved").join(odd)).unwrap(), "kept");
    assert_eq!(fs::read_to_string(folder.join("moved/new\nline")).unwrap(), "kept");
}

async fn a_pipe_is_refused_without_waiting_for_it(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap();
    assert!(made.success());
    let look = async {
        assert_eq!(workspace.paths_in("/").await, ["/pipe"]);
        workspace.refused(400, "VALIDATION_ERROR", "read", json!({"path": "/pipe"})).await;
        workspace.refused(400, "VALIDATION_ERROR", "write", json!({"path": "/pipe", "content": "x"})).await;
    };
    tokio::time::timeout(Duration::from_secs(10), look).await.expect("nobody waits for a pipe");
}

async fn json_is_stored_as_text_for_people(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    let args = json!({"path": "/board.json", "file_type": "canvas", "content": {"nodes": [1]}});
    workspace.ok("write", args).await;
    let text = "{\n  \"nodes\": [\n    1\n  ]\n}\n";
    assert_eq!(fs::read_to_string(folder.join("board.json")).unwrap(), text);
    let read = workspace.read("/board.json").await;
    assert_eq!((&read["content"], &read["hash"]), (&json!(text), &json!(sha256_hex(text.as_bytes()))));
}

async fn chats_appear_among_the_files_of_a_folder(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    workspace.write("/a.txt", "x").await;
    let chat = workspace.post("/chats", &json!({"title": "Plans"})).await.success();
    let message = json!({"role": "user", "content": "hello"});
    workspace.post(&format!("/chats/{}/messages", text_at(&chat, "/chat/id")), &message).await.success();
    assert_eq!(workspace.paths_below("/").await, ["/a.txt", "/chats", "/chats/Plans.chat"]);
    assert_eq!(workspace.paths_in("/chats").await, ["/chats/Plans.chat"]);
    assert!(workspace.read("/chats/Plans.chat").await["content"]["messages"][0]["content"] == "hello");
    workspace.refused(400, "VALIDATION_ERROR", "write", json!({"path": "/chats/Plans.chat", "content": "x"})).await;
    workspace.refused(400, "VALIDATION_ERROR", "rm", json!({"path": "/chats/Plans.chat"})).await;
    assert!(!folder.join("chats").exists(), "a chat is not on disk");
    workspace.write("/chats/note.md", "beside").await;
    assert_eq!(workspace.paths_in("/chats").await, ["/chats/Plans.chat", "/chats/note.md"]);
    assert_eq!(fs::read_dir(folder.join("chats")).unwrap().count(), 1);
    fs::write(folder.join("chats/other.md"), "hello there").unwrap();
    let paths = |found: &Value| -> Vec<String> {
        list_at(found, "/matches").iter().map(|line| text_at(line, "/path").to_owned()).collect()
    };
    let found = workspace.ok("grep", json!({"pattern": "hello"})).await;
    assert_eq!(paths(&found), ["/chats/Plans.chat", "/chats/other.md"]);
    let found = FILE.ok(&workspace, "file.search", json!({"pattern": "hello", "path": "chats/Plans.chat"})).await;
    assert_eq!(paths(&found), ["chats/Plans.chat"]);
    let found = CODING.ok(&workspace, "glob", json!({"pattern": "**/*"})).await;
    assert_eq!(found["files"], json!(["a.txt", "chats/Plans.chat", "chats/note.md", "chats/other.md"]));
}

async fn a_folder_that_was_deleted_and_created_again_is_used(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    workspace.write("/a.txt", "old").await;
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("b.txt"), "new").unwrap();
    assert_eq!(workspace.paths_in("/").await, ["/b.txt"]);
    workspace.write("/a.txt", "again").await;
    assert_eq!(fs::read_to_string(folder.join("a.txt")).unwrap(), "again");
}

async fn a_link_in_the_place_of_a_folder_is_refused(on: On) {
    let ((workspace, folder), (_, other)) = (folder_workspace(on).await, folder_workspace(on).await);
    workspace.write("/a.txt", "its own").await;
    fs::write(other.join("a.txt"), "of somebody else").unwrap();
    let aside = folder.with_extension("aside");
    fs::rename(&folder, &aside).unwrap();
    symlink(&other, &folder).unwrap();
    workspace.refused(503, "UNAVAILABLE", "read", json!({"path": "/a.txt"})).await;
    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    assert_eq!(workspace.text("/a.txt").await, "its own");
}

async fn deleting_a_workspace_leaves_the_folder(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    workspace.write("/a.txt", "text").await;
    workspace.delete("").await.success();
    assert_eq!(fs::read_to_string(folder.join("a.txt")).unwrap(), "text");
}

async fn an_absolute_path_inside_the_folder_is_accepted(on: On) {
    let (workspace, folder) = folder_workspace(on).await;
    fs::write(folder.join("a.txt"), "text\n").unwrap();
    let absolute = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let read = CODING.ok(&workspace, "read", json!({"filePath": absolute("a.txt")})).await;
    assert_eq!(read["metadata"]["filePath"], "a.txt");
    CODING.ok(&workspace, "write", json!({"filePath": absolute("sub/b.txt"), "content": "made"})).await;
    assert_eq!(fs::read_to_string(folder.join("sub/b.txt")).unwrap(), "made");
    for outside in
        ["/etc/hostname".to_owned(), absolute("../x"), absolute("sub/../../x"), format!("{}x/y", folder.display())]
    {
        CODING.refused(&workspace, 400, "PATH_OUTSIDE_WORKSPACE", "read", json!({"filePath": outside})).await;
    }
}

/// Listens to the events of a workspace; returns the received lines, and the thread that reads them.
async fn listen(server: &Server, account: &Account, workspace: &Workspace) -> (Lines, std::thread::JoinHandle<()>) {
    let mut listener = TcpStream::connect(server.address()).unwrap();
    let request = format!(
        "GET /api/v1/workspaces/{}/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
        workspace.id, account.access_token
    );
    listener.write_all(request.as_bytes()).unwrap();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let lines = std::thread::spawn(move || {
        BufReader::new(listener).lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
    });
    while !receiver.recv().await.unwrap().contains("text/event-stream") {}
    (receiver, lines)
}

type Lines = tokio::sync::mpsc::UnboundedReceiver<String>;

async fn events_are_in_order_and_leave_out_git_files(on: On) {
    let server = on.options().start();
    let account = Account::register(&server.client(), &unique_email("someone")).await;
    let folder = server.new_folder();
    fs::create_dir(folder.join(".git")).unwrap();
    fs::write(folder.join("x"), "old").unwrap();
    let workspace = account.folder_workspace("Bench", &folder).await;
    let (mut receiver, _lines) = listen(&server, &account, &workspace).await;
    fs::remove_file(folder.join("x")).unwrap();
    fs::write(folder.join("x"), "a").unwrap();
    fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main").unwrap();
    fs::write(folder.join("b"), "").unwrap();
    fs::create_dir(folder.join("a")).unwrap();
    fs::remove_file(folder.join("b")).unwrap();
    fs::write(folder.join("last"), "").unwrap();
    let mut events = Vec::new();
    let listen = async {
        while !events.last().is_some_and(|event: &String| event.contains("/last")) {
            let line = receiver.recv().await.expect("the events go on");
            events.extend(line.strip_prefix("data:").map(|event| event.trim().to_owned()));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), listen).await.expect("all events arrive");
    let events: Vec<Value> = events.iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let of = |path: &str| -> Vec<&str> {
        let about = events.iter().filter(|event| event["path"] == path);
        about.map(|event| event["event"].as_str().unwrap()).collect()
    };
    // Told together or not, they are in order.
    assert!([vec!["changed"], vec!["removed", "created"]].contains(&of("/x")), "{events:?}");
    assert!([vec![], vec!["created", "removed"]].contains(&of("/b")), "{events:?}");
    assert_eq!((of("/a"), of("/last")), (vec!["created"], vec!["created"]), "{events:?}");
    assert!(events.iter().all(|event| !event.to_string().contains(".git")), "{events:?}");
}

async fn events_are_sent_as_changes_happen(on: On) {
    let mut server = on.options().start();
    let account = Account::register(&server.client(), &unique_email("someone")).await;
    let folder = server.new_folder();
    let workspace = account.folder_workspace("Bench", &folder).await;
    let stranger = Account::register(&server.client(), &unique_email("stranger")).await;
    workspace.for_user(&stranger).get("/events").await.refused(403, "FORBIDDEN");
    account.workspace("Plain").await.get("/events?kinds=file").await.refused(503, "UNAVAILABLE");
    let (mut receiver, lines) = listen(&server, &account, &workspace).await;
    workspace.write("/by-tool.txt", "x").await;
    fs::write(folder.join("by-others.txt"), "x").unwrap();
    fs::rename(folder.join("by-others.txt"), folder.join("renamed.txt")).unwrap();
    let mut missing = vec!["/by-tool.txt", "/by-others.txt", "/renamed.txt"];
    let listen = async {
        while !missing.is_empty() {
            let line = receiver.recv().await.expect("the events go on");
            missing.retain(|path| !line.contains(&format!("\"{path}\"")));
            assert!(!line.contains(".toolrest"), "temporary files are nobody's business: {line}");
        }
    };
    tokio::time::timeout(Duration::from_secs(20), listen).await.expect("all events arrive");
    // A listener does not hold up a server that stops.
    let begun = std::time::Instant::now();
    server.stop();
    assert!(begun.elapsed() < Duration::from_secs(10));
    lines.join().unwrap();
}

async fn a_removed_member_gets_no_more_events(on: On) {
    let server = on.options().start();
    let client = server.client();
    let account = Account::register(&client, &unique_email("someone")).await;
    let member = Account::register(&client, &unique_email("member")).await;
    let folder = server.new_folder();
    let workspace = account.folder_workspace("Bench", &folder).await;
    workspace.add_member(&member, "viewer").await;
    let (mut receiver, lines) = listen(&server, &member, &workspace).await;
    fs::write(folder.join("heard"), "").unwrap();
    while !receiver.recv().await.expect("a member hears of it").contains("/heard") {}
    workspace.delete(&format!("/members/{}", member.id)).await.success();
    let removed_at = std::time::Instant::now();
    // Something happens all the time.
    for n in 0.. {
        fs::write(folder.join("busy"), n.to_string()).unwrap();
        while receiver.try_recv().is_ok() {}
        if receiver.is_closed() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(removed_at.elapsed() < Duration::from_secs(8), "the stream goes on");
    }
    lines.join().unwrap();
}

async fn a_large_file_is_read_in_parts_and_in_little_memory(on: On) {
    const LINES: usize = 3_000_000;
    let server = on.options().start();
    let account = Account::register(&server.client(), &unique_email("someone")).await;
    let folder = server.new_folder();
    let workspace = account.folder_workspace("Bench", &folder).await;
    let mut text = String::new();
    for line in 1..=LINES {
        writeln!(text, "line {line} of a long file that nobody wants to hold in memory").unwrap();
    }
    fs::write(folder.join("long.log"), &text).unwrap();
    // The debug build alone takes tens of megabytes.
    let before = server.peak_memory_bytes();
    let read = CODING.ok(&workspace, "read", json!({"filePath": "long.log", "offset": LINES - 10, "limit": 3})).await;
    assert!(text_at(&read, "/content").starts_with("2999991→line 2999991 of"), "{read}");
    assert_eq!((&read["metadata"]["lineCount"], &read["metadata"]["truncated"]), (&json!(LINES), &json!(true)));
    assert_eq!(read["hash"], sha256_hex(text.as_bytes()));
    let content = format!("/api/v1/workspaces/{}/content/long.log", workspace.id);
    let client = server.client();
    let get = |range: &str| {
        let request = Request::new("GET", &content).bearer(&account.access_token);
        client.send(if range.is_empty() { request } else { request.header("Range", range) })
    };
    let all = get("").await;
    assert_eq!((all.status, all.text == text), (200, true));
    let part = get("bytes=100-199").await;
    assert_eq!((part.status, &part.text[..]), (206, &text[100..200]));
    let end = get("bytes=-50").await;
    assert_eq!((end.status, &end.text[..]), (206, &text[text.len() - 50..]));
    assert_eq!(get(&format!("bytes={}-", text.len())).await.status, 416);
    let more = server.peak_memory_bytes() - before;
    assert!(more < text.len() as u64 / 4, "{more} bytes of memory for a file of {}", text.len());
    FILE.refused(&workspace, 413, "invalid_argument", "file.read", json!({"path": "long.log"})).await;
}
