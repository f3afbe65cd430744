//! Writes and checks `docs/toolset-*.md`. The requests, answers and errors on the pages come from calls to a real server.
//!
//! `<toolset>.json` beside this file holds the calls: for each tool one call that succeeds and some that are refused.
//! Each tool gets a new workspace with the `files` of the page. `prepare` are calls of the same toolset that come first;
//! `save` keeps strings of their answers for later arguments, where `${name}` stands for them. Values that differ from
//! run to run or from machine to machine (ids, times, durations) are replaced by fixed ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};
use toolrest::core::{DynTool, ErrorKind, Role, ToolError, Toolset};
use toolrest::toolsets::{self, errors};
use toolrest_testkit::{Reply, Workspace};

use super::is_current;
use super::schema_table::{arguments_table, result_table};
use crate::fixture::{FileContent, fill_in, fits, is_shaped_like, write_file};
use crate::github_host;
use crate::on::{On, text_at};
use crate::web_host::WebHost;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    /// What the toolset is for, and the form of its paths and answers.
    introduction: Vec<String>,
    /// The files of the workspace before each example.
    files: BTreeMap<String, FileContent>,
    tools: BTreeMap<String, Examples>,
}

/// The calls of one tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Examples {
    #[serde(default)]
    prepare: Vec<PreparingCall>,
    /// The arguments of the call that succeeds.
    args: Value,
    refused: Vec<Refusal>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PreparingCall {
    tool: String,
    args: Value,
    /// Names for strings of the answer, each with its JSON pointer.
    #[serde(default)]
    save: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    /// Why the server refuses the call.
    when: String,
    args: Value,
}

/// The errors that every tool can return, with their meaning. Errors of one tool are in its own table.
const COMMON_ERRORS: [(ErrorKind, &str); 12] = [
    (ErrorKind::InvalidArgument, "An argument is missing, unknown, of the wrong type or out of range."),
    (ErrorKind::InvalidPath, "A path has control characters, or a name of more than 255 bytes."),
    (ErrorKind::UnknownTool, "The toolset has no tool of that name."),
    (ErrorKind::Unauthenticated, "The access token is missing, wrong or expired."),
    (ErrorKind::Forbidden, "The caller is not a member of the workspace, or has a role that is too low."),
    (ErrorKind::PayloadTooLarge, "The request is larger than `limits.body_bytes`."),
    (
        ErrorKind::ResponseTooLarge,
        "The answer, or a file that the tool has to read whole, is larger than `limits.response_bytes`.",
    ),
    (ErrorKind::QuotaExceeded, "The workspace or the account has reached a limit; the message names the setting."),
    (ErrorKind::Timeout, "The call, or the program that it runs, exceeded its time limit."),
    (ErrorKind::StorageFull, "The server's disk is full."),
    (ErrorKind::Unavailable, "The server is overloaded, or its database does not answer."),
    (ErrorKind::Internal, "The server has a bug or a defect; its log has the details."),
];

/// The errors that tools that run programs or reach other machines can also return.
const PROGRAM_ERRORS: [(ErrorKind, &str); 3] = [
    (ErrorKind::NetworkError, "A host could not be reached, or did not answer as it should."),
    (ErrorKind::SandboxUnavailable, "The server cannot isolate programs on this machine, so it runs none."),
    (ErrorKind::NotConfigured, "The tool needs something that the operator has not set up; the message says what."),
];

macro_rules! pages {
    ($($toolset:ident),+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $toolset() {
            check_page(stringify!($toolset)).await;
        }
    )+};
}

pages!(workspace, file, system, backend, coding);

