//! Limits on the memory that callers can use: bodies, answers, large files and passwords.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolrest_testkit::{Account, PASSWORD, Request, Server, Workspace, unique_email};

use crate::agent;
use crate::approvals::{call, key, pending, set_rules, waiting};
use crate::on::{On, list_at, text_at};
use crate::programs::bash;
use crate::toolset::{FILE, SYSTEM};

on_both_databases![
    bodies_of_strangers_are_not_kept,
    a_caller_takes_no_more_than_its_share_of_the_bytes_in_flight,
    slow_bodies_of_some_accounts_leave_room_for_others,
    small_bodies_have_a_separate_budget,
    a_body_that_arrives_too_slowly_is_refused,
    contents_larger_than_an_answer_are_refused_by_size,
    unread_answers_take_bounded_memory,
    large_reads_take_turns,
    searches_of_kept_results_take_turns,
    calls_that_wait_for_a_person_hold_no_memory,
    callers_that_wait_for_a_person_are_limited,
    commits_are_listed_as_far_as_they_fit,
    registrations_take_a_bounded_memory,
];

on!(folder, Folder:
    a_large_text_is_refused_by_its_size,
    a_file_of_nothing_but_newlines_is_refused_as_soon_as_its_page_is_too_long,
    a_page_that_is_too_long_is_refused_with_how_to_get_a_part_of_it,
    a_patch_of_more_than_fits_into_memory_is_refused,
    replacing_everything_takes_no_more_than_the_texts,
    pictures_take_turns,
    large_check_ins_take_turns,
    large_folder_commits_take_turns
);
on!(sqlite_files, Sqlite:
    a_file_of_nothing_but_newlines_is_refused_as_soon_as_its_page_is_too_long,
    a_page_that_is_too_long_is_refused_with_how_to_get_a_part_of_it,
    a_patch_of_more_than_fits_into_memory_is_refused,
    replacing_everything_takes_no_more_than_the_texts,
    large_check_ins_take_turns
);
on!(postgres_files, Postgres:
    a_patch_of_more_than_fits_into_memory_is_refused
);

const MB: usize = 1 << 20;

/// The memory that a server needs for nothing, in a build for tests.
const IDLE_BYTES: u64 = 120 << 20;

#[track_caller]
fn assert_peak_below(server: &Server, more_than_idle: usize) {
    let peak = server.peak_memory_bytes();
    assert!(peak < IDLE_BYTES + more_than_idle as u64, "{} MB of memory at the peak", peak >> 20);
}

/// The head of a call whose body follows.
fn head(workspace: &Workspace, toolset: &str, length: Option<usize>) -> String {
    let length = match length {
        Some(length) => format!("Content-Length: {length}"),
        None => "Transfer-Encoding: chunked".to_owned(),
    };
    format!(
        "POST /api/v1/workspaces/{}/toolsets/{toolset} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\n{length}\r\n\r\n",
        workspace.id, workspace.account.access_token
    )
}

/// Reads the head and some of the body of an answer.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = vec![0; 4096];
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut text)).await.expect("an answer");
    String::from_utf8_lossy(&text[..read.unwrap_or(0)]).into_owned()
}

async fn bodies_of_strangers_are_not_kept(on: On) {
    let server = on.options().start();
    let member = on.workspace_at(&server).await;
    let stranger = Account::register(&server.client(), &unique_email("stranger")).await;
    let workspace = member.for_user(&stranger);
    let piece: Arc<[u8]> = vec![b' '; MB].into();
    let chunk: Arc<[u8]> = [format!("{MB:x}\r\n").as_bytes(), &piece[..], b"\r\n"].concat().into();
    let mut senders = Vec::new();
    for n in 0..20 {
        let is_chunked = n % 2 == 1;
        let head = head(&workspace, "workspace", (!is_chunked).then_some(31 * MB));
        let (address, piece) = (server.address().to_owned(), if is_chunked { chunk.clone() } else { piece.clone() });
        senders.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            // The last piece is held back, so that all of them are under way at once.
            for _ in 0..30 {
                if stream.write_all(&piece).await.is_err() {
                    break;
                }
            }
            answer(&mut stream).await
        }));
    }
    for sender in senders {
        let answer = sender.await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 403") || answer.is_empty(), "{answer}");
    }
    assert_peak_below(&server, 100 * MB);
    member.ok("ls", json!({})).await;
}

