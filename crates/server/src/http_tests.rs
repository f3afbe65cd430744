use super::*;
use crate::server::Server;
use crate::tool_backend::ToolBackendListen;
use http_body_util::BodyExt as _;
use std::{collections::BTreeSet, fs, net::Ipv4Addr, path::Path};
use toolrest_core::Toolset;

/// Starts a server on a new database, without programs.
async fn server(data_dir: &Path) -> Server {
    let mut settings = Settings::default();
    settings.server.data_dir = data_dir.to_owned();
    settings.server.listen = (Ipv4Addr::LOCALHOST, 0).into();
    settings.tool_backend.listen = ToolBackendListen::Off;
    settings.run.enabled = false;
    Server::start(settings).await.unwrap()
}

/// Sends a POST to a router whose every handler panics.
async fn answer_of_a_panic(app: &App, path: &str, toolset: Option<&'static str>) -> (u16, Vec<u8>) {
    async fn panics() {
        panic!("a handler that panics");
    }
    let host_rules = HostRules::new(&app.settings, app.settings.server.listen);
    let site = Site { router: Router::new().fallback(panics), host_rules, toolset };
    let request = Request::post(path).header("host", "localhost").header("x-correlation-id", "test");
    let response = answer(app, &site, request.body(Body::empty()).unwrap(), Ipv4Addr::LOCALHOST.into()).await;
    let echoed = response.headers().get("x-correlation-id").map(|id| id.to_str().unwrap().to_owned());
    assert!(toolset.is_none() || echoed.as_deref() == Some("test"), "{echoed:?}");
    let status = response.status().as_u16();
    (status, response.into_body().collect().await.unwrap().to_bytes().to_vec())
}

#[tokio::test]
async fn a_panic_outside_the_engine_is_answered_in_the_dialect_of_the_route() {
    let folder = tempfile::tempdir().unwrap();
    let app = server(folder.path()).await.app;
    let error = ToolError::internal("the error that a panic becomes");
    let mut bodies = BTreeSet::new();
    for toolset in app.engine.toolsets().iter() {
        let path = format!("/api/v1/workspaces/{}/toolsets/{}", Uuid::nil(), toolset.name());
        let expected = Toolset::dialect(toolset).failure(&error, "test");
        assert_eq!(answer_of_a_panic(&app, &path, None).await, (500, expected.clone()), "{path}");
        bodies.insert(expected);
    }
    assert!(bodies.len() > 3, "the dialects differ");
    let workspace = (500, toolrest_toolsets::workspace::failure(&error));
    for path in ["/api/v1/workspaces/any/tools", "/api/v1/workspaces/any/members", "/api/v1/auth/login", "/ready"] {
        assert_eq!(answer_of_a_panic(&app, path, None).await, workspace, "{path}");
    }
}

#[tokio::test]
async fn a_panic_at_the_tool_backend_is_answered_as_specification_003_says() {
    let folder = tempfile::tempdir().unwrap();
    let app = server(folder.path()).await.app;
    let expected =
        app.engine.toolsets().find("backend").unwrap().dialect().failure(&ToolError::internal("panic"), "test");
    assert_eq!(answer_of_a_panic(&app, "/execute-tool", Some("backend")).await, (500, expected));
}

/// Replaces the names of parameters, which may differ between the code and the page.
fn without_names(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Finds the routes in a page: a method and a path between backticks. Paths are relative to `/api/v1`, except for the
/// probes.
fn documented(page: &str) -> BTreeSet<String> {
    let routes = page.split('`').filter_map(|code| {
        let (method, path) = code.split_once(" /")?;
        ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method).then_some((method, path))
    });
    let full = routes.map(|(method, path)| {
        let path = path.split('?').next().unwrap_or_default();
        let is_absolute =
            ["health", "ready", "metrics", "sign-in", "mcp", "api"].contains(&path) || path.starts_with("api/");
        format!("{method} {}{}", if is_absolute { "/" } else { "/api/v1/" }, without_names(path))
    });
    full.collect()
}

#[test]
fn the_page_of_the_api_names_every_route_and_no_other() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    let documented = documented(&fs::read_to_string(page).unwrap());
    let served: BTreeSet<String> =
        routes().iter().map(|route| format!("{} {}", route.method, without_names(route.path))).collect();
    let missing: Vec<_> = served.difference(&documented).collect();
    let invented: Vec<_> = documented.difference(&served).collect();
    assert!(missing.is_empty(), "docs/api.md does not name {missing:?}");
    assert!(invented.is_empty(), "docs/api.md names routes that are not served: {invented:?}");
}