async fn check_page(name: &str) {
    let path = format!("{}/tests/it/reference/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let page: Page = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let toolsets = toolsets::all(&toolsets::Services::none());
    let toolset = toolsets.find(name).unwrap();
    let tools: BTreeSet<&str> = toolset.tools().map(DynTool::name).collect();
    let with_examples: BTreeSet<&str> = page.tools.keys().map(String::as_str).collect();
    assert_eq!(tools, with_examples, "the tools, and the tools that have examples");

    let introduction = format!("# The toolset `{name}`\n\n{}", page.introduction.join("\n"));
    let mut body = contents(toolset);
    body += &how_to_call(toolset, &page);
    let mut shown_error = None;
    for tool in toolset.tools() {
        let examples = Recorder { toolset, page: &page, examples: &page.tools[tool.name()] };
        body += &examples.section(tool, &mut shown_error).await;
    }
    body += &common_errors(toolset, &shown_error.unwrap());
    is_current(&format!("toolset-{name}.md"), &introduction, &body);
}

/// The list of tools with links to their sections.
fn contents(toolset: &Toolset) -> String {
    let mut list = String::from("| tool | |\n|---|---|\n");
    for tool in toolset.tools() {
        let anchor = tool.name().to_lowercase().replace('.', "");
        writeln!(list, "| [`{}`](#{anchor}) | {} |", tool.name(), tool.description()).unwrap();
    }
    list
}

fn how_to_call(toolset: &Toolset, page: &Page) -> String {
    let first = toolset.tools().next().unwrap();
    let body = request_body(toolset, first.name(), &page.tools[first.name()].args);
    let mut text = format!(
        "\n## How to call\n\n```sh\ncurl -s http://127.0.0.1:3000{} \\\n  -H \"Authorization: Bearer $TOKEN\" -H \
         'Content-Type: application/json' \\\n  -d '{body}'\n```\n\nThe [README](../README.md) shows how to get `$TOKEN` and \
         `$WORKSPACE`. The examples below show the body of the request and the whole answer.\nA test made these calls; only \
         ids, times, durations and `enforcedBy` are replaced.\nEvery result may also have `warnings`, an array of strings.\n\n\
         Each example starts with these files:\n",
        route(toolset)
    );
    for (path, content) in &page.files {
        match content {
            FileContent::Text(content) => write!(text, "\n`{path}`:\n\n```text\n{content}```\n"),
            FileContent::Bytes { .. } | FileContent::Repeated { .. } => {
                write!(text, "\n`{path}`: bytes that are not text\n")
            }
        }
        .unwrap();
    }
    text
}

fn route(toolset: &Toolset) -> String {
    format!("/api/v1/workspaces/$WORKSPACE/toolsets/{}", toolset.name())
}

fn request_body(toolset: &Toolset, tool: &str, args: &Value) -> Value {
    let mut body = json!({"tool": tool, "args": args});
    if toolset.dialect().needs_correlation() {
        body["correlationId"] = json!("example-1");
    }
    body
}

/// Makes the calls of one tool.
struct Recorder<'a> {
    toolset: &'a Toolset,
    page: &'a Page,
    examples: &'a Examples,
}

impl Recorder<'_> {
    /// Returns the section of a tool. `shown_error` receives the first refusal on the page.
    async fn section(&self, tool: &dyn DynTool, shown_error: &mut Option<Value>) -> String {
        let role = if tool.action().needs() == Role::Viewer { "viewer" } else { "editor" };
        let mut text = format!("\n## `{}`\n\n{}. Needs the role `{role}`.\n", tool.name(), tool.description());
        text += &arguments_table(tool.input_schema());
        text += &self.example(tool.name()).await;
        text += &result_table(tool.output_schema());
        text += "\n### Errors\n\n| HTTP | code | when | first line of the message |\n|---|---|---|---|\n";
        for refusal in &self.examples.refused {
            let (workspace, names) = self.workspace(tool.name()).await;
            let reply = self.call(&workspace, tool.name(), &fill_in(&refusal.args, &names)).await;
            assert!(reply.status >= 400, "{reply}");
            let mut answer = reply.json();
            replace_varying_values(&mut answer, &mut Vec::new());
            let (code, message) = code_and_message(&answer);
            let (status, when, message) = (reply.status, &refusal.when, cell(message));
            writeln!(text, "| {status} | `{code}` | {when} | {message} |").unwrap();
            shown_error.get_or_insert(answer);
        }
        text
    }

    /// Returns the request and the answer of the call that succeeds.
    async fn example(&self, tool: &str) -> String {
        let (workspace, names) = self.workspace(tool).await;
        let args = fill_in(&self.examples.args, &names);
        let mut answer = self.call(&workspace, tool, &args).await.success();
        let mut body = request_body(self.toolset, tool, &args);
        let mut ids = Vec::new();
        replace_varying_values(&mut body, &mut ids);
        replace_varying_values(&mut answer, &mut ids);
        format!(
            "\n### Example\n\n```json\n{}\n```\n\nAnswer:\n\n```json\n{}\n```\n",
            layout(&body, 0),
            layout(&answer, 0)
        )
    }

    /// Makes a workspace with the files of the page, makes the preparing calls, and returns what they save.
    async fn workspace(&self, tool: &str) -> (Workspace, BTreeMap<String, String>) {
        let mut names = BTreeMap::from([
            ("web".to_owned(), WebHost::web().url()),
            ("github".to_owned(), github_host::github().url()),
        ]);
        if tool.starts_with("github_") {
            return (github_host::workspace().await, names);
        }
        let workspace = On::Sqlite.workspace().await;
        for (path, content) in &self.page.files {
            write_file(&workspace, path, content).await;
        }
        for PreparingCall { tool, args, save } in &self.examples.prepare {
            let answer = self.call(&workspace, tool, &fill_in(args, &names)).await.success();
            for (name, pointer) in save {
                names.insert(name.clone(), text_at(&answer, pointer).to_owned());
            }
        }
        (workspace, names)
    }

    async fn call(&self, workspace: &Workspace, tool: &str, args: &Value) -> Reply {
        let body = request_body(self.toolset, tool, args);
        workspace.post(&format!("/toolsets/{}", self.toolset.name()), &body).await
    }
}