async fn a_caller_takes_no_more_than_its_share_of_the_bytes_in_flight(on: On) {
    let server = tight(on);
    let (slow, other) = (on.workspace_at(&server).await, on.workspace_at(&server).await);
    // Slow bodies that use up the share of their sender.
    let mut begun = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(head(&slow, "system", Some(3 * MB)).as_bytes()).await.unwrap();
        stream.write_all(b"{").await.unwrap();
        begun.push(stream);
    }
    let content = "x".repeat(3 * MB);
    other.write("/large.txt", &content).await;
    assert_eq!(other.text("/large.txt").await.len(), content.len());
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let readers: Vec<_> = begun
        .into_iter()
        .map(|mut stream| {
            let sender = sender.clone();
            tokio::spawn(async move { sender.send(answer(&mut stream).await) })
        })
        .collect();
    // Only one of them has room; the others are refused long before its body would be given up.
    for _ in 0..3 {
        let answer = receiver.recv().await.unwrap();
        let is_refused = answer.starts_with("HTTP/1.1 503") && answer.to_lowercase().contains("retry-after: 1");
        assert!(is_refused && answer.contains("in_flight_bytes") && answer.contains("\"ok\":false"), "{answer}");
    }
    readers.iter().for_each(tokio::task::JoinHandle::abort);
    for reader in readers {
        drop(reader.await);
    }
    slow.write("/again.txt", &content).await;
}

/// Begins calls of tools whose bodies are announced with one length and arrive as far as another.
async fn begin_bodies(server: &Server, of: &[Workspace], announced: usize, arrive: usize) -> Vec<TcpStream> {
    let mut begun = Vec::new();
    for workspace in of {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(head(workspace, "system", Some(announced)).as_bytes()).await.unwrap();
        stream.write_all(&vec![b' '; arrive]).await.unwrap();
        begun.push(stream);
    }
    begun
}

/// A server with room for 8 MB of requests and answers.
fn tight(on: On) -> Server {
    on.options()
        .env("TOOLREST__LIMITS__IN_FLIGHT_BYTES", &(8 * MB).to_string())
        .env("TOOLREST__LIMITS__BODY_BYTES", &(4 * MB).to_string())
        .env("TOOLREST__LIMITS__RESPONSE_BYTES", &(4 * MB).to_string())
        .start()
}

async fn slow_bodies_of_some_accounts_leave_room_for_others(on: On) {
    let server = tight(on);
    let other = on.workspace_at(&server).await;
    let mut slow = Vec::new();
    for _ in 0..4 {
        let workspace = on.workspace_at(&server).await;
        slow.extend([workspace.clone(), workspace]);
    }
    // All of them together announce three times what there is room for.
    let begun = begin_bodies(&server, &slow, 3 * MB, 1).await;
    Account::login(&server.client(), &other.account.email).await;
    let content = "x".repeat(3 * MB);
    other.write("/large.txt", &content).await;
    assert_eq!(other.text("/large.txt").await.len(), content.len());
    drop(begun);
}

async fn small_bodies_have_a_separate_budget(on: On) {
    let server = tight(on);
    let other = on.workspace_at(&server).await;
    let mut slow = Vec::new();
    for _ in 0..3 {
        slow.push(on.workspace_at(&server).await);
    }
    // Nearly all of them is there, which is all that there is room for.
    let begun = begin_bodies(&server, &slow, 3 * MB, 3 * MB - 1).await;
    Account::login(&server.client(), &other.account.email).await;
    other.write("/small.txt", "x").await;
    assert_eq!(other.text("/small.txt").await, "x");
    drop(begun);
}

