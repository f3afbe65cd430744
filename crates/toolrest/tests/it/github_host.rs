//! A host that plays GitHub's REST API, at the paths of GitHub Enterprise. The names of repositories select its errors.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::{Mutex, OnceLock};

use serde_json::{Value, json};
use toolrest_testkit::{Server, Workspace};

use crate::on::On;
use crate::web_host::{GITHUB_ADDRESS, Received, WebHost, send};

/// The access token that the host accepts.
pub const TOKEN: &str = "ghp_0123456789abcdef0123456789abcdef0123";
/// Number of files of the pull request 1.
pub const FILES: usize = 250;

/// Returns the host that all tests share.
pub fn github() -> &'static WebHost {
    static GITHUB: OnceLock<WebHost> = OnceLock::new();
    GITHUB.get_or_init(|| {
        let files = Mutex::default();
        WebHost::start(GITHUB_ADDRESS, move |request, stream| answer(request, stream, &files))
    })
}

/// Returns the address of a pull request.
pub fn pull_request(repository: &str, number: u32) -> String {
    format!("{}/{repository}/pull/{number}", github().url())
}

/// Returns the local user's workspace on a server with the token.
pub async fn workspace() -> Workspace {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        let folder = On::Sqlite.shared().new_folder();
        On::Sqlite
            .options()
            .env("TOOLREST__FOLDERS__LOCAL_DIR", folder.to_str().unwrap())
            .env("TOOLREST__AUTH__REGISTRATION_OPEN", "true")
            .env("TOOLREST__GITHUB__TOKEN", TOKEN)
            .start()
    });
    crate::local_folder::local_workspace(server).await
}

/// The files of the repositories: the blob hash by repository and path.
type Files = Mutex<BTreeMap<String, String>>;

fn answer(request: &Received, stream: &mut TcpStream, files: &Files) {
    let (status, fields, body) = answered(request, files);
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    send(stream, status, &fields, body.to_string().as_bytes());
}

