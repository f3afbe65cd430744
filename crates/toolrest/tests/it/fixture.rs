//! Runs the examples of a specification, which are data in `spec_NNN/*.json`.
//!
//! A scenario starts with `files` (a text, `{"base64"}` for bytes, or `{"repeat", "times"}`), `folders` and `setup` calls of
//! the `workspace` toolset, whose results can be saved under a name. Then follow the `exchanges`: a `call` of the
//! specification's toolset or a raw `request`, and the expected answer. `after` has the expected texts at the end; null
//! means that the file does not exist. `of_databases` marks scenarios about JSON types, which folders do not have.
//! `specification` names the source of the example, and `ruling` the decision where the specification is silent or
//! contradicts itself.
//!
//! In every string, `${name}` is replaced by a saved value, `${web}` and `${github}` by the hosts of `web_pages.rs` and
//! `github_host.rs`, `${workspace}` by the workspace's id, `${access_token}`, `${viewer_token}` and `${foreign_token}` by the
//! token of the owner, a viewer and a user who is not a member, and `${root}` by the prefix that makes a path absolute.
//! Expected strings may be patterns: `$uuid`, `$timestamp`, `$sha256`, `$string`, `$begins:` with the start of a text, and
//! `$positioned:` for a message that may end in ` at line N column M`.
//! An expected object with `"$more": true` may have further fields. Everything else must be equal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolrest_testkit::{Account, Client, Reply, Request, Workspace};

use crate::github_host::{self, github};
use crate::on::{On, text_at};
use crate::toolset::SYSTEM;
use crate::web_host::WebHost;

/// Fields that any result may have in addition to those of the specification.
const EXTRA_RESULT_FIELDS: [&str; 24] = [
    "bodyFormat",
    "changes",
    "changesBy",
    "changesTotal",
    "commitId",
    "conflicts",
    "diff",
    "enforcedBy",
    "fetchedBy",
    "hash",
    "leftOut",
    "leftOutTotal",
    "limit",
    "matchedWith",
    "matched_with",
    "redirectedTo",
    "skipped",
    "status",
    "summaryBy",
    "title",
    "total",
    "untrusted",
    "url",
    "warnings",
];

/// A specification whose examples are run.
pub struct Specification {
    /// The folder that holds them.
    pub folder: &'static str,
    /// The toolset that it describes.
    pub toolset: &'static str,
    /// The files in the folder, without their ending.
    pub fixtures: &'static [&'static str],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    scenarios: Vec<Scenario>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    name: String,
    specification: String,
    ruling: Option<String>,
    /// Whether the scenario is about JSON types, which only databases have.
    #[serde(default)]
    of_databases: bool,
    #[serde(default)]
    files: BTreeMap<String, FileContent>,
    #[serde(default)]
    folders: Vec<String>,
    #[serde(default)]
    setup: Vec<SetupCall>,
    exchanges: Vec<Exchange>,
    #[serde(default)]
    after: BTreeMap<String, Option<String>>,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum FileContent {
    Text(String),
    Bytes { base64: String },
    Repeated { repeat: String, times: usize },
}

impl FileContent {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Bytes { base64 } => STANDARD.decode(base64).unwrap(),
            Self::Repeated { repeat, times } => repeat.repeat(*times).into_bytes(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetupCall {
    tool: String,
    args: Value,
    #[serde(default)]
    save: BTreeMap<String, String>,
}

/// A `call` or a `request`, and the expected answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    call: Option<Call>,
    request: Option<RawRequest>,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    args: Value,
    #[serde(default)]
    by: By,
}

/// The user who calls.
#[derive(Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum By {
    #[default]
    Owner,
    Viewer,
    Stranger,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRequest {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    status: u16,
    /// JSON pointer to the part of the answer that `body` describes; empty for all of it.
    #[serde(default)]
    at: String,
    body: Value,
}

enum Sent<'a> {
    Call(&'a Call),
    Request(&'a RawRequest),
}

impl Exchange {
    fn sent(&self) -> Sent<'_> {
        match (&self.call, &self.request) {
            (Some(call), None) => Sent::Call(call),
            (None, Some(request)) => Sent::Request(request),
            _ => panic!("an exchange is either a call or a request"),
        }
    }

    /// Returns the tool that is called, if there is one.
    fn tool(&self) -> Option<&str> {
        match self.sent() {
            Sent::Call(call) => Some(&call.tool),
            Sent::Request(request) => request.body.as_ref().and_then(|body| body["tool"].as_str()),
        }
    }
}

/// Number of examples of a tool that succeed, and that are refused.
#[derive(Default)]
pub struct Coverage {
    pub successes: usize,
    pub refusals: usize,
}

impl Specification {
    /// Returns the names of all fixture files in the folder.
    pub fn fixture_files(&self) -> BTreeSet<String> {
        let files = fs::read_dir(fixtures_folder().join(self.folder)).unwrap().map(|entry| entry.unwrap().path());
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    }