async fn a_body_that_arrives_too_slowly_is_refused(on: On) {
    let server = on.options().env("TOOLREST__LIMITS__CALL_TIMEOUT_MS", "8000").start();
    let workspace = on.workspace_at(&server).await;
    for stream in &mut begin_bodies(&server, &[workspace.clone(), workspace], MB, 70_000).await {
        let answer = answer(stream).await;
        assert!(answer.contains("arrives too slowly"), "{answer}");
    }
}

async fn contents_larger_than_an_answer_are_refused_by_size(on: On) {
    const SIZE: usize = 20 * MB;
    let server = on.options().env("TOOLREST__LIMITS__RESPONSE_BYTES", &MB.to_string()).start();
    let workspace = on.workspace_at(&server).await;
    let file = workspace.write("/large.txt", &"x".repeat(SIZE)).await;
    let id = text_at(&file, "/file_id").to_owned();
    let versions = workspace.get(&format!("/files/{id}/versions")).await.success();
    let version = text_at(&versions, "/versions/0/id").to_owned();
    let commit = text_at(&versions, "/versions/0/commit_id").to_owned();
    let before = server.peak_memory_bytes();
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..8 {
        for path in
            [format!("/files/{id}"), format!("/files/{id}/versions/{version}"), format!("/commits/{commit}/diff")]
        {
            let workspace = workspace.clone();
            requests.spawn(async move { (workspace.get(&path).await, path) });
        }
        for (toolset, tool) in [("workspace", "read"), ("system", "read_file")] {
            let workspace = workspace.clone();
            let call =
                async move { (workspace.call_of(toolset, tool, &json!({"path": "large.txt"})).await, tool.to_owned()) };
            requests.spawn(call);
        }
    }
    while let Some(done) = requests.join_next().await {
        let (reply, what) = done.unwrap();
        if what.ends_with("/diff") {
            assert!(reply.success()["diff"].as_str().unwrap().contains("over the limit"), "{reply}");
        } else {
            assert_eq!(reply.status, 413, "{what}: {reply}");
        }
    }
    let more = usize::try_from(server.peak_memory_bytes() - before).unwrap();
    assert!(more < 2 * SIZE, "{} MB more", more / MB);
    // A part of it can be read all the same, and a restored file is not read at all.
    let page = workspace.call_of("coding", "read", &json!({"filePath": "large.txt"})).await;
    assert_eq!(page.status, 200, "{page}");
    workspace.ok("rm", json!({"path": "/large.txt"})).await;
    workspace.post(&format!("/files/{id}/restore"), &json!({})).await.success();
}

/// Puts bytes into a file without sending them as text.
async fn put(workspace: &Workspace, path: &str, bytes: &[u8]) {
    let args = json!({"path": path, "content": STANDARD.encode(bytes), "encoding": "base64"});
    let reply = workspace.call_of("system", "write_file", &args).await;
    assert_eq!(reply.status, 200, "{reply}");
}

async fn a_file_of_nothing_but_newlines_is_refused_as_soon_as_its_page_is_too_long(on: On) {
    let server = on.options().env("TOOLREST__LIMITS__BODY_BYTES", &(64 * MB).to_string()).start();
    let workspace = on.workspace_at(&server).await;
    put(&workspace, "newlines.txt", &vec![b'\n'; 31 * MB]).await;
    let before = server.peak_memory_bytes();
    for (toolset, tool, args) in [
        ("file", "file.read", json!({"path": "newlines.txt"})),
        ("workspace", "read", json!({"path": "/newlines.txt"})),
        ("system", "read_file", json!({"path": "newlines.txt"})),
    ] {
        let reply = workspace.call_of(toolset, tool, &args).await;
        assert_eq!(reply.status, 413, "{tool}: {reply}");
    }
    let part = json!({"path": "newlines.txt", "offset": 32_000_000, "limit": 100});
    let page = FILE.ok(&workspace, "file.read", part).await;
    assert_eq!(page["total_lines"], 31 * MB, "{page}");
    let more = usize::try_from(server.peak_memory_bytes() - before).unwrap();
    assert!(more < 150 * MB, "{} MB more", more / MB);
}

