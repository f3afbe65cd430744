//! The format of answers of the `backend` toolset: specification 003.

use serde_json::json;
use toolrest_testkit::Request;

use crate::on::{On, text_at};

#[tokio::test]
async fn the_correlation_id_is_in_the_body_and_the_header_of_every_answer() {
    let workspace = On::Sqlite.workspace().await;
    let path = format!("/api/v1/workspaces/{}/toolsets/backend", workspace.id);
    let send = async |header: Option<&str>, body: &str| {
        let mut request = Request::new("POST", &path).bearer(&workspace.account.access_token);
        request = request.header("Content-Type", "application/json").body(body);
        if let Some(id) = header {
            request = request.header("X-Correlation-ID", id);
        }
        workspace.account.client.send(request).await
    };
    let command = |id: &str| format!(r#"{{"tool": "executeShellCommand", "args": {{"command": "true"}}{id}}}"#);
    for (header, body, status, id) in [
        (Some("from-header"), command(""), 200, "from-header"),
        (None, command(r#", "correlationId": "from-body""#), 200, "from-body"),
        (Some("both"), command(r#", "correlationId": "both""#), 200, "both"),
        (Some("one"), command(r#", "correlationId": "other""#), 400, "one"),
        (Some("kept"), "{".to_owned(), 400, "kept"),
        (None, json!({"tool": "none", "args": {}, "correlationId": "unknown-tool"}).to_string(), 404, "unknown-tool"),
        (None, json!({"tool": "executeShellCommand", "args": {}, "correlationId": "ü-1"}).to_string(), 400, "ü-1"),
    ] {
        let reply = send(header, &body).await;
        assert_eq!(reply.status, status, "{body}: {reply}");
        assert_eq!(text_at(&reply.json(), "/correlationId"), id, "{body}: {reply}");
        if id.is_ascii() {
            assert_eq!(reply.header("x-correlation-id"), Some(id), "{body}: {reply}");
        }
    }
    let made_up = send(None, &command("")).await;
    assert_eq!(made_up.header("x-correlation-id"), Some(text_at(&made_up.json(), "/correlationId")), "{made_up}");
    for wrong in ["7", r#""""#, r#""a\nb""#] {
        let reply = send(None, &command(&format!(r#", "correlationId": {wrong}"#))).await;
        assert_eq!(text_at(&reply.json(), "/error/code"), "INVALID_ARGUMENT", "{wrong}: {reply}");
    }
}