    /// Returns the numbers of examples by tool.
    pub fn coverage(&self) -> BTreeMap<String, Coverage> {
        let mut tools = BTreeMap::<String, Coverage>::new();
        let scenarios = self.fixtures.iter().flat_map(|fixture| self.read(fixture).scenarios);
        for exchange in scenarios.flat_map(|scenario| scenario.exchanges) {
            let Some(tool) = exchange.tool() else { continue };
            let coverage = tools.entry(tool.to_owned()).or_default();
            let counted = if exchange.expect.status == 200 { &mut coverage.successes } else { &mut coverage.refusals };
            *counted += 1;
        }
        tools
    }

    /// Runs the scenarios of one file, each in a new workspace.
    pub async fn run(&self, on: On, fixture: &str) {
        let users = Users { owner: on.account().await, viewer: on.account().await, stranger: on.account().await };
        let is_folder = matches!(on, On::Folder | On::FolderOnPostgres);
        for scenario in self.read(fixture).scenarios.into_iter().filter(|one| !(is_folder && one.of_databases)) {
            if let Err(fault) = self.try_scenario(on, &users, &scenario).await {
                let Scenario { name, specification, ruling, .. } = scenario;
                let ruling = ruling.map_or_else(String::new, |ruling| format!(", by the ruling “{ruling}”"));
                panic!("{}/{fixture}.json, “{name}” ({specification}{ruling}): {fault}", self.folder);
            }
        }
    }

    /// Runs the scenarios of one file at the listener of specification 003, which serves this folder, as a caller without a
    /// token. What other callers send is left out.
    pub async fn run_at_tool_backend(&self, client: &Client, folder: &Path, fixture: &str) {
        for scenario in self.read(fixture).scenarios.into_iter().filter(|one| !one.of_databases) {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() { fs::remove_dir_all(entry).unwrap() } else { fs::remove_file(entry).unwrap() }
            }
            for path in &scenario.folders {
                fs::create_dir_all(folder.join(path)).unwrap();
            }
            for (path, content) in &scenario.files {
                fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
                fs::write(folder.join(path), content.bytes()).unwrap();
            }
            assert!(scenario.setup.is_empty(), "the listener has no other toolset for setup calls");
            let names =
                [("web", WebHost::web().url()), ("github", github().url()), ("workspace", "listener".to_owned())];
            let names = names.map(|(name, value)| (name.to_owned(), value)).into();
            for (step, exchange) in scenario.exchanges.iter().enumerate() {
                let Sent::Call(call) = exchange.sent() else { continue };
                if !matches!(call.by, By::Owner) {
                    continue;
                }
                let args = fill_in(&call.args, &names);
                let body = json!({"tool": call.tool, "args": args, "correlationId": "at-3001"});
                let reply = client.send(Request::new("POST", "/execute-tool").json(&body)).await;
                assert_eq!(reply.header("x-correlation-id"), Some("at-3001"), "{reply}");
                let fault = if reply.status == exchange.expect.status {
                    let extra = self.extra_fields(reply.status);
                    compare(&fill_in(&exchange.expect.body, &names), &reply.json(), "", extra)
                } else {
                    Err(format!("expected {}", exchange.expect.status))
                };
                fault.unwrap_or_else(|fault| {
                    panic!("{fixture}.json, “{}”, exchange {}: {fault}; {reply}", scenario.name, step + 1)
                });
            }
            for (path, text) in &scenario.after {
                assert_eq!(
                    fs::read_to_string(folder.join(path)).ok(),
                    *text,
                    "{fixture}.json, “{}”: {path}",
                    scenario.name
                );
            }
        }
    }