async fn a_page_that_is_too_long_is_refused_with_how_to_get_a_part_of_it(on: On) {
    let server = on.options().env("TOOLREST__LIMITS__RESPONSE_BYTES", "10000").start();
    let workspace = on.workspace_at(&server).await;
    // In the answer a line takes more bytes than it has: for its number, a tab and the escapes.
    let texts = ["x\n".repeat(2_000), "\"\"\"\"\n".repeat(600), format!("{}\n", "x".repeat(9_990)), "x".repeat(9_995)];
    for text in texts {
        workspace.write("/a.txt", &text).await;
        let reply = workspace.call_of("file", "file.read", &json!({"path": "a.txt"})).await;
        assert_eq!(reply.status, 413, "{reply}");
        assert!(reply.text.contains("`offset`") && reply.text.contains("`limit`"), "{reply}");
        let part = json!({"path": "a.txt", "offset": 2, "limit": 100});
        assert_eq!(workspace.call_of("file", "file.read", &part).await.status, 200);
    }
}

async fn a_patch_of_more_than_fits_into_memory_is_refused(on: On) {
    const FILES: usize = 30;
    const SIZE: usize = 3 * MB;
    let server = on.options().env("TOOLREST__LIMITS__RESPONSE_BYTES", &(4 * MB).to_string()).start();
    let workspace = on.workspace_at(&server).await;
    let text = "a line of some text\n".repeat(SIZE / 20);
    for n in 0..FILES {
        workspace.write(&format!("/{n}.txt"), &text).await;
    }
    let change = |n: usize| format!("--- a/{n}.txt\n+++ b/{n}.txt\n@@ -1,1 +1,2 @@\n+new\n a line of some text\n");
    let copy = |n: usize| format!("diff --git a/0.txt b/c{n}.txt\ncopy from 0.txt\ncopy to c{n}.txt\n");
    let chain = |n: usize| format!("diff --git a/{n}.txt b/{n}x.txt\ncopy from {n}.txt\ncopy to {n}x.txt\n");
    let many: String = (0..FILES).map(change).collect();
    let copies: String = (0..200).map(copy).collect();
    let chains: String = (0..FILES).map(chain).collect();
    let before = server.peak_memory_bytes();
    for patch in [many, copies, chains] {
        let calls: Vec<_> = (0..4)
            .map(|_| {
                let (workspace, args) = (workspace.clone(), json!({"patchText": patch}));
                tokio::spawn(async move { workspace.call_of("coding", "apply_patch", &args).await })
            })
            .collect();
        for call in calls {
            let reply = call.await.unwrap();
            assert_eq!(reply.status, 413, "{reply}");
            assert!(reply.text.contains("in several parts"), "{reply}");
        }
    }
    let more = usize::try_from(server.peak_memory_bytes() - before).unwrap();
    assert!(more < 20 * SIZE, "{} MB more", more / MB);
    assert_eq!(workspace.paths_in("/").await.len(), FILES, "nothing was written");
    // One that fits is applied, with more than is read without asking for room.
    let reply = workspace.call_of("coding", "apply_patch", &json!({"patchText": change(0) + &copy(1)})).await;
    assert_eq!(reply.status, 200, "{reply}");
    assert_eq!(workspace.text("/0.txt").await, format!("new\n{text}"));
}

async fn replacing_everything_takes_no_more_than_the_texts(on: On) {
    const SIZE: usize = 16 * MB;
    let server = on.options().start();
    let workspace = on.workspace_at(&server).await;
    let text = "a".repeat(SIZE);
    workspace.write("/a.txt", &text).await;
    let before = server.peak_memory_bytes();
    let args = json!({"path": "/a.txt", "old_string": "a", "new_string": "b"});
    let reply = workspace.call("edit-many", &args).await;
    assert_eq!(reply.status, 200, "{reply}");
    let more = usize::try_from(server.peak_memory_bytes() - before).unwrap();
    assert!(more < 12 * SIZE, "{} MB more", more / MB);
    let args = json!({"path": "/a.txt", "old_string": "b", "new_string": "bbb"});
    assert_eq!(workspace.call("edit-many", &args).await.status, 413);
    assert_eq!(workspace.text("/a.txt").await, "b".repeat(SIZE));
}

