//! Memory that callers can take: bodies, answers, large files and passwords.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolrest_testkit::{Account, PASSWORD, Request, Server, Workspace, unique_email};

use crate::on::On;

on_both_databases![
    bodies_of_strangers_are_not_kept,
    a_caller_takes_no_more_than_its_share_of_the_bytes_in_flight,
    answers_that_nobody_takes_are_bounded,
    large_reads_take_turns,
    commits_are_listed_as_far_as_they_fit,
    registrations_take_a_bounded_memory,
];

on!(folder, Folder:
    a_large_text_is_refused_by_its_size
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
    let workspace = member.seen_by(&stranger);
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
    let server = on
        .options()
        .env("TOOLREST__LIMITS__IN_FLIGHT_BYTES", &(8 * MB).to_string())
        .env("TOOLREST__LIMITS__BODY_BYTES", &(4 * MB).to_string())
        .env("TOOLREST__LIMITS__RESPONSE_BYTES", &(4 * MB).to_string())
        .start();
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
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let readers: Vec<_> = begun
        .into_iter()
        .map(|mut stream| {
            let tell = tell.clone();
            tokio::spawn(async move { tell.send(answer(&mut stream).await) })
        })
        .collect();
    // Only one of them has room; the others are refused long before its body would be given up.
    for _ in 0..3 {
        let answer = told.recv().await.unwrap();
        let is_refused = answer.starts_with("HTTP/1.1 503") && answer.to_lowercase().contains("retry-after: 1");
        assert!(is_refused && answer.contains("in_flight_bytes") && answer.contains("\"ok\":false"), "{answer}");
    }
    readers.iter().for_each(tokio::task::JoinHandle::abort);
    for reader in readers {
        drop(reader.await);
    }
    slow.write("/again.txt", &content).await;
}

async fn answers_that_nobody_takes_are_bounded(on: On) {
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