    fn read(&self, fixture: &str) -> Fixture {
        let path = fixtures_folder().join(self.folder).join(format!("{fixture}.json"));
        let text = fs::read_to_string(&path).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    async fn try_scenario(&self, on: On, users: &Users, scenario: &Scenario) -> Result<(), String> {
        let TestWorkspace { workspace, root } = workspace_for(on, users, scenario).await;
        let mut names = BTreeMap::from([
            ("workspace".to_owned(), workspace.id.clone()),
            ("web".to_owned(), WebHost::web().url()),
            ("github".to_owned(), github().url()),
            ("root".to_owned(), root),
            ("access_token".to_owned(), users.owner.access_token.clone()),
            ("viewer_token".to_owned(), users.viewer.access_token.clone()),
            ("foreign_token".to_owned(), users.stranger.access_token.clone()),
        ]);
        if self.toolset == "backend" {
            let token = json!({"value": github_host::TOKEN});
            workspace.send("PUT", "/secrets/GITHUB_TOKEN", Some(&token)).await.success();
        }
        for call in &scenario.setup {
            let result = workspace.ok(&call.tool, fill_in(&call.args, &names)).await;
            for (name, pointer) in &call.save {
                names.insert(name.clone(), text_at(&result, pointer).to_owned());
            }
        }
        for (step, exchange) in scenario.exchanges.iter().enumerate() {
            let fault = self.try_exchange(&workspace, users, exchange, &names).await;
            fault.map_err(|fault| format!("exchange {}: {fault}", step + 1))?;
        }
        for (path, text) in &scenario.after {
            let reply = workspace.call("read", &json!({"path": path})).await;
            let found = (reply.status != 404).then(|| reply.result()["content"].take());
            if found != text.clone().map(Value::String) {
                return Err(format!("after it {path} is {found:?}, expected {text:?}"));
            }
        }
        Ok(())
    }

    async fn try_exchange(
        &self,
        workspace: &Workspace,
        users: &Users,
        exchange: &Exchange,
        names: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        let reply = match exchange.sent() {
            Sent::Call(call) => {
                let workspace = workspace.for_user(users.role(call.by));
                workspace.call_of(self.toolset, &call.tool, &fill_in(&call.args, names)).await
            }
            Sent::Request(request) => send(&workspace.account.client, request, names).await,
        };
        let Expect { status, at, body } = &exchange.expect;
        if *status != reply.status {
            return Err(format!("expected {status}, but {reply}"));
        }
        let answer = reply.json();
        let found = answer.pointer(at).ok_or_else(|| format!("nothing at {at}; {reply}"))?;
        let extra = self.extra_fields(reply.status);
        compare(&fill_in(body, names), found, at, extra).map_err(|fault| format!("{fault}; {reply}"))
    }

    /// Returns the fields that an answer may have in addition to the expected ones, and where.
    fn extra_fields(&self, status: u16) -> ExtraFields {
        match (self.toolset, status) {
            ("workspace" | "backend", 200) => ExtraFields { at: "/result", names: &EXTRA_RESULT_FIELDS },
            ("workspace", _) => ExtraFields { at: "", names: &["fields"] },
            ("system", 200) => ExtraFields { at: "/value", names: &EXTRA_RESULT_FIELDS },
            ("system" | "backend", _) => ExtraFields { at: "/error", names: &["details"] },
            (_, 200) => ExtraFields { at: "", names: &EXTRA_RESULT_FIELDS },
            (_, _) => ExtraFields { at: "", names: &[] },
        }
    }
}

fn fixtures_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it")
}

/// Returns the names of the folders with fixtures.
pub fn folders() -> BTreeSet<String> {
    let entries = fs::read_dir(fixtures_folder()).unwrap().map(|entry| entry.unwrap().path());
    let folders =
        entries.filter(|path| path.is_dir()).map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    folders.filter(|name| name.starts_with("spec_")).collect()
}

/// The users of a scenario.
struct Users {
    owner: Account,
    viewer: Account,
    stranger: Account,
}

impl Users {
    fn role(&self, by: By) -> &Account {
        match by {
            By::Owner => &self.owner,
            By::Viewer => &self.viewer,
            By::Stranger => &self.stranger,
        }
    }
}

/// The workspace of a scenario.
struct TestWorkspace {
    workspace: Workspace,
    /// The prefix that makes a path absolute: the folder's path, or nothing for a database workspace.
    root: String,
}

/// Creates a workspace of the kind that the test is about.
async fn new_workspace(on: On, owner: &Account) -> TestWorkspace {
    match on {
        On::Sqlite | On::Postgres => {
            TestWorkspace { workspace: owner.workspace("Examples").await, root: String::new() }
        }
        On::Folder | On::FolderOnPostgres | On::FolderOfUser => {
            let folder = on.shared().new_folder();
            let root = folder.to_str().unwrap().to_owned();
            TestWorkspace { workspace: owner.folder_workspace("Examples", &folder).await, root }
        }
    }
}

async fn workspace_for(on: On, users: &Users, scenario: &Scenario) -> TestWorkspace {
    let made = new_workspace(on, &users.owner).await;
    made.workspace.add_member(&users.viewer, "viewer").await;
    for folder in &scenario.folders {
        made.workspace.ok("mkdir", json!({"path": folder})).await;
    }
    for (path, content) in &scenario.files {
        write_file(&made.workspace, path, content).await;
    }
    made
}