async fn large_check_ins_take_turns(on: On) {
    const PROGRAMS: usize = 8;
    const SIZE: usize = 20 * MB;
    let options = on.options().env("TOOLREST__RUN__KEEP_BYTES", &(24 * MB).to_string());
    let server = options.env("TOOLREST__RUN__AT_ONCE_PER_WORKSPACE", "8").start();
    let account = Account::register(&server.client(), &unique_email("someone")).await;
    let before = server.peak_memory_bytes();
    let mut programs = tokio::task::JoinSet::new();
    for n in 0..PROGRAMS {
        let workspace = on.workspace_of(&account, &server).await;
        programs.spawn(async move {
            let code = format!("head -c {SIZE} /dev/urandom > large.{n}");
            let ran = bash(&workspace, &code).await;
            (workspace, ran)
        });
    }
    let mut workspaces = Vec::new();
    while let Some(done) = programs.join_next().await {
        let (workspace, ran) = done.unwrap();
        assert_eq!(list_at(&ran, "/changes").len(), 1, "{ran}");
        workspaces.push(workspace);
    }
    let more = usize::try_from(server.peak_memory_bytes() - before).unwrap();
    // All at once takes a half more than this in a database, and as much again in a folder, whose commits go through a
    // journal.
    let most = if on == On::Sqlite { 12 * SIZE } else { 45 * SIZE };
    assert!(more < most, "{} MB more", more / MB);
    // A process in the background that works on the folder itself takes its turn too.
    let args = json!({"command": format!("head -c {SIZE} /dev/urandom > more; head -c {SIZE} /dev/urandom > large.0")});
    let process = SYSTEM.ok(&workspaces[0], "start_process", args).await;
    let ended = SYSTEM.ok(&workspaces[0], "wait_process", json!({"id": process["id"], "timeout": 20})).await;
    assert_eq!(ended["state"], "ended", "{ended}");
}

/// Bytes that cannot be compressed.
fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..size / 8).flat_map(|_| next()).collect();
    bytes.resize(size, 0);
    bytes
}

/// A removed file is read into the history, and an undo reads it from there: both are requests of a few bytes.
async fn large_folder_commits_take_turns(on: On) {
    const COMMITS: usize = 8;
    const SIZE: usize = 20 * MB;
    let options = on.options().env("TOOLREST__RUN__KEEP_BYTES", &(24 * MB).to_string());
    // The C library returns the memory of each content at once, instead of keeping it for the thread that used it.
    let server = options.env("MALLOC_MMAP_THRESHOLD_", &MB.to_string()).start();
    let account = Account::register(&server.client(), &unique_email("someone")).await;
    let mut workspaces = Vec::new();
    for n in 0..COMMITS {
        let folder = server.new_folder();
        fs::write(folder.join("large"), noise(n as u64 + 7, SIZE)).unwrap();
        server.hand_over(&folder);
        workspaces.push((account.folder_workspace("Bench", &folder).await, folder));
    }
    let remove_and_undo = async |workspaces: &[(Workspace, _)]| {
        let before = server.peak_memory_bytes();
        let mut removals = tokio::task::JoinSet::new();
        for (workspace, _) in workspaces {
            let workspace = workspace.clone();
            removals.spawn(async move { workspace.ok("rm", json!({"path": "/large"})).await });
        }
        removals.join_all().await;
        let mut undos = tokio::task::JoinSet::new();
        for (workspace, _) in workspaces {
            let workspace = workspace.clone();
            undos.spawn(async move {
                let commits = workspace.get("/commits").await.success();
                let commit = text_at(&commits, "/commits/0/id").to_owned();
                workspace.post(&format!("/commits/{commit}/undo"), &json!({})).await.success();
            });
        }
        undos.join_all().await;
        usize::try_from(server.peak_memory_bytes() - before).unwrap()
    };
    let alone = remove_and_undo(&workspaces[..1]).await;
    let more = remove_and_undo(&workspaces[1..]).await;
    for (n, (_, folder)) in workspaces.iter().enumerate() {
        assert!(fs::read(folder.join("large")).unwrap() == noise(n as u64 + 7, SIZE), "{}", folder.display());
    }
    assert!(more < alone, "one takes {} MB, several {} MB more", alone / MB, more / MB);
}