type Answer = (u16, Vec<(&'static str, String)>, Value);

fn ok(body: Value) -> Answer {
    (200, Vec::new(), body)
}

fn error(status: u16, message: &str) -> Answer {
    (status, Vec::new(), json!({"message": message, "documentation_url": "https://docs.github.com/rest"}))
}

fn answered(request: &Received, files: &Files) -> Answer {
    // GitHub refuses requests without them.
    assert!(request.field("user-agent").is_some_and(|value| value.starts_with("Toolrest/")), "{request:?}");
    assert_eq!(request.field("accept"), Some("application/vnd.github+json"));
    assert_eq!(request.field("x-github-api-version"), Some("2022-11-28"));
    if request.field("authorization") != Some(&format!("Bearer {TOKEN}")) {
        return error(401, "Bad credentials");
    }
    let path = request.path().strip_prefix("/api/v3/").expect("a path of the API");
    let parts: Vec<&str> = path.split('/').collect();
    let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
    match (request.method.as_str(), &parts[..]) {
        (_, ["repos", _, "forbidden", ..]) => error(403, "Resource not accessible by personal access token"),
        (_, ["repos", _, "limited", ..]) => {
            let (status, mut fields, body) = error(403, "You have exceeded a secondary rate limit");
            fields.push(("Retry-After", "30".to_owned()));
            (status, fields, body)
        }
        (_, ["repos", _, "failing", ..]) => error(503, "Service unavailable"),
        (_, ["repos", _, "garbled", ..]) => ok(json!("?")),
        (_, ["repos", _, "moved", "pulls", "1"]) => {
            let target = format!("{}/api/v3/repos/octo/demo/pulls/1", github().url());
            (301, vec![("Location", target)], json!({"message": "Moved Permanently"}))
        }
        (_, ["repos", _, "stolen", "pulls", "1"]) => {
            let target = format!("{}/stolen", WebHost::web().url());
            (301, vec![("Location", target)], json!({}))
        }
        ("POST", ["user", "repos"]) if body["name"] == "taken" => {
            let problem = json!({"resource": "Repository", "code": "custom", "field": "name", "message": "name already exists on this account"});
            (422, Vec::new(), json!({"message": "Repository creation failed.", "errors": [problem]}))
        }
        ("POST", ["user", "repos"]) => created("octo", &body),
        ("POST", ["orgs", owner, "repos"]) => created(owner, &body),
        ("GET", ["repos", _, "demo", "pulls", "1"]) => ok(json!({
            "number": 1, "title": "Sharpen the edge", "body": "It was **dull**.", "state": "open", "merged": false,
            "changed_files": FILES, "head": {"ref": "sharp", "sha": "1111111111111111111111111111111111111111"},
        })),
        ("GET", ["repos", _, "demo", "pulls", "2"]) => ok(json!({
            "title": "Small", "body": null, "state": "closed", "merged": true, "changed_files": 1, "head": {"sha": "22"},
        })),
        // The pull request of the specification's examples.
        ("GET", ["repos", _, "repo", "pulls", "1"]) => ok(json!({
            "title": "PR title", "body": "...", "state": "open", "merged": false, "changed_files": 1, "head": {"sha": "3"},
        })),
        ("GET", ["repos", _, "repo", "pulls", "1", "files"]) => ok(json!([{"filename": "a.ts"}])),
        ("GET", ["repos", _, _, "pulls", number @ ("1" | "2"), "files"]) => page(request, number),
        ("POST", ["repos", owner, name @ ("demo" | "repo"), "issues", "1", "comments"]) => {
            let url = format!("{}/{owner}/{name}/pull/1#issuecomment-7", github().url());
            (201, Vec::new(), json!({"id": 7, "html_url": url, "body": body["body"]}))
        }
        ("PUT", ["repos", _, "demo", "pulls", "1", "merge"]) if body["sha"].is_string() => {
            error(409, "Head branch was modified. Review and try the merge again.")
        }
        ("PUT", ["repos", _, "demo" | "repo", "pulls", "1", "merge"]) => {
            ok(json!({"sha": "abc123", "merged": true, "message": body["merge_method"]}))
        }
        ("PUT", ["repos", _, "demo", "pulls", "2", "merge"]) => error(405, "Pull Request is not mergeable"),
        (method, ["repos", owner, name @ ("demo" | "repo"), "contents", rest @ ..]) => {
            contents(method, &format!("{owner}/{name}/{}", rest.join("/")), &body, files)
        }
        _ => error(404, "Not Found"),
    }
}

fn created(owner: &str, body: &Value) -> Answer {
    let name = format!("{owner}/{}", body["name"].as_str().unwrap());
    let url = format!("{}/{name}", github().url());
    (201, Vec::new(), json!({"full_name": name, "html_url": url, "private": body["private"]}))
}

/// Returns a page of the files of a pull request, with a link to the next one.
fn page(request: &Received, pull_request: &str) -> Answer {
    assert!(request.query().contains("per_page=100"), "{}", request.target);
    let total = if pull_request == "1" { FILES } else { 1 };
    let number = request.query().split('&').find_map(|pair| pair.strip_prefix("page="));
    let number: usize = number.map_or(1, |number| number.parse().unwrap());
    let files: Vec<_> = ((number - 1) * 100..total.min(number * 100))
        .map(|n| json!({"sha": "3", "filename": format!("src/{n}.rs"), "status": "modified"}))
        .collect();
    let link = |page: usize, rel: &str| {
        format!("<{}{}?per_page=100&page={page}>; rel=\"{rel}\"", github().url(), request.path())
    };
    let links = format!("{}, {}", link(number + 1, "next"), link(total.div_ceil(100), "last"));
    let fields = if number * 100 < total { vec![("Link", links)] } else { Vec::new() };
    (200, fields, files.into())
}

/// Reads or writes a file. A new content needs the blob hash of the old one.
fn contents(method: &str, path: &str, body: &Value, files: &Files) -> Answer {
    let mut files = files.lock().unwrap();
    let known = files.get(path).cloned();
    match (method, known) {
        ("GET", _) if path.ends_with("/folder") => ok(json!([{"type": "file", "sha": "1"}])),
        ("GET", Some(sha)) => ok(json!({"type": "file", "sha": sha, "path": path})),
        ("PUT", known) if known.as_deref() != body["sha"].as_str() => error(409, "does not match"),
        ("PUT", _) => {
            // The same content has the same hash, whichever test wrote it.
            let content = body["content"].as_str().unwrap_or_default().bytes();
            let sha = format!(
                "blob-{}",
                content.fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 1000
            );
            files.insert(path.to_owned(), sha);
            let sha = if path.starts_with("org/repo/") { "abc123" } else { "7fd1a60b01f91b314f59955a4e4d4e80d8edf11d" };
            ok(json!({"content": {"path": path}, "commit": {"sha": sha}}))
        }
        _ => error(404, "Not Found"),
    }
}