/// Writes a file that an example needs.
pub async fn write_file(workspace: &Workspace, path: &str, content: &FileContent) {
    match content {
        FileContent::Text(text) => drop(workspace.write(path, text).await),
        FileContent::Repeated { repeat, times } => drop(workspace.write(path, &repeat.repeat(*times)).await),
        FileContent::Bytes { base64 } => {
            let args = json!({"path": path, "content": base64, "encoding": "base64", "createDirs": true});
            SYSTEM.ok(workspace, "write_file", args).await;
        }
    }
}

async fn send(client: &Client, wanted: &RawRequest, names: &BTreeMap<String, String>) -> Reply {
    let mut request = Request::new(&wanted.method, &fill_in_text(&wanted.path, names));
    for (name, value) in &wanted.headers {
        request = request.header(name, &fill_in_text(value, names));
    }
    if let Some(body) = &wanted.body {
        request = request.body(fill_in(body, names).to_string());
    }
    client.send(request).await
}

/// Replaces `${name}` in every string by the value of that name.
pub fn fill_in(value: &Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(fill_in_text(text, names)),
        Value::Array(items) => items.iter().map(|item| fill_in(item, names)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), fill_in(value, names))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

fn fill_in_text(text: &str, names: &BTreeMap<String, String>) -> String {
    names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

#[derive(Clone, Copy)]
struct ExtraFields {
    at: &'static str,
    names: &'static [&'static str],
}

fn compare(expected: &Value, actual: &Value, at: &str, extra: ExtraFields) -> Result<(), String> {
    match (expected, actual) {
        (Value::Object(expected_fields), Value::Object(fields)) => {
            let may_have_more = expected_fields.contains_key("$more");
            for (name, value) in expected_fields.iter().filter(|(name, _)| *name != "$more") {
                let actual = fields.get(name).ok_or_else(|| format!("{at}/{name} is missing"))?;
                compare(value, actual, &format!("{at}/{name}"), extra)?;
            }
            let may_be_there = |name: &str| may_have_more || (at == extra.at && extra.names.contains(&name));
            let unexpected = fields.keys().find(|name| !expected_fields.contains_key(*name) && !may_be_there(name));
            unexpected.map_or(Ok(()), |name| Err(format!("{at}/{name} is unexpected")))
        }
        (Value::Array(expected_items), Value::Array(items)) => {
            if expected_items.len() != items.len() {
                return Err(format!("{at} has {} items, expected {}", items.len(), expected_items.len()));
            }
            expected_items
                .iter()
                .zip(items)
                .enumerate()
                .try_for_each(|(index, (expected, item))| compare(expected, item, &format!("{at}/{index}"), extra))
        }
        (Value::String(pattern), Value::String(text)) if fits(pattern, text) => Ok(()),
        (expected, actual) if expected == actual => Ok(()),
        (expected, actual) => Err(format!("{at} is {actual}, expected {expected}")),
    }
}

pub fn fits(pattern: &str, text: &str) -> bool {
    match pattern {
        "$uuid" => is_shaped_like(text, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh"),
        "$sha256" => is_shaped_like(text, &"h".repeat(64)),
        "$timestamp" => is_timestamp(text),
        "$string" => !text.is_empty(),
        pattern => {
            if let Some(beginning) = pattern.strip_prefix("$begins:") {
                text.starts_with(beginning)
            } else if let Some(message) = pattern.strip_prefix("$positioned:") {
                text.strip_prefix(message).is_some_and(|rest| rest.is_empty() || is_position(rest))
            } else {
                pattern == text
            }
        }
    }
}

/// Whether a text has a shape, in which `h` stands for a lower-case hexadecimal digit and `d` for a decimal one.
pub fn is_shaped_like(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
            b'h' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            b'd' => byte.is_ascii_digit(),
            other => byte == other,
        })
}

/// ISO 8601 in UTC, to the second or finer.
fn is_timestamp(text: &str) -> bool {
    let Some(time) = text.strip_suffix('Z') else {
        return false;
    };
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, "0"));
    is_shaped_like(seconds, "dddd-dd-ddTdd:dd:dd")
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_position(text: &str) -> bool {
    let numbers = text.strip_prefix(" at line ").and_then(|rest| rest.split_once(" column "));
    numbers.is_some_and(|(line, column)| line.parse::<u32>().is_ok() && column.parse::<u32>().is_ok())
}
