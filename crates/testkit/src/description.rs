//! Validates the answers of the REST interface in every test against the OpenAPI description that the server publishes.

use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::client::{Client, Request};
use crate::reply::Reply;

/// The operations whose successful answers are JSON. All servers of a test process run the same build, so they are read
/// once.
static OPERATIONS: OnceCell<Vec<Operation>> = OnceCell::const_new();

/// An operation of the description.
struct Operation {
    method: String,
    /// The parts of its path. A parameter is none.
    path: Vec<Option<String>>,
    /// The schema of a successful answer, with what it refers to.
    schema: Value,
    validator: OnceLock<Validator>,
}

impl Operation {
    /// Whether the path is of this operation. The last parameter can be a path of several parts.
    fn is_at(&self, method: &str, path: &[&str]) -> bool {
        let is_long = self.path.len() < path.len() && matches!(self.path.last(), Some(None));
        self.method == method
            && (self.path.len() == path.len() || is_long)
            && self.path.iter().zip(path).all(|(known, part)| known.as_ref().is_none_or(|known| known == part))
    }

    fn literals(&self) -> usize {
        self.path.iter().flatten().count()
    }
}

/// Asserts that a successful answer is what the description says. Tool calls are checked by their own schemas.
pub(crate) async fn check_answer(client: &Client, method: &str, path: &str, reply: &Reply) {
    if reply.status != 200 || !reply.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        return;
    }
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    if path == "/mcp" || matches!(parts[..], [_, "api", "v1", "workspaces", _, "tools" | "toolsets" | "mcp", ..]) {
        return;
    }
    // A client of another server, such as that of specification 003, has no description.
    let Some(operations) = OPERATIONS.get_or_try_init(|| read(client)).await.ok() else { return };
    let found = operations.iter().filter(|operation| operation.is_at(method, &parts));
    let Some(operation) = found.max_by_key(|operation| operation.literals()) else { return };
    let validator = operation.validator.get_or_init(|| {
        jsonschema::validator_for(&operation.schema).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    });
    let body = reply.json();
    let faults: Vec<String> =
        validator.iter_errors(&body).map(|fault| format!("at `{}`: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "the answer is not what /api/openapi.json says:\n{}\n{reply}", faults.join("\n"));
}

async fn read(client: &Client) -> Result<Vec<Operation>, ()> {
    let reply = client.exchange(&Request::new("GET", "/api/openapi.json")).await.map_err(|_| ())?;
    if reply.status != 200 {
        return Err(());
    }
    let mut description = reply.json();
    let mut schemas = description["components"]["schemas"].take();
    if let Some(schemas) = schemas.as_object_mut() {
        schemas.retain(|name, _| !name.contains('.'));
    }
    let mut operations = Vec::new();
    for (path, methods) in description["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let Some(schema) = operation.pointer("/responses/200/content/application~1json/schema") else { continue };
            let path = path.split('/').map(|part| (!part.starts_with('{')).then(|| part.to_owned())).collect();
            let schema = json!({ "allOf": [schema], "components": { "schemas": schemas } });
            operations.push(Operation { method: method.to_uppercase(), path, schema, validator: OnceLock::new() });
        }
    }
    assert!(operations.len() > 30, "the description has answers");
    Ok(operations)
}