async fn unread_answers_take_bounded_memory(on: On) {
    let server = on.options().env("TOOLREST__LIMITS__IN_FLIGHT_BYTES", &(64 * MB).to_string()).start();
    let (slow, other) = (on.workspace_at(&server).await, on.workspace_at(&server).await);
    let content = "x".repeat(25 * MB);
    slow.write("/large.txt", &content).await;
    other.write("/large.txt", &content).await;
    let call = json!({"tool": "read", "args": {"path": "/large.txt"}}).to_string();
    let mut begun = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let head = head(&slow, "workspace", Some(call.len()));
        stream.write_all(format!("{head}{call}").as_bytes()).await.unwrap();
        begun.push(stream);
    }
    let mut refused = 0;
    for stream in &mut begun {
        // The beginning of each answer is there, however little of it is taken.
        refused += usize::from(answer(stream).await.starts_with("HTTP/1.1 503"));
    }
    assert!(refused >= 6, "{refused} of 8 answers of 25 MB were refused to one caller");
    assert_eq!(other.text("/large.txt").await.len(), content.len());
}

async fn large_reads_take_turns(on: On) {
    const SIZE: usize = 12 * MB;
    let server = on.options().env("TOOLREST__LIMITS__IN_FLIGHT_BYTES", &(80 * MB).to_string()).start();
    let workspace = on.workspace_at(&server).await;
    workspace.write("/large.txt", &"x".repeat(SIZE)).await;
    let before = server.peak_memory_bytes();
    let reads: Vec<_> = (0..16)
        .map(|_| {
            let workspace = workspace.clone();
            tokio::spawn(async move { workspace.call("read", &json!({"path": "/large.txt"})).await })
        })
        .collect();
    for read in reads {
        let reply = read.await.unwrap();
        assert!(reply.status == 200 || reply.status == 503, "{}", reply.status);
    }
    let more = usize::try_from(server.peak_memory_bytes() - before).unwrap();
    // All at once would take more than twice as much.
    assert!(more < 20 * SIZE, "{} MB more", more / MB);
}

/// Makes so many calls of a tool for models at once. Returns by how much the peak of the server's memory grew.
async fn growth_by_calls(server: &Server, workspace: &Workspace, tool: &'static str, args: &Value) -> usize {
    let before = server.peak_memory_bytes();
    let calls: Vec<_> = (0..24)
        .map(|_| {
            let (workspace, args) = (workspace.clone(), args.clone());
            tokio::spawn(async move { workspace.call_of("agent", tool, &args).await })
        })
        .collect();
    for call in calls {
        let reply = call.await.unwrap();
        assert!(reply.status == 200 || reply.status == 503, "{reply}");
    }
    usize::try_from(server.peak_memory_bytes() - before).unwrap()
}

async fn searches_of_kept_results_take_turns(on: On) {
    let server = on.options().env("TOOLREST__LIMITS__IN_FLIGHT_BYTES", &(80 * MB).to_string()).start();
    let workspace = on.workspace_at(&server).await;
    let line = format!("{}\n", "x".repeat(1_999));
    workspace.write("/large.txt", &line.repeat(8_000)).await;
    let found = agent::text(&workspace, "grep", json!({"pattern": "x"})).await;
    let kept = found.split_once("out:").unwrap().1.split(['.', ' ']).next().unwrap();
    let args = json!({"pattern": "y.", "path": format!("out:{kept}")});
    let more = growth_by_calls(&server, &workspace, "grep", &args).await;
    assert!(more < 8 * 16 * MB, "{} MB more", more / MB);
}

async fn pictures_take_turns(on: On) {
    let server = on.options().env("TOOLREST__LIMITS__IN_FLIGHT_BYTES", &(80 * MB).to_string()).start();
    let (account, folder) = (Account::register(&server.client(), &unique_email("someone")).await, server.new_folder());
    let workspace = account.folder_workspace("Bench", &folder).await;
    let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
    picture.resize(32 * MB, 1);
    fs::write(folder.join("picture.png"), &picture).unwrap();
    let more = growth_by_calls(&server, &workspace, "read", &json!({"paths": ["picture.png"]})).await;
    assert!(more < 6 * 32 * MB, "{} MB more", more / MB);
}