/// Returns the code and the message of an error, wherever the toolset has them.
fn code_and_message(answer: &Value) -> (&str, &str) {
    let inner = if answer["error"].is_object() { &answer["error"] } else { answer };
    match (&inner["code"], &inner["message"], &inner["error"]) {
        (Value::String(code), Value::String(message), _)
        | (Value::String(code), _, Value::String(message))
        | (_, Value::String(message), Value::String(code)) => (code, message),
        _ => panic!("no error: {answer}"),
    }
}

fn common_errors(toolset: &Toolset, shown_error: &Value) -> String {
    let mut text = format!(
        "\n## Errors of every tool\n\nThe whole answer of a refused call, here the first of the errors above:\n\n\
         ```json\n{}\n```\n\n| HTTP | code | meaning | what to do |\n|---|---|---|---|\n",
        layout(shown_error, 0)
    );
    let program_errors = match toolset.name() {
        "backend" | "system" => &PROGRAM_ERRORS[..],
        _ => &[],
    };
    for (kind, meaning) in COMMON_ERRORS.iter().chain(program_errors) {
        let body = toolset.dialect().failure(&ToolError::new(*kind, "-"), "-");
        let body: Value = serde_json::from_slice(&body).unwrap();
        let (code, _) = code_and_message(&body);
        let row = errors::row(*kind);
        writeln!(text, "| {} | `{code}` | {meaning} | {}. |", row.status, row.remediation).unwrap();
    }
    text + "\nAll errors of all toolsets: [errors.md](errors.md).\n"
}

/// Returns a message as a cell of a table: its first line.
fn cell(message: &str) -> String {
    let (first, rest) = message.split_once('\n').unwrap_or((message, ""));
    format!("{}{}", first.replace('|', "\\|"), if rest.is_empty() { "" } else { " …" })
}

/// The form of a process's id; see [`is_shaped_like`].
const PROCESS_ID: &str = "hhhhhhhhhhhh";
const PROCESS_ID_CHARS: usize = PROCESS_ID.len();

/// Replaces values that differ between runs or machines. `ids` are the ids seen so far; equal ids stay equal.
fn replace_varying_values(value: &mut Value, ids: &mut Vec<String>) {
    match value {
        Value::String(text) if fits("$uuid", text) || is_shaped_like(text, PROCESS_ID) => {
            let known = ids.iter().position(|id| id == text).unwrap_or_else(|| {
                ids.push(text.clone());
                ids.len() - 1
            });
            let number = known + 1;
            *text = match text.len() {
                PROCESS_ID_CHARS => format!("7bc008f9785{number}"),
                _ => format!("019a5c3e-7d10-7000-8000-{number:012}"),
            };
        }
        Value::String(text) if text.contains("127.0.0.") => *text = with_public_hosts(text),
        Value::String(text) if fits("$timestamp", text) => "2026-11-18T09:30:00.000Z".clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_varying_values(item, ids)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "duration" => *value = json!(25),
                    "enforcedBy" => {
                        *value = json!({"memory": "cgroup_v2", "processes": "cgroup_v2", "disk": "watchdog"});
                    }
                    _ => replace_varying_values(value, ids),
                }
            }
        }
        _ => {}
    }
}

/// Replaces the hosts that play the web and GitHub by those that they play.
fn with_public_hosts(text: &str) -> String {
    let (web, github) = (WebHost::web().url(), github_host::github().url());
    let hosts = [(web, "https://example.com"), (github, "https://github.com")];
    hosts.into_iter().fold(text.to_owned(), |text, (url, public)| {
        let (host, public_host) = (url.trim_start_matches("http://"), public.trim_start_matches("https://"));
        text.replace(&url, public).replace(host, public_host)
    })
}

/// Lays JSON out for reading: what fits into a line is one line.
fn layout(value: &Value, indent: usize) -> String {
    const LINE_CHARS: usize = 110;
    let line = value.to_string();
    if indent + line.chars().count() <= LINE_CHARS {
        return line;
    }
    let (open, close, items): (_, _, Vec<String>) = match value {
        Value::Array(items) => ('[', ']', items.iter().map(|item| layout(item, indent + 2)).collect()),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{}: {}", json!(name), layout(value, indent + 2));
            ('{', '}', fields.iter().map(field).collect())
        }
        _ => return line,
    };
    let (inner, outer) = (" ".repeat(indent + 2), " ".repeat(indent));
    format!("{open}\n{inner}{}\n{outer}{close}", items.join(&format!(",\n{inner}")))
}
