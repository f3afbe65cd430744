//! A client of `toolrest mcp` that shows tests exactly what is sent and received.
#![allow(clippy::needless_pass_by_value, reason = "tests pass literals of JSON")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolrest_testkit::{temp_folder, wait_until};

use crate::command::toolrest;

const LIMIT: Duration = Duration::from_secs(60);

/// A running `toolrest mcp` with a folder of its own; killed when dropped.
pub struct McpClient {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Messages that were received while another was waited for.
    early: Vec<Value>,
    home: TempDir,
    next_id: u64,
}

/// Returns the result of a response; panics if it is an error.
#[track_caller]
pub fn answer(response: Value) -> Value {
    assert!(response.get("error").is_none(), "{response}");
    response["result"].clone()
}

/// Returns the text of a result.
#[track_caller]
pub fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"))
}

impl McpClient {
    /// Starts it with the tools of `coding` and `system`.
    pub fn in_folder(files: &[(&str, &str)]) -> Self {
        Self::start(files, &[], &[])
    }

    /// Starts it with the default tools.
    pub fn with_default_tools(files: &[(&str, &str)], env: &[(&str, &str)]) -> Self {
        Self::start_with(files, &[], env)
    }

    /// Starts it in a folder with these files, with the tools of `coding` and `system` if the arguments name no others.
    pub fn start(files: &[(&str, &str)], arguments: &[&str], env: &[(&str, &str)]) -> Self {
        let toolsets: &[&str] = if arguments.contains(&"--toolset") { &[] } else { &["--toolset", "coding,system"] };
        Self::start_with(files, &[toolsets, arguments].concat(), env)
    }

    fn start_with(files: &[(&str, &str)], arguments: &[&str], env: &[(&str, &str)]) -> Self {
        let home = temp_folder("mcp");
        let folder = home.path().join("project");
        fs::create_dir(&folder).unwrap();
        for (path, content) in files {
            let file = folder.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        let arguments = [&["--dir", folder.to_str().unwrap()], arguments].concat();
        Self::start_in(home, &arguments, env)
    }

    /// Starts it without naming a folder, in a folder with the file `started-here.txt`.
    pub fn without_folder() -> Self {
        let home = temp_folder("mcp");
        fs::create_dir(home.path().join("project")).unwrap();
        fs::write(home.path().join("project/started-here.txt"), "").unwrap();
        Self::start_in(home, &["--toolset", "coding"], &[])
    }

    /// Starts it for a workspace of a server.
    pub fn of_server(url: &str, token: &str) -> Self {
        Self::start_in(
            temp_folder("mcp"),
            &["--server", url, "--toolset", "coding,system"],
            &[("TOOLREST_TOKEN", token)],
        )
    }

    fn start_in(home: TempDir, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        let folder = Some(home.path().join("project")).filter(|folder| folder.is_dir());
        let mut child = toolrest(folder.as_deref().unwrap_or(home.path()), &[&["mcp"], arguments].concat())
            .env("XDG_DATA_HOME", home.path().join("data"))
            .env("TOOLREST__LOG__LEVEL", "warn")
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, messages) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, messages, early: Vec::new(), home, next_id: 0 }
    }

    /// Begins the protocol with these capabilities of the client; returns what the server says about itself.
    pub fn begin(&mut self, capabilities: &Value) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client});
        let info = self.request("initialize", params);
        self.notify("notifications/initialized", json!({}));
        info
    }

    fn write(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("the input is open");
        writeln!(input, "{message}").unwrap();
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request; returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Answers a request of the server.
    pub fn answer(&mut self, request: &Value, result: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// Returns the next message that fits.
    #[track_caller]
    fn wait(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&fits) {
            return self.early.remove(at);
        }
        loop {
            let message =
                self.messages.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("no {what}; got {:?}", self.early));
            if fits(&message) {
                return message;
            }
            self.early.push(message);
        }
    }

    /// Waits for the response to a request.
    #[track_caller]
    pub fn response(&mut self, id: u64) -> Value {
        self.wait("response", |message| message["id"] == id && message.get("method").is_none())
    }

    /// Waits for a request of the server.
    #[track_caller]
    pub fn next_request(&mut self, method: &str) -> Value {
        self.wait(method, |message| message["method"] == method)
    }

    /// Sends a request and returns the whole response.
    #[track_caller]
    pub fn exchange(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.response(id)
    }

    /// Sends a request and returns its result.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        answer(self.exchange(method, params))
    }

    /// Calls a tool.
    #[track_caller]
    pub fn call(&mut self, tool: &str, args: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": args}))
    }

    /// Calls a tool that succeeds; returns the text.
    #[track_caller]
    pub fn text(&mut self, tool: &str, args: Value) -> String {
        let result = self.call(tool, args);
        assert_eq!(result["isError"], false, "{result}");
        text_of(&result).to_owned()
    }

    /// Returns the content of a file of the folder.
    #[track_caller]
    pub fn file(&self, path: &str) -> String {
        fs::read_to_string(self.home.path().join("project").join(path)).unwrap()
    }

    /// Returns the data folder.
    pub fn data(&self) -> PathBuf {
        self.home.path().join("data/toolrest")
    }

    /// Closes the input and waits until the process has ended, successfully.
    pub fn end(&mut self) {
        self.input = None;
        let mut status = None;
        wait_until("the process has ended", LIMIT, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success(), "{status:?}");
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