/// A server in whose budget one account has room for one body of three megabytes.
fn with_room_for_one(on: On) -> Server {
    let limits = [("BODY_BYTES", 4 * MB), ("RESPONSE_BYTES", 4 * MB), ("IN_FLIGHT_BYTES", 17 * MB)];
    let options = on.options().env("TOOLREST__POLICY__APPROVALS", "spec");
    let set = |options: toolrest_testkit::ServerOptions, (name, value): (&str, usize)| {
        options.env(&format!("TOOLREST__LIMITS__{name}"), &value.to_string())
    };
    limits.into_iter().fold(options, set).start()
}

async fn calls_that_wait_for_a_person_hold_no_memory(on: On) {
    let server = with_room_for_one(on);
    let workspace = on.workspace_at(&server).await;
    workspace.write("/a.txt", "text").await;
    let agent = key(&workspace).await;
    let large = "x".repeat(3 * MB);
    let held = tokio::spawn({
        let (agent, args) = (agent.clone(), json!({"path": "a.txt", "content": large}));
        async move { call(&agent, "write_file", args, 60, "").await }
    });
    let approval = pending(&workspace, 1).await.remove(0);
    SYSTEM.ok(&agent, "write_file", json!({"path": "b.txt", "content": large})).await;
    let decision = json!({"decision": "approve", "revision": 1});
    workspace.post(&format!("/approvals/{}/decision", text_at(&approval, "/id")), &decision).await.success();
    let reply = held.await.unwrap();
    assert_eq!(reply.status, 200, "{reply}");
    assert_eq!(workspace.text("/a.txt").await.len(), 3 * MB);
}

async fn callers_that_wait_for_a_person_are_limited(on: On) {
    let options = on.options().env("TOOLREST__POLICY__APPROVALS", "spec");
    let server = options.env("TOOLREST__LIMITS__CALLS_PER_ACCOUNT", "2").start();
    let workspace = on.workspace_at(&server).await;
    let agent = key(&workspace).await;
    let delete = |name: &str| {
        let (agent, args) = (agent.clone(), json!({"path": name}));
        async move { call(&agent, "delete_file", args, 60, "").await }
    };
    let mut held = tokio::task::JoinSet::new();
    for name in ["a", "b", "c"] {
        workspace.write(&format!("/{name}"), "text").await;
        if name != "c" {
            held.spawn(delete(name));
        }
    }
    pending(&workspace, 2).await;
    let at_once = tokio::time::timeout(Duration::from_secs(30), delete("c")).await.expect("it waited");
    let approval = waiting(&at_once);
    let url = format!("/approvals/{}?wait=60", text_at(&approval, "/approval/id"));
    let shown = tokio::time::timeout(Duration::from_secs(30), workspace.get(&url)).await.expect("it waited");
    assert_eq!(shown.success()["approval"]["state"], "pending");
    assert_eq!(held.len(), 2, "the others still wait");
    held.abort_all();
    // Others can wait.
    let other = on.workspace_at(&server).await;
    set_rules(&other, json!({"rules": ["ask delete"]})).await;
    other.write("/a", "text").await;
    let theirs = key(&other).await;
    let waits = call(&theirs, "delete_file", json!({"path": "a"}), 60, "");
    tokio::time::timeout(Duration::from_secs(3), waits).await.expect_err("it did not wait");
}

