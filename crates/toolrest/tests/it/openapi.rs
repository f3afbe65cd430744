//! The OpenAPI description that a server gives of itself. The test client compares every answer of every test with it.

use serde_json::Value;
use toolrest_testkit::{Request, Workspace};

use crate::on::On;

on!(sqlite, Sqlite:
    anybody_can_read_the_description_and_its_page,
    the_described_schema_of_a_call_is_that_of_the_catalogue);

async fn anybody_can_read_the_description_and_its_page(on: On) {
    let client = on.shared().client();
    let description = client.send(Request::new("GET", "/api/openapi.json")).await.success();
    assert_eq!(description["openapi"], "3.1.0");
    assert_eq!(description["paths"]["/api/v1/auth/login"]["post"]["operationId"], "login");
    let page = client.send(Request::new("GET", "/api")).await;
    assert_eq!(page.status, 200, "{page}");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").is_some_and(|policy| policy.starts_with("default-src 'none'")));
    assert!(page.text.contains("/api/v1/workspaces/{workspace}/toolsets/coding"), "it shows the calls");
}

async fn the_described_schema_of_a_call_is_that_of_the_catalogue(on: On) {
    let workspace: Workspace = on.workspace().await;
    let client = &workspace.account.client;
    let description = client.send(Request::new("GET", "/api/openapi.json")).await.success();
    let catalogue = client.send(Request::new("GET", "/api/v1/toolsets/file")).await.success();
    let schemas = &description["components"]["schemas"];
    let tools: &Vec<Value> = catalogue["tools"].as_array().unwrap();
    for tool in tools {
        let name = tool["name"].as_str().unwrap().replace('.', "_");
        assert_eq!(schemas[format!("file.{name}.args")], tool["input_schema"], "{name}");
        assert_eq!(schemas[format!("file.{name}.result")], tool["output_schema"], "{name}");
    }
}
