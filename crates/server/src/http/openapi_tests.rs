use super::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use toolrest_toolsets::workspace::WorkspaceDialect;

fn described() -> Value {
    description(&Toolsets::default().with(toolrest_toolsets::workspace::toolset()))
}

/// Returns all operations with their methods and paths.
fn operations(description: &Value) -> Vec<(String, &Value)> {
    let paths = description["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, operations)| {
        let operations = operations.as_object().unwrap();
        operations.iter().map(move |(method, operation)| (format!("{} {path}", method.to_uppercase()), operation))
    });
    all.collect()
}

#[test]
fn every_route_is_described_with_a_name_of_its_own() {
    let description = described();
    let names: BTreeSet<&str> =
        operations(&description).iter().map(|(_, operation)| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!(names.len(), operations(&description).len());
    assert_eq!(names.len(), routes().len(), "with one toolset, each route is one operation");
    for (at, operation) in operations(&description) {
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{at} says what it does");
        for parameter in operation["parameters"].as_array().unwrap() {
            assert!(!parameter["description"].as_str().unwrap().is_empty(), "{at}: {parameter}");
        }
    }
}

#[test]
fn every_route_with_a_workspace_needs_a_token() {
    for (at, operation) in operations(&described()) {
        let needs_token = operation["security"].is_array();
        assert_eq!(needs_token, at.contains("/workspaces") || at.ends_with("/mcp") || at.ends_with("/auth/me"), "{at}");
    }
}

#[test]
fn every_reference_has_its_schema() {
    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let description = described();
    let mut found = BTreeSet::new();
    references(&description, &mut found);
    assert!(found.len() > 30, "{found:?}");
    for reference in found {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        assert!(description["components"]["schemas"].get(name).is_some(), "{name}");
    }
}

#[test]
fn every_toolset_has_its_own_route_with_its_tools() {
    let own = Toolset::new("mine", Arc::new(WorkspaceDialect));
    let toolsets = toolrest_toolsets::all(&toolrest_toolsets::Services::none()).with(own);
    let description = description(&toolsets);
    let paths = description["paths"].as_object().unwrap();
    assert!(paths.contains_key("/api/v1/workspaces/{workspace}/toolsets/mine"));
    let call = &paths["/api/v1/workspaces/{workspace}/toolsets/coding"]["post"];
    let calls = call["requestBody"]["content"]["application/json"]["schema"]["oneOf"].as_array().unwrap();
    let tools: Vec<&str> = calls.iter().map(|call| call["properties"]["tool"]["enum"][0].as_str().unwrap()).collect();
    assert_eq!(tools, ["read", "write", "edit", "multiedit", "apply_patch", "ls", "glob"]);
}

#[test]
fn the_page_shows_every_operation_and_escapes_what_it_shows() {
    let description = described();
    let page = html::page(&description);
    for (at, operation) in operations(&description) {
        assert!(page.contains(&format!("id=\"{}\"", operation["operationId"].as_str().unwrap())), "{at}");
    }
    assert!(!page.contains("<script"));
    let hostile = json!({ "info": { "version": "<script>" }, "paths": {}, "components": { "schemas": {} } });
    assert!(html::page(&hostile).contains("&lt;script&gt;"));
}
