//! A signed-in user and a workspace, with the calls that tests need.

use std::io;
use std::path::Path;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::{Client, Request};
use crate::reply::Reply;

/// The password of all accounts registered here.
pub const PASSWORD: &str = "a lathe needs a steady rest 1";

/// Returns an email address that no other test uses.
pub fn unique_email(name: &str) -> String {
    format!("{name}-{}@example.com", Uuid::new_v4().simple())
}

/// A registered and signed-in user.
#[derive(Clone)]
pub struct Account {
    pub client: Client,
    pub email: String,
    pub id: String,
    pub access_token: String,
    pub refresh_token: String,
}

impl Account {
    /// Registers a user with this email address and signs in.
    pub async fn register(client: &Client, email: &str) -> Self {
        client
            .send(Request::new("POST", "/api/v1/auth/register").json(&json!({
                "email": email,
                "password": PASSWORD,
                "confirm_password": PASSWORD,
            })))
            .await
            .success();
        Self::login(client, email).await
    }

    /// Signs in a user that was registered with [`PASSWORD`].
    pub async fn login(client: &Client, email: &str) -> Self {
        let session = client
            .send(Request::new("POST", "/api/v1/auth/login").json(&json!({"email": email, "password": PASSWORD})))
            .await
            .success();
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        Self {
            client: client.clone(),
            email: email.to_owned(),
            id: text(&session["user"]["id"]),
            access_token: text(&session["access_token"]),
            refresh_token: text(&session["refresh_token"]),
        }
    }

    /// Returns the same user with another client: of another server, or with separate connections.
    #[must_use]
    pub fn through(&self, client: &Client) -> Self {
        Self { client: client.clone(), ..self.clone() }
    }

    /// Sends a request as this user; `path` is below `/api/v1`.
    pub async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        self.client.send(self.request(method, path, body)).await
    }

    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Request {
        let request = Request::new(method, &format!("/api/v1{path}")).bearer(&self.access_token);
        match body {
            Some(body) => request.json(body),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, Some(body)).await
    }

    /// Creates a workspace in the database.
    pub async fn workspace(&self, name: &str) -> Workspace {
        let made = self.post("/workspaces", &json!({"name": name})).await.success();
        let id = made["workspace"]["id"].as_str().expect("an id");
        self.in_workspace(id)
    }

    /// Creates a workspace from a folder.
    pub async fn folder_workspace(&self, name: &str, root: &Path) -> Workspace {
        let made = self.post("/workspaces", &json!({"name": name, "kind": "directory", "root": root})).await.success();
        let id = made["workspace"]["id"].as_str().expect("an id");
        self.in_workspace(id)
    }

    /// Returns a workspace for requests by this user, who need not be a member.
    pub fn in_workspace(&self, id: &str) -> Workspace {
        Workspace { account: self.clone(), id: id.to_owned() }
    }
}

/// A workspace, for requests by one user.
#[derive(Clone)]
pub struct Workspace {
    pub account: Account,
    pub id: String,
}

impl Workspace {
    /// Returns the same workspace for requests by another user.
    #[must_use]
    pub fn for_user(&self, account: &Account) -> Self {
        account.in_workspace(&self.id)
    }

    /// Returns the same workspace with another client: of another server, or with separate connections.
    #[must_use]
    pub fn through(&self, client: &Client) -> Self {
        self.account.through(client).in_workspace(&self.id)
    }

    /// Adds a member with a role.
    pub async fn add_member(&self, account: &Account, role: &str) {
        self.post("/members", &json!({"email": account.email, "role": role})).await.success();
    }

    /// Calls a tool of the workspace toolset.
    pub async fn call(&self, tool: &str, args: &Value) -> Reply {
        self.post("/tools", &json!({"tool": tool, "args": args})).await
    }

    /// Calls a tool of any toolset.
    pub async fn call_of(&self, toolset: &str, tool: &str, args: &Value) -> Reply {
        let mut body = json!({"tool": tool, "args": args});
        if toolset == "backend" {
            body["correlationId"] = json!("test");
        }
        self.post(&format!("/toolsets/{toolset}"), &body).await
    }

    /// Calls a tool; an error is a broken connection.
    pub async fn try_call(&self, tool: &str, args: &Value) -> io::Result<Reply> {
        self.try_post("/tools", &json!({"tool": tool, "args": args})).await
    }

    /// Sends a request like [`Workspace::post`]; an error is a broken connection.
    pub async fn try_post(&self, path: &str, body: &Value) -> io::Result<Reply> {
        let path = format!("/workspaces/{}{path}", self.id);
        self.account.client.try_send(&self.account.request("POST", &path, Some(body))).await
    }

    /// Calls a tool with a body given as text, for what a JSON value does not keep (order, spelling of numbers).
    pub async fn call_text(&self, body: &str) -> Reply {
        let path = format!("/workspaces/{}/tools", self.id);
        let request = self.account.request("POST", &path, None);
        let request = request.header("Content-Type", "application/json");
        self.account.client.send(request.body(body)).await
    }

    /// Calls a tool that must succeed and returns its result.
    pub async fn ok(&self, tool: &str, args: Value) -> Value {
        self.call(tool, &args).await.result()
    }

    /// Calls a tool that must be refused with this status and code, and returns the body.
    pub async fn refused(&self, status: u16, code: &str, tool: &str, args: Value) -> Value {
        self.call(tool, &args).await.refused(status, code)
    }

    /// Writes a document and returns the result.
    pub async fn write(&self, path: &str, text: &str) -> Value {
        self.ok("write", json!({"path": path, "content": text})).await
    }

    /// Reads a file and returns the result.
    pub async fn read(&self, path: &str) -> Value {
        self.ok("read", json!({"path": path})).await
    }

    /// Reads a document's text.
    pub async fn text(&self, path: &str) -> String {
        let read = self.read(path).await;
        read["content"].as_str().unwrap_or_else(|| panic!("{path} is not text: {read}")).to_owned()
    }

    /// Lists the paths directly in a folder.
    pub async fn paths_in(&self, folder: &str) -> Vec<String> {
        paths(&self.ok("ls", json!({"path": folder})).await)
    }

    /// Lists the paths below a folder, at any depth.
    pub async fn paths_below(&self, folder: &str) -> Vec<String> {
        paths(&self.ok("ls", json!({"path": folder, "recursive": true})).await)
    }

    /// Sends a request as this user; `path` is below `/api/v1/workspaces/{id}`.
    pub async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let path = format!("/workspaces/{}{path}", self.id);
        self.account.send(method, &path, body).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, Some(body)).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Reply {
        self.send("PATCH", path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, None).await
    }
}

fn paths(listing: &Value) -> Vec<String> {
    let entries = listing["entries"].as_array().expect("entries");
    entries.iter().map(|entry| entry["path"].as_str().expect("a path").to_owned()).collect()
}
