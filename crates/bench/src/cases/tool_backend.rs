//! `readFile` at the listener of specification 003, compared with the same read by the filesystem server of the Model
//! Context Protocol, and with the same call without HTTP.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolrest_server::Runtime;
use toolrest_server::settings::Settings;
use toolrest_testkit::Request;

use super::{Effort, latencies, median_of, per_round};
use crate::contents;
use crate::load::{self, Repeated, Round};
use crate::process;
use crate::report::{Figure, Report, Target, median, number};
use crate::server::{Backend, Server};

const CONTENT_BYTES: usize = 1024;
const FILE: &str = "read.txt";

pub fn run(toolrest: &Path, effort: Effort, report: &mut Report) {
    eprintln!("readFile of specification 003");
    report.section(
        "readFile of specification 003",
        "Reads of a 1 KB file in a folder from one connection, each sent when the last one is answered. The filesystem server \
         of the Model Context Protocol reads the same file over standard input and output.",
    );
    let folder = TempDir::new().expect("a folder");
    let text = contents::prose(1, CONTENT_BYTES);
    fs::write(folder.path().join(FILE), &text).expect("a file");
    let settings = [
        ("TOOLREST__TOOL_BACKEND__LISTEN", "127.0.0.1:0"),
        ("TOOLREST__FOLDERS__LOCAL_DIR", folder.path().to_str().expect("UTF-8")),
        ("TOOLREST__AUTH__REGISTRATION_OPEN", "true"),
    ];
    let server = Server::start_with(toolrest, Backend::Sqlite, &settings);
    let body = json!({"tool": "readFile", "args": {"path": FILE}, "correlationId": "bench"});
    let request = Request::new("POST", "/execute-tool").json(&body).to_bytes();
    let answer = server.tool_backend_session().exchange(&request);
    let answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(answer["result"]["content"], text);
    let load =
        |duration| load::run_on(&server, duration, vec![(Repeated(request.clone()), server.tool_backend_session())]);
    let mut other = FilesystemServer::start(folder.path(), &text);
    let mut bare = BareCalls::new(folder.path());
    load(effort.warm_up);
    let (mut rounds, mut others, mut added) = (Vec::<Round>::new(), Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        let round = load(effort.round);
        added.push((round.cpu_ms() - bare.cpu_ms(effort.round)) * 1e3);
        rounds.push(round);
        others.extend(other.as_mut().map(|other| other.reads_per_second(effort.round)));
    }
    let per_second = per_round(&rounds, Round::requests_per_second);
    let notes = format!("{}, CPU {} ms", latencies(&rounds), median_of(&rounds, Round::cpu_ms));
    report.add(Figure {
        case: "readFile".to_owned(),
        unit: "/s",
        rounds: per_second.clone(),
        target: Target::None,
        notes,
    });
    report.add(Figure {
        case: "CPU that HTTP and the listener add to the bare call".to_owned(),
        unit: "µs",
        rounds: added,
        target: Target::AtMost(60.0),
        notes: "the bare call is one of the library, in a process of its own".to_owned(),
    });
    if others.is_empty() {
        eprintln!("  the filesystem server is not installed: run `make interop`");
        return;
    }
    report.add(Figure {
        case: "readFile, compared with the filesystem server".to_owned(),
        unit: "×",
        rounds: per_second.iter().zip(&others).map(|(own, other)| own / other).collect(),
        target: Target::AtLeast(4.0),
        notes: format!("it reads {} files a second", number(median(&others))),
    });
}

/// Calls of the library in this process.
struct BareCalls {
    tokio: tokio::runtime::Runtime,
    runtime: Runtime,
    local: toolrest_server::Local,
    _data: TempDir,
}

impl BareCalls {
    fn new(folder: &Path) -> Self {
        let data = TempDir::new().expect("a folder");
        let mut settings = Settings::default();
        settings.server.data_dir = data.path().join("data");
        settings.folders.local_dir = Some(folder.to_owned());
        settings.run.enabled = false;
        let tokio = tokio::runtime::Runtime::new().expect("a runtime starts");
        let runtime = tokio.block_on(Runtime::open(settings)).expect("it opens");
        let local = tokio.block_on(runtime.open_local(folder)).expect("the folder opens");
        Self { tokio, runtime, local, _data: data }
    }

    /// Returns the CPU time of a call.
    fn cpu_ms(&mut self, duration: Duration) -> f64 {
        let own = std::process::id();
        let (cpu, start, mut calls) = (process::cpu(own), Instant::now(), 0_u32);
        while start.elapsed() < duration {
            let (workspace, caller, args) = (self.local.workspace, self.local.caller, json!({"path": FILE}));
            let call = self.runtime.call(workspace, caller, "backend", "readFile", &args);
            self.tokio.block_on(call).expect("it reads").json().expect("JSON");
            calls += 1;
        }
        process::cpu(own).saturating_sub(cpu).as_secs_f64() * 1e3 / f64::from(calls)
    }
}

/// A running server of `@modelcontextprotocol/server-filesystem`.
struct FilesystemServer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    path: PathBuf,
}

impl FilesystemServer {
    /// Starts the server, if it is installed, and has it read the file once.
    fn start(folder: &Path, text: &str) -> Option<Self> {
        let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/interop/npm/node_modules");
        let script = packages.join("@modelcontextprotocol/server-filesystem/dist/index.js");
        if !script.is_file() {
            return None;
        }
        let mut child = Command::new("node")
            .arg(script)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node must be installed");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut server = Self { child, input, output: BufReader::new(output), path: folder.join(FILE) };
        let client = json!({"name": "bench", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        server.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let read = server.read();
        assert_eq!(read["result"]["content"][0]["text"], text, "{read}");
        Some(server)
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("the server reads");
    }

    /// Sends a request and returns the answer. Other messages of the server are skipped.
    fn ask(&mut self, request: &Value) -> Value {
        self.send(request);
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("the server answers") > 0, "the server ended");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == request["id"] && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn read(&mut self) -> Value {
        let params = json!({"name": "read_text_file", "arguments": {"path": self.path}});
        self.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
    }

    fn reads_per_second(&mut self, duration: Duration) -> f64 {
        let (start, mut reads) = (Instant::now(), 0_u32);
        while start.elapsed() < duration {
            assert!(self.read()["error"].is_null(), "a read failed");
            reads += 1;
        }
        f64::from(reads) / start.elapsed().as_secs_f64()
    }
}

impl Drop for FilesystemServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
