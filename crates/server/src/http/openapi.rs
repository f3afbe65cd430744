//! The OpenAPI description of the interface, made from the table of routes, the types of their handlers and the schemas of
//! the tools; and a page that shows it.

mod html;

use super::App;
use super::describe::SchemaOf;
use super::query;
use super::reply::Answer;
use super::routes::{Route, TOOLSET, WORKSPACE_TOOLS, routes};
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{Html, IntoResponse};
use http::{HeaderValue, header};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolrest_core::{DynTool, FeedRecord, FileEvent, ToolError, Toolset, Toolsets, name_for_models};

/// Sends the description.
pub(super) async fn document(State(app): State<Arc<App>>) -> Answer {
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((json, described(&app)).into_response())
}

/// Shows the description as a page.
pub(super) async fn page(State(app): State<Arc<App>>) -> Answer {
    let description: Value = serde_json::from_slice(&described(&app)).map_err(ToolError::internal)?;
    let mut response = Html(html::page(&description)).into_response();
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// Returns the description as JSON. It does not change while the server runs.
fn described(app: &App) -> Bytes {
    app.openapi.get_or_init(|| Bytes::from(description(app.engine.toolsets()).to_string())).clone()
}

/// The body of an error.
#[derive(JsonSchema)]
#[schemars(rename = "Error")]
#[allow(dead_code, reason = "only described; crates/toolsets writes it")]
struct ErrorBody {
    /// What was wrong, and what to do next.
    error: String,
    /// The kind of the error.
    code: String,
    /// If an argument is at fault: its name, and what is wrong with it.
    #[schemars(skip_serializing_if = "Option::is_none", extend("additionalProperties" = { "type": "string" }))]
    fields: Option<Map<String, Value>>,
}

/// What the stream of events sends as `data`.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "only described; crates/server/src/http/events.rs sends them")]
enum StreamedEvent {
    Feed(FeedRecord),
    File(FileEvent),
}

/// Describes the interface for a server with these toolsets.
fn description(toolsets: &Toolsets) -> Value {
    let mut builder = Builder::new();
    for route in routes() {
        match route.path {
            TOOLSET => toolsets.iter().for_each(|toolset| builder.add_calls(&route, Some(toolset), toolset)),
            WORKSPACE_TOOLS => {
                if let Some(toolset) = toolsets.find("workspace") {
                    builder.add_calls(&route, None, toolset);
                }
            }
            _ => builder.add(&route),
        }
    }
    builder.finish()
}

/// Collects the operations and their schemas.
struct Builder {
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
    /// Makes the schemas of answers, which are named.
    answers: SchemaGenerator,
    /// Makes the schemas of bodies. A type can have other schemas in answers, so these are inline.
    bodies: SchemaGenerator,
}

impl Builder {
    fn new() -> Self {
        let mut answers = SchemaSettings::draft2020_12().for_serialize();
        answers.definitions_path = "/components/schemas".into();
        answers.meta_schema = None;
        let mut bodies = SchemaSettings::draft2020_12().for_deserialize();
        bodies.inline_subschemas = true;
        bodies.meta_schema = None;
        Self {
            paths: Map::new(),
            schemas: Map::new(),
            answers: answers.into_generator(),
            bodies: bodies.into_generator(),
        }
    }

    /// Adds the operation of a route.
    fn add(&mut self, route: &Route) {
        let mut operation = start(route, route.path);
        operation["operationId"] = route.name.into();
        if let Some(body) = route.operation.body {
            operation["requestBody"] = json!({
                "required": !matches!(route.name, "refresh" | "logout" | "undo"),
                "content": { "application/json": { "schema": without_title(body(&mut self.bodies).to_value()) } },
            });
        }
        let success = match (route.name, route.operation.answer) {
            (_, Some(answer)) => json!({ "description": "Done.", "content": self.json(answer) }),
            ("events", _) => json!({
                "description": "The events `commit`, `call`, `approval` and `file`; `ready` and `gap` have no data.",
                "content": { "text/event-stream": { "schema": self.answers.subschema_for::<StreamedEvent>() } },
            }),
            ("download", _) => json!({
                "description": "The bytes.",
                "content": { "application/octet-stream": {} },
            }),
            ("metrics", _) => json!({ "description": "The metrics.", "content": { "text/plain": {} } }),
            ("sign_in_by_link" | "api_page", _) => json!({ "description": "A page.", "content": { "text/html": {} } }),
            ("mcp" | "workspace_mcp", _) => {
                let message = json!({ "schema": { "type": "object" } });
                operation["requestBody"] = json!({ "required": true, "content": { "application/json": message } });
                operation["responses"]["202"] = json!({ "description": "Taken; a notification has no answer." });
                operation["responses"]["default"] = json!({ "description": "An error, as JSON or as text." });
                json!({
                    "description": "The answer, or a stream with it.",
                    "content": { "application/json": message, "text/event-stream": {} },
                })
            }
            _ => json!({ "description": "Done.", "content": { "application/json": {} } }),
        };
        operation["responses"]["200"] = success;
        if route.name == "download" {
            let part = json!({ "description": "A part.", "content": { "application/octet-stream": {} } });
            operation["responses"]["206"] = part;
            operation["responses"]["416"] = json!({ "description": "The part is behind the end of the file." });
        }
        self.insert(route, route.path, operation);
    }

    /// Adds the route of calls for one toolset, with the arguments and results of its tools.
    fn add_calls(&mut self, route: &Route, in_path: Option<&Toolset>, toolset: &Toolset) {
        let path = in_path.map_or_else(|| route.path.to_owned(), |it| route.path.replace("{toolset}", it.name()));
        let mut operation = start(route, &path);
        operation["operationId"] = match in_path {
            Some(toolset) => format!("{}_{}", route.name, toolset.name()).into(),
            None => route.name.into(),
        };
        if let Some(toolset) = in_path {
            operation["summary"] = format!("Calls a tool of the toolset `{}`.", toolset.name()).into();
        }
        let needs_correlation = toolset.dialect().needs_correlation();
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for tool in toolset.tools() {
            let name = format!("{}.{}", toolset.name(), name_for_models(tool.name()));
            let (args, result) = (format!("{name}.args"), format!("{name}.result"));
            calls.push(call_schema(tool, &reference(&args), needs_correlation));
            results.push(reference(&result));
            self.schemas.insert(args, tool.input_schema().clone());
            self.schemas.insert(result, tool.output_schema().clone());
        }
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": { "oneOf": calls } } } });
        let answer = toolset.dialect().answer_schema(json!({ "anyOf": results }));
        operation["responses"]["200"] =
            json!({ "description": "The result.", "content": { "application/json": { "schema": answer } } });
        operation["responses"]["202"] = json!({
            "description": "The call waits for a person; `approval` has the id and the address of the approval.",
            "content": { "application/json": { "schema": { "type": "object" } } },
        });
        operation["responses"]["default"] = json!({
            "description": "An error, in the format of the toolset.",
            "content": { "application/json": { "schema": { "type": "object" } } },
        });
        if let Some(parameters) = operation["parameters"].as_array_mut() {
            parameters.extend(CALL_HEADERS.iter().map(header_of));
        }
        self.insert(route, &path, operation);
    }

    fn json(&mut self, schema: SchemaOf) -> Value {
        json!({ "application/json": { "schema": schema(&mut self.answers) } })
    }

    fn insert(&mut self, route: &Route, path: &str, operation: Value) {
        let path = path.replace("{*", "{");
        let operations = self.paths.entry(path).or_insert_with(|| json!({}));
        operations[route.method.to_lowercase()] = operation;
    }

    fn finish(mut self) -> Value {
        self.answers.subschema_for::<ErrorBody>();
        let mut schemas = self.answers.take_definitions(true);
        schemas.extend(self.schemas);
        for schema in schemas.values_mut() {
            *schema = without_title(schema.take());
        }
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Toolrest",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Tools for agents, and what people need to watch them. docs/api.md says more.",
                "license": { "name": "Apache 2.0", "identifier": "Apache-2.0" },
            },
            "servers": [{ "url": "/" }],
            "paths": self.paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {
                    "bearer": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "The access token of `login`, or the secret of an agent key.",
                    },
                    "cookie": {
                        "type": "apiKey",
                        "in": "cookie",
                        "name": "access_token",
                        "description": "The cookie of `login`, for browsers.",
                    },
                },
            },
        })
    }
}