async fn commits_are_listed_as_far_as_they_fit(on: On) {
    const COMMITS: usize = 16;
    let server = on.options().env("TOOLREST__LIMITS__RESPONSE_BYTES", "50000").start();
    let workspace = on.workspace_at(&server).await;
    for commit in 0..COMMITS {
        let files: Vec<String> = (0..60).map(|n| format!("*** Add File: {commit}/{n}.txt\n+text\n")).collect();
        let files = files.concat();
        let patch = format!("*** Begin Patch\n{files}*** End Patch");
        let reply = workspace.call_of("coding", "apply_patch", &json!({"patchText": patch})).await;
        assert_eq!(reply.status, 200, "{reply}");
    }
    let (mut seen, mut before) = (Vec::new(), String::new());
    for _ in 0..COMMITS {
        let reply = workspace.get(&format!("/commits?limit=100{before}")).await;
        assert!(reply.text.len() < 60_000, "{} bytes", reply.text.len());
        let page = reply.success();
        let ids = page["commits"].as_array().unwrap().iter().map(|commit| commit["id"].as_str().unwrap().to_owned());
        seen.extend(ids);
        if page["truncated"] == false {
            break;
        }
        before = format!("&before={}", seen.last().unwrap());
    }
    assert!(!before.is_empty(), "they do not fit into one answer");
    assert_eq!(seen.len(), COMMITS);
    let two = workspace.get("/commits?limit=2").await.success();
    assert_eq!((two["commits"].as_array().unwrap().len(), &two["truncated"]), (2, &json!(true)));
}

async fn registrations_take_a_bounded_memory(on: On) {
    let server = on.options().start();
    let client = server.client();
    let register = |n: usize| {
        let client = client.clone();
        let email = unique_email(&format!("crowd-{n}"));
        let body = json!({"email": email, "password": PASSWORD, "confirm_password": PASSWORD});
        tokio::spawn(async move { client.send(Request::new("POST", "/api/v1/auth/register").json(&body)).await })
    };
    let crowd: Vec<_> = (0..60).map(register).collect();
    for reply in crowd {
        reply.await.unwrap().success();
    }
    // Those who go away before their turn cost nothing.
    for n in 0..100 {
        let body =
            json!({"email": unique_email(&format!("gone-{n}")), "password": PASSWORD, "confirm_password": PASSWORD});
        let request = Request::new("POST", "/api/v1/auth/register").json(&body).to_bytes();
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(&request).await.unwrap();
    }
    Account::register(&client, &unique_email("last")).await;
    assert_peak_below(&server, 100 * MB);
}

async fn a_large_text_is_refused_by_its_size(on: On) {
    const SIZE: usize = 300 * MB;
    let server = on.options().start();
    let account = Account::register(&server.client(), &unique_email("someone")).await;
    let folder = server.new_folder();
    let workspace = account.folder_workspace("Bench", &folder).await;
    let files = [("lines.txt", "a line of some text\n"), ("one-line.txt", "one line without an end ")];
    for (name, part) in files {
        let piece = part.repeat(MB / part.len());
        let mut file = fs::File::create(folder.join(name)).unwrap();
        for _ in 0..SIZE / piece.len() {
            file.write_all(piece.as_bytes()).unwrap();
        }
    }
    let mut calls = Vec::new();
    for (name, _) in files {
        let old = "a line of some text";
        calls.extend([
            ("workspace", "read", json!({"path": format!("/{name}")})),
            ("workspace", "edit", json!({"path": format!("/{name}"), "old_string": old, "new_string": "x"})),
            ("system", "read_file", json!({"path": name})),
            ("system", "read_file", json!({"path": name, "encoding": "base64"})),
            ("file", "file.read", json!({"path": name})),
            ("file", "file.patch", json!({"path": name, "patches": [{"find": old, "replace": "x"}]})),
            ("coding", "write", json!({"filePath": name, "content": "x"})),
            ("coding", "edit", json!({"filePath": name, "oldString": old, "newString": "x"})),
        ]);
    }
    let calls: Vec<_> = calls
        .into_iter()
        .map(|(toolset, tool, args): (_, _, Value)| {
            let workspace = workspace.clone();
            tokio::spawn(async move { (tool, workspace.call_of(toolset, tool, &args).await) })
        })
        .collect();
    for call in calls {
        let (tool, reply) = call.await.unwrap();
        assert_eq!(reply.status, 413, "{tool}: {reply}");
    }
    let content = format!("/content/{}", files[0].0);
    assert_eq!(workspace.get(&content).await.status, 200);
    assert_peak_below(&server, 150 * MB);
}
