//! The table of routes. The router and the OpenAPI description are built from it.

use super::describe::{Described, Operation};
use super::{
    App, accounts, approvals, calls, chats, content, events, files, health, keys, listing, mcp, members, metrics,
    openapi, processes, rules, secrets, sign_in, tools, workspace_metrics, workspaces,
};
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use std::sync::Arc;
use toolrest_core::Action;

/// A method and a path, with the function that answers them. Unless it is marked with [`Route::for_keys`], only persons can
/// use it.
pub(super) struct Route {
    /// The method in capital letters.
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) handler: MethodRouter<Arc<App>>,
    pub(super) key_action: Option<Action>,
    /// The name under which the change of a workspace is recorded.
    pub(super) change: Option<&'static str>,
    /// The name of the operation in the OpenAPI description.
    pub(super) name: &'static str,
    /// What it does, for the OpenAPI description.
    pub(super) about: &'static str,
    pub(super) operation: Operation,
}

impl Route {
    fn new<H, T>(method: &'static str, filter: MethodFilter, path: &'static str, name: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<App>> + Described<T>,
        T: 'static,
    {
        let (handler, operation) = (on(filter, handler), H::operation());
        Self { method, path, handler, key_action: None, change: None, name, about: "", operation }
    }

    fn get<H, T>(path: &'static str, name: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<App>> + Described<T>,
        T: 'static,
    {
        Self::new("GET", MethodFilter::GET, path, name, handler)
    }

    fn post<H, T>(path: &'static str, name: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<App>> + Described<T>,
        T: 'static,
    {
        Self::new("POST", MethodFilter::POST, path, name, handler)
    }

    fn put<H, T>(path: &'static str, name: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<App>> + Described<T>,
        T: 'static,
    {
        Self::new("PUT", MethodFilter::PUT, path, name, handler)
    }

    fn patch<H, T>(path: &'static str, name: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<App>> + Described<T>,
        T: 'static,
    {
        Self::new("PATCH", MethodFilter::PATCH, path, name, handler)
    }

    fn delete<H, T>(path: &'static str, name: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<App>> + Described<T>,
        T: 'static,
    {
        Self::new("DELETE", MethodFilter::DELETE, path, name, handler)
    }

    fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// Lets agent keys with this action use the route.
    fn for_keys(self, action: Action) -> Self {
        Self { key_action: Some(action), ..self }
    }

    /// Has the requests recorded as changes of this name.
    fn recorded_as(self, name: &'static str) -> Self {
        Self { change: Some(name), ..self }
    }

    /// Says that the handler asks for a token, where its arguments do not say it.
    fn with_token(mut self) -> Self {
        self.operation.needs_token = true;
        self
    }
}

/// The route of specification 000, which calls a tool of the toolset `workspace`.
pub(super) const WORKSPACE_TOOLS: &str = "/api/v1/workspaces/{workspace}/tools";
/// The route that calls a tool of any toolset.
pub(super) const TOOLSET: &str = "/api/v1/workspaces/{workspace}/toolsets/{toolset}";

/// All routes. A test compares them with docs/api.md. The routes of tools check the scope of a key for each tool.
pub(super) fn routes() -> Vec<Route> {
    [of_the_server(), of_workspaces(), of_files(), of_approvals()].into_iter().flatten().collect()
}

fn of_the_server() -> Vec<Route> {
    vec![
        Route::get("/health", "health", health::live).about("Says that the process runs."),
        Route::get("/ready", "ready", health::ready).about("Says whether the database answers."),
        Route::get("/metrics", "metrics", metrics::show)
            .about("Shows the metrics in Prometheus' format, with the token of the setting `metrics.token`."),
        Route::get("/api", "api_page", openapi::page).about("Shows this description as a page."),
        Route::get("/api/openapi.json", "openapi", openapi::document).about("Returns this description."),
        Route::get("/api/v1/health", "api_health", health::live).about("Says that the process runs."),
        Route::get("/sign-in", "sign_in_by_link", sign_in::by_link)
            .about("Signs a browser in with the link that `toolrest serve --dir` prints."),
        Route::post("/api/v1/auth/register", "register", accounts::register)
            .about("Makes an account. The answer is the same if none was made."),
        Route::post("/api/v1/auth/login", "login", accounts::login).about("Signs in."),
        Route::post("/api/v1/auth/refresh", "refresh", accounts::refresh)
            .about("Returns new tokens for a refresh token, which becomes invalid."),
        Route::post("/api/v1/auth/logout", "logout", accounts::logout).about("Ends the session of a refresh token."),
        Route::get("/api/v1/auth/me", "me", accounts::me).about("Returns the account."),
        Route::get("/api/v1/toolsets", "list_toolsets", tools::toolsets).about("Lists the toolsets and their tools."),
        Route::get("/api/v1/toolsets/{toolset}", "show_toolset", tools::catalogue)
            .about("Returns the tools of a toolset with their schemas, as a kind of client takes them."),
        Route::post("/mcp", "mcp", mcp::of_key)
            .about("Takes a message of the Model Context Protocol, for the workspace of an agent key.")
            .with_token(),
    ]
}

fn of_workspaces() -> Vec<Route> {
    vec![
        Route::get("/api/v1/workspaces", "list_workspaces", workspaces::list)
            .about("Lists the workspaces of the caller.")
            .for_keys(Action::Read),
        Route::post("/api/v1/workspaces", "create_workspace", workspaces::create).about("Makes a workspace."),
        Route::get("/api/v1/workspaces/{workspace}", "show_workspace", workspaces::show)
            .about("Returns a workspace.")
            .for_keys(Action::Read),
        Route::patch("/api/v1/workspaces/{workspace}", "change_workspace", workspaces::change)
            .about("Changes the name or the settings of a workspace.")
            .recorded_as("change_workspace"),
        Route::delete("/api/v1/workspaces/{workspace}", "delete_workspace", workspaces::remove)
            .about("Closes a workspace; the next purge removes its contents.")
            .recorded_as("delete_workspace"),
        Route::delete("/api/v1/workspaces/{workspace}/cache", "empty_cache", workspaces::empty_cache)
            .about("Empties the home directory that the workspace's programs keep between runs.")
            .recorded_as("empty_cache"),
        Route::post(WORKSPACE_TOOLS, "call_workspace_tool", tools::call_workspace)
            .about("Calls a tool of the toolset `workspace`.")
            .with_token(),
        Route::post(TOOLSET, "call_tool", tools::call).about("Calls a tool.").with_token(),
        Route::post("/api/v1/workspaces/{workspace}/mcp", "workspace_mcp", mcp::of_workspace)
            .about("Takes a message of the Model Context Protocol, for a member.")
            .with_token(),
        Route::get("/api/v1/workspaces/{workspace}/members", "list_members", members::list).about("Lists the members."),
        Route::post("/api/v1/workspaces/{workspace}/members", "add_member", members::add)
            .about("Adds an account as a member.")
            .recorded_as("add_member"),
        Route::patch("/api/v1/workspaces/{workspace}/members/{user}", "set_role", members::set_role)
            .about("Changes the role of a member.")
            .recorded_as("set_role"),
        Route::delete("/api/v1/workspaces/{workspace}/members/{user}", "remove_member", members::remove)
            .about("Removes a member.")
            .recorded_as("remove_member"),
        Route::get("/api/v1/workspaces/{workspace}/keys", "list_keys", keys::list)
            .about("Lists agent keys, without their secrets."),
        Route::post("/api/v1/workspaces/{workspace}/keys", "create_key", keys::create)
            .about("Makes an agent key, and returns its secret once.")
            .recorded_as("create_key"),
        Route::patch("/api/v1/workspaces/{workspace}/keys/{key}", "change_key", keys::change)
            .about("Suspends a key, or makes it active again.")
            .recorded_as("change_key"),
        Route::delete("/api/v1/workspaces/{workspace}/keys/{key}", "revoke_key", keys::revoke)
            .about("Revokes a key for good.")
            .recorded_as("revoke_key"),
        Route::get("/api/v1/workspaces/{workspace}/secrets", "list_secrets", secrets::list)
            .about("Lists the secrets, without their values."),
        Route::put("/api/v1/workspaces/{workspace}/secrets/{name}", "set_secret", secrets::set)
            .about("Sets the value of a secret.")
            .recorded_as("set_secret"),
        Route::delete("/api/v1/workspaces/{workspace}/secrets/{name}", "delete_secret", secrets::remove)
            .about("Deletes a secret.")
            .recorded_as("delete_secret"),
    ]
}

fn of_files() -> Vec<Route> {
    vec![
        Route::get("/api/v1/workspaces/{workspace}/content/{*path}", "download", content::download)
            .about("Sends the bytes of a file, or the part that the header `Range` names.")
            .for_keys(Action::Read),
        Route::get("/api/v1/workspaces/{workspace}/list", "list_folder", listing::show)
            .about("Lists what a folder contains.")
            .for_keys(Action::Read),
        Route::get("/api/v1/workspaces/{workspace}/events", "events", events::listen)
            .about("Streams what happens in the workspace as server-sent events.")
            .for_keys(Action::Read),
        Route::get("/api/v1/workspaces/{workspace}/files/{file}", "show_file", files::show)
            .about("Returns a file with its content, in the trash or not.")
            .for_keys(Action::Read),
        Route::get("/api/v1/workspaces/{workspace}/files/{file}/versions", "list_versions", files::versions)
            .about("Lists the versions of a file, newest first.")
            .for_keys(Action::Read),
        Route::get("/api/v1/workspaces/{workspace}/files/{file}/versions/{version}", "show_version", files::version)
            .about("Returns a version with its content.")
            .for_keys(Action::Read),
        Route::post("/api/v1/workspaces/{workspace}/files/{file}/restore", "restore", files::restore)
            .about("Restores a file from the trash.")
            .for_keys(Action::Write)
            .recorded_as("restore"),
        Route::get("/api/v1/workspaces/{workspace}/history/{*path}", "path_history", files::history)
            .about("Lists the versions of the file at a path, or of the one that was removed from there last.")
            .for_keys(Action::Read),
        Route::get("/api/v1/workspaces/{workspace}/trash", "list_trash", files::trash)
            .about("Lists removed files, newest first.")
            .for_keys(Action::Read),
        Route::get("/api/v1/workspaces/{workspace}/commits", "list_commits", files::commits)
            .about("Lists commits, newest first.")
            .for_keys(Action::Read),
        Route::get("/api/v1/workspaces/{workspace}/commits/{commit}", "show_commit", files::commit_info)
            .about("Returns a commit.")
            .for_keys(Action::Read),
        Route::get("/api/v1/workspaces/{workspace}/commits/{commit}/diff", "show_diff", files::diff)
            .about("Returns what a commit changed, as a unified diff.")
            .for_keys(Action::Read),
        Route::post("/api/v1/workspaces/{workspace}/commits/{commit}/undo", "undo", files::undo)
            .about("Undoes a commit by a new one.")
            .for_keys(Action::Write)
            .recorded_as("undo"),
        Route::get("/api/v1/workspaces/{workspace}/calls", "list_calls", calls::list)
            .about("Lists the records of calls, newest first.")
            .for_keys(Action::Read),
        Route::get("/api/v1/workspaces/{workspace}/metrics", "show_workspace_metrics", workspace_metrics::show)
            .about("Returns how often tools were called, how long they took, and what the workspace stores."),
        Route::get("/api/v1/workspaces/{workspace}/processes", "list_processes", processes::list)
            .about("Lists background processes, running and recently ended."),
        Route::get(
            "/api/v1/workspaces/{workspace}/processes/{process}/output",
            "show_process_output",
            processes::output,
        )
        .about("Returns what a background process has printed."),
        Route::post("/api/v1/workspaces/{workspace}/chats", "create_chat", chats::create)
            .about("Makes a chat.")
            .for_keys(Action::Write)
            .recorded_as("create_chat"),
        Route::get("/api/v1/workspaces/{workspace}/chats/{chat}", "show_chat", chats::show)
            .about("Returns a chat with its messages.")
            .for_keys(Action::Read),
        Route::post("/api/v1/workspaces/{workspace}/chats/{chat}/messages", "add_message", chats::add_message)
            .about("Adds a message to a chat.")
            .for_keys(Action::Write)
            .recorded_as("add_message"),
    ]
}

fn of_approvals() -> Vec<Route> {
    vec![
        Route::get("/api/v1/workspaces/{workspace}/rules", "show_rules", rules::list).about("Returns the rules."),
        Route::put("/api/v1/workspaces/{workspace}/rules", "set_rules", rules::replace)
            .about("Replaces the rules; with the header `If-Match` only those of that revision.")
            .recorded_as("set_rules"),
        Route::get("/api/v1/workspaces/{workspace}/grants", "list_grants", rules::grants)
            .about("Lists what was allowed or refused for sessions."),
        Route::delete("/api/v1/workspaces/{workspace}/grants", "revoke_grants", rules::revoke_grants)
            .about("Ends all grants.")
            .recorded_as("revoke_grants"),
        Route::delete("/api/v1/workspaces/{workspace}/grants/{grant}", "revoke_grant", rules::revoke_grant)
            .about("Ends a grant.")
            .recorded_as("revoke_grant"),
        Route::post("/api/v1/workspaces/{workspace}/policy/check", "check_policy", rules::check)
            .about("Says what would happen to a call of the caller, without making it."),
        Route::get("/api/v1/workspaces/{workspace}/approvals", "list_approvals", approvals::list)
            .about("Lists calls that wait, or waited, for a person.")
            .for_keys(Action::Read),
        Route::post("/api/v1/workspaces/{workspace}/approvals/decisions", "decide_many", approvals::decide_many)
            .about("Decides about several calls, each by itself.")
            .recorded_as("decide"),
        Route::get("/api/v1/workspaces/{workspace}/approvals/{approval}", "show_approval", approvals::show)
            .about("Returns a call that waits, or waited, with what happened to it.")
            .for_keys(Action::Read),
        Route::delete("/api/v1/workspaces/{workspace}/approvals/{approval}", "withdraw", approvals::withdraw)
            .about("Withdraws a call that waits.")
            .for_keys(Action::Read)
            .recorded_as("withdraw"),
        Route::post(
            "/api/v1/workspaces/{workspace}/approvals/{approval}/preview",
            "preview_approval",
            approvals::preview,
        )
        .about("Shows what the call would do with other arguments."),
        Route::post("/api/v1/workspaces/{workspace}/approvals/{approval}/decision", "decide", approvals::decide)
            .about("Decides about a call that waits.")
            .recorded_as("decide"),
    ]
}