/// Returns the schema of a call of a tool, in either spelling of its name.
fn call_schema(tool: &dyn DynTool, args: &Value, needs_correlation: bool) -> Value {
    let mut names = vec![tool.name().to_owned()];
    names.extend(Some(name_for_models(tool.name()).into_owned()).filter(|name| *name != names[0]));
    let mut required = vec!["tool", "args"];
    if needs_correlation {
        required.push("correlationId");
    }
    json!({
        "title": tool.name(),
        "description": tool.description(),
        "type": "object",
        "properties": {
            "tool": { "enum": names },
            "args": args,
            "correlationId": { "type": "string", "description": "The caller's id for the call." },
        },
        "required": required,
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The headers that calls take, with their descriptions.
const CALL_HEADERS: [(&str, &str); 5] = [
    ("X-Correlation-ID", "The caller's id for the call, instead of `correlationId` in the body."),
    ("Prefer", "`wait=SECONDS`: how long to wait for a person's decision."),
    ("X-Toolrest-Session", "A label for the caller's session, to which grants are limited."),
    ("X-Toolrest-Reason", "The agent's reason for the call, for the person who decides."),
    ("X-Toolrest-Own-Hand", "`true`: the call is a person's own, so that nothing asks."),
];

fn header_of((name, about): &(&str, &str)) -> Value {
    json!({ "name": name, "in": "header", "description": about, "schema": { "type": "string" } })
}

/// Returns what all operations have.
fn start(route: &Route, path: &str) -> Value {
    let mut parameters: Vec<Value> = path.split('/').filter_map(path_parameter).collect();
    parameters.extend(query::known(path).iter().map(|name| query_parameter(path, name)));
    if route.name == "set_rules" {
        parameters.push(header_of(&("If-Match", "The revision of the rules that are replaced.")));
    }
    let keys = route.key_action.map(|action| format!(" Agent keys with the action `{}` can use it.", action.name()));
    let mut operation = json!({
        "summary": route.about,
        "tags": [tag(path)],
        "parameters": parameters,
        "responses": {
            "default": {
                "description": "An error.",
                "content": { "application/json": { "schema": reference("Error") } },
            },
        },
    });
    if let Some(keys) = keys {
        operation["description"] = keys.trim().into();
    }
    if route.operation.needs_token {
        operation["security"] = json!([{ "bearer": [] }, { "cookie": [] }]);
    }
    operation
}

/// Returns the group of a path: the first part after the workspace, or after `/api/v1`.
fn tag(path: &str) -> &str {
    let mut parts =
        path.trim_start_matches("/api/v1").split('/').filter(|part| !part.is_empty() && !part.starts_with('{'));
    match (parts.next(), parts.next()) {
        (Some("workspaces"), Some("tools" | "toolsets")) => "tools",
        (Some("workspaces"), Some(part)) | (Some(part @ ("workspaces" | "auth" | "toolsets" | "mcp")), _) => part,
        _ => "server",
    }
}

fn path_parameter(part: &str) -> Option<Value> {
    let name = part.strip_prefix('{')?.strip_suffix('}')?;
    let is_path = name.starts_with('*');
    let name = name.trim_start_matches('*');
    let (schema, about) = match name {
        "toolset" => (json!({ "type": "string" }), "The name of the toolset."),
        "name" => (json!({ "type": "string" }), "The name."),
        "process" => (json!({ "type": "string" }), "The id of the process."),
        _ if is_path => (json!({ "type": "string" }), "The path of the file; its slashes are not escaped."),
        _ => (json!({ "type": "string", "format": "uuid" }), "The id."),
    };
    Some(json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema }))
}

fn query_parameter(path: &str, name: &str) -> Value {
    let string = || json!({ "type": "string" });
    let (schema, about) = match (name, path.ends_with("/calls")) {
        ("limit", _) => (json!({ "type": "integer", "minimum": 1, "maximum": 10_000 }), "Maximum number of entries."),
        ("before", _) => (string(), "Only entries before this one: the id, or the number, of the last one of a page."),
        ("wait", _) => (json!({ "type": "integer", "minimum": 0 }), "Seconds to wait for a decision; at most 60."),
        ("format", _) => {
            let formats = json!({ "enum": ["native", "openai", "anthropic", "mcp"] });
            (formats, "The kind of client that the schemas are for.")
        }
        ("state", true) => (json!({ "enum": ["ended", "running"] }), "Whether the calls have ended."),
        ("state", false) => (string(), "Only approvals in this state."),
        ("token", _) => (string(), "The token of the link."),
        ("toolset", true) => (string(), "Only calls of this toolset."),
        ("toolset", false) => (string(), "The toolsets to offer, separated by commas."),
        ("read_only", _) => (json!({ "enum": ["true", "false"] }), "Whether to offer only tools that change nothing."),
        ("structured", _) => (json!({ "enum": ["true", "false"] }), "Whether answers have JSON beside the text."),
        ("tool", _) => (string(), "Only calls of this tool."),
        ("outcome", _) => (string(), "Only calls with this outcome."),
        ("principal", _) => (json!({ "type": "string", "format": "uuid" }), "Only calls of this person or key."),
        ("path", false) => (string(), "The folder. Default: the root."),
        ("path", true) => (string(), "Only calls that name this path, or one below it."),
        ("commit", _) => (json!({ "type": "string", "format": "uuid" }), "Only the call that made this commit."),
        ("since", _) => (json!({ "type": "string", "format": "date-time" }), "Only calls since this time."),
        ("until", _) => (json!({ "type": "string", "format": "date-time" }), "Only calls until this time."),
        ("hours", _) => {
            let hours = json!({ "type": "integer", "minimum": 1, "maximum": super::workspace_metrics::MAX_HOURS });
            (hours, "Length of the period in hours. Default: 24.")
        }
        ("offset", _) => (json!({ "type": "integer", "minimum": 0 }), "`next_offset` of the previous answer."),
        ("after", _) => (string(), "The cursor of the last event that was read."),
        ("kinds", _) => (string(), "`commit`, `call`, `approval`, `file`, separated by commas."),
        _ => (string(), ""),
    };
    json!({ "name": name, "in": "query", "description": about, "schema": schema })
}

/// Removes the name of the type, which is in the reference already.
fn without_title(mut schema: Value) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("title");
    }
    schema
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
