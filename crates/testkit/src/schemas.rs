//! Validates every tool call of every test against the schemas that the server publishes.

use std::collections::HashMap;

use jsonschema::Validator;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::client::{Client, Request};
use crate::reply::Reply;

/// The schemas of all tools. All servers of a test process run the same build, so they are read once.
static SCHEMAS: OnceCell<HashMap<(String, String), ToolSchemas>> = OnceCell::const_new();

/// The published schemas of one tool.
struct ToolSchemas {
    input: Value,
    arguments: Validator,
    result: Validator,
}

/// Asserts that a successful tool call is valid by the tool's schemas: its arguments by the input schema, its result by
/// the output schema. Does nothing for other requests.
pub(crate) async fn check_tool_call(client: &Client, method: &str, path: &str, body: &[u8], reply: &Reply) {
    let Some(toolset) = toolset_of(path).filter(|_| method == "POST" && reply.status == 200) else { return };
    let call: Value =
        serde_json::from_slice(body).unwrap_or_else(|error| panic!("accepted a body that is not JSON: {error}"));
    let tool = call["tool"].as_str().unwrap_or_else(|| panic!("accepted a body without a tool: {}", reply.request));
    let schemas = SCHEMAS.get_or_init(|| read_catalogues(client)).await;
    let known = schemas
        .get(&(toolset.to_owned(), spelling_for_models(tool)))
        .unwrap_or_else(|| panic!("`{tool}` of `{toolset}` succeeded, but is not in the catalogue"));
    // The toolset `agent` accepts arguments beside its schemas.
    if toolset != "agent" {
        assert_valid(&known.arguments, &coerced(&call["args"], &known.input), "the arguments", "input_schema", reply);
    }
    assert_valid(&known.result, result_of(toolset, &reply.json()), "the result", "output_schema", reply);
}

/// Returns the toolset that a route calls, if it calls one.
fn toolset_of(path: &str) -> Option<&str> {
    let below = path.strip_prefix("/api/v1/workspaces/")?.split_once('/')?.1;
    if below == "tools" { Some("workspace") } else { below.strip_prefix("toolsets/") }
}

/// Returns the tool's result from the body of a successful call.
fn result_of<'a>(toolset: &str, body: &'a Value) -> &'a Value {
    match toolset {
        "workspace" | "backend" => &body["result"],
        "system" => &body["value"],
        _ => body,
    }
}

/// Returns the arguments in the form that the schema requires: integers given as strings become numbers, and values of
/// an enumeration become lowercase. The tools accept both forms.
fn coerced(args: &Value, schema: &Value) -> Value {
    let mut args = args.clone();
    for (name, value) in args.as_object_mut().into_iter().flatten() {
        let is_number = ["integer", "number"].iter().any(|kind| schema["properties"][name]["type"] == *kind);
        if let Some(number) = value.as_str().filter(|_| is_number).and_then(|text| text.parse::<i64>().ok()) {
            *value = number.into();
        }
        let lowercase = value.as_str().map(|text| Value::from(text.to_lowercase()));
        let allowed = schema["properties"][name]["enum"].as_array();
        if let Some(lowercase) =
            lowercase.filter(|lowercase| allowed.is_some_and(|allowed| allowed.contains(lowercase)))
        {
            *value = lowercase;
        }
    }
    args
}

#[track_caller]
fn assert_valid(validator: &Validator, value: &Value, what: &str, schema: &str, reply: &Reply) {
    let faults: Vec<String> =
        validator.iter_errors(value).map(|fault| format!("at `{}`: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{what}: invalid by the tool's {schema}:\n{}\n{reply}", faults.join("\n"));
}

/// Returns the schemas by toolset and tool.
async fn read_catalogues(client: &Client) -> HashMap<(String, String), ToolSchemas> {
    let mut schemas = HashMap::new();
    for toolset in list(&get(client, "/api/v1/toolsets").await["toolsets"]) {
        let toolset = text(&toolset["name"]);
        for tool in list(&get(client, &format!("/api/v1/toolsets/{toolset}")).await["tools"]) {
            let compile = |schema: &Value| {
                jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{toolset}: {error} in {schema}"))
            };
            let (input, output) = (&tool["input_schema"], &tool["output_schema"]);
            let of_tool = ToolSchemas { arguments: compile(input), result: compile(output), input: input.clone() };
            schemas.insert((toolset.clone(), spelling_for_models(&text(&tool["name"]))), of_tool);
        }
    }
    schemas
}

/// Returns the name with `_` instead of `.`. Routes accept both spellings; the schemas are stored under this one.
fn spelling_for_models(name: &str) -> String {
    name.replace('.', "_")
}

async fn get(client: &Client, path: &str) -> Value {
    client.exchange(&Request::new("GET", path)).await.unwrap_or_else(|error| panic!("GET {path}: {error}")).success()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}")).clone()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}

#[cfg(test)]
#[path = "schemas_tests.rs"]
mod tests;
