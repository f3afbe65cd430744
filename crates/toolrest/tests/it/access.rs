//! Access: tokens and membership.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::json;
use toolrest_testkit::{Reply, Request};

use crate::on::{On, text_at};

const NO_MEMBER: &str = "Access forbidden: User is not a member of this workspace";
const NO_WORKSPACE: &str = "019b97ac-e5f5-735b-b0a6-f3a34fcd4ff1";

on_both_databases![
    without_a_token_every_route_answers_401,
    a_token_that_is_not_ours_is_refused,
    the_refusal_of_an_expired_token_says_how_to_renew_it,
    a_cookie_opens_the_tools_too,
    the_header_wins_over_the_cookie,
    a_non_member_gets_the_same_refusal_for_every_call,
    a_missing_workspace_is_answered_like_a_foreign_one,
    every_route_of_a_workspace_refuses_non_members,
    a_foreign_workspace_is_not_listed,
    a_removed_member_is_refused,
    a_deleted_workspace_is_closed_to_its_owner,
    a_workspace_can_be_renamed_and_read,
];

async fn without_a_token_every_route_answers_401(on: On) {
    let workspace = on.workspace().await;
    let base = format!("/api/v1/workspaces/{}", workspace.id);
    for (method, path) in [
        ("POST", format!("{base}/tools")),
        ("POST", format!("{base}/toolsets/workspace")),
        ("GET", base.clone()),
        ("PATCH", base.clone()),
        ("DELETE", base.clone()),
        ("GET", format!("{base}/members")),
        ("POST", format!("{base}/members")),
        ("GET", format!("{base}/trash")),
        ("GET", format!("{base}/commits")),
        ("GET", format!("{base}/calls")),
        ("POST", format!("{base}/chats")),
        ("GET", "/api/v1/workspaces".to_owned()),
        ("POST", "/api/v1/workspaces".to_owned()),
        ("GET", "/api/v1/auth/me".to_owned()),
    ] {
        let body = json!({"tool": "ls", "args": {}, "name": "x", "title": "x"});
        let request = Request::new(method, &path).json(&body);
        let reply = workspace.account.client.send(request).await;
        let body = reply.refused(401, "INVALID_TOKEN");
        assert_eq!(body["error"], "No valid token found in Authorization header or cookie");
    }
}

async fn a_token_that_is_not_ours_is_refused(on: On) {
    let workspace = on.workspace().await;
    let good = &workspace.account.access_token;
    let parts: Vec<_> = good.split('.').collect();
    assert_eq!(parts.len(), 3, "a JWT: {good}");
    let unsigned = BASE64.encode(r#"{"alg":"none","typ":"JWT"}"#);
    let claims = String::from_utf8(BASE64.decode(parts[1]).unwrap()).unwrap();
    let owner = &workspace.account.id;
    let claims = claims.replace(owner.as_str(), NO_WORKSPACE);
    let forged = BASE64.encode(claims);
    for token in [
        "garbage".to_owned(),
        String::new(),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{unsigned}.{}.", parts[1]),
        format!("{}.{forged}.{}", parts[0], parts[2]),
        workspace.account.refresh_token.clone(),
    ] {
        let request = Request::new("GET", "/api/v1/auth/me").bearer(&token);
        let reply = workspace.account.client.send(request).await;
        let refusal = reply.refused(401, "INVALID_TOKEN");
        let expected = if token.is_empty() { "No valid token found" } else { "not one of this server's" };
        assert!(text_at(&refusal, "/error").contains(expected), "{token}: {refusal}");
    }
}

async fn the_refusal_of_an_expired_token_says_how_to_renew_it(on: On) {
    let secret = "a secret of at least thirty-two characters";
    let server = on.options().env("TOOLREST__JWT__SECRET", secret).start();
    let expired = {
        let head = BASE64.encode(r#"{"typ":"JWT","alg":"HS256"}"#);
        let claims = BASE64.encode(format!(r#"{{"sub":"{NO_WORKSPACE}","iat":1,"exp":2}}"#));
        let signature = hmac_sha256(secret.as_bytes(), format!("{head}.{claims}").as_bytes());
        format!("{head}.{claims}.{}", BASE64.encode(signature))
    };
    let refusal = server.client().send(Request::new("GET", "/api/v1/auth/me").bearer(&expired)).await;
    let refusal = refusal.refused(401, "INVALID_TOKEN");
    let said = text_at(&refusal, "/error");
    assert!(said.contains("expired") && said.contains("/api/v1/auth/refresh"), "{refusal}");
}

pub fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    const BLOCK_BYTES: usize = 64;
    assert!(key.len() <= BLOCK_BYTES, "a longer key would be hashed first");
    let sha256 = |bytes: &[u8]| -> Vec<u8> {
        let hex = toolrest_testkit::sha256_hex(bytes);
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    let padded = |pad: u8| -> Vec<u8> { (0..BLOCK_BYTES).map(|at| key.get(at).copied().unwrap_or(0) ^ pad).collect() };
    let inner = sha256(&[padded(0x36), message.to_vec()].concat());
    sha256(&[padded(0x5c), inner].concat())
}

async fn a_cookie_opens_the_tools_too(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "text").await;
    let path = format!("/api/v1/workspaces/{}/tools", workspace.id);
    let cookie = format!("theme=dark; access_token={}", workspace.account.access_token);
    let request = Request::new("POST", &path)
        .header("Cookie", &cookie)
        .json(&json!({"tool": "read", "args": {"path": "/a.txt"}}));
    let read = workspace.account.client.send(request).await.result();
    assert_eq!(read["content"], "text");
}

async fn the_header_wins_over_the_cookie(on: On) {
    let (alice, bob) = (on.account().await, on.account().await);
    let request = Request::new("GET", "/api/v1/auth/me")
        .bearer(&alice.access_token)
        .header("Cookie", &format!("access_token={}", bob.access_token));
    let me = alice.client.send(request).await.success();
    assert_eq!(me["user"]["id"], alice.id);
}

#[track_caller]
fn assert_not_a_member(reply: &Reply) {
    let body = reply.refused(403, "FORBIDDEN");
    assert_eq!(body["error"], NO_MEMBER);
    assert!(body.get("fields").is_none(), "{reply}");
}

async fn a_non_member_gets_the_same_refusal_for_every_call(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "secret").await;
    let stranger = workspace.for_user(&on.account().await);
    for (tool, args) in [
        ("ls", json!({})),
        ("read", json!({"path": "/a.txt"})),
        ("read", json!({"path": "/missing.txt"})),
        ("write", json!({"path": "/a.txt", "content": "x"})),
        ("rm", json!({"path": "/a.txt"})),
        ("no_such_tool", json!({})),
        ("read", json!({"pth": "/a.txt"})),
        ("read", json!({})),
        ("write", json!({"path": "/\0", "content": 5})),
    ] {
        assert_not_a_member(&stranger.call(tool, &args).await);
    }
    assert_eq!(workspace.text("/a.txt").await, "secret");
}

async fn a_missing_workspace_is_answered_like_a_foreign_one(on: On) {
    let nowhere = on.account().await.in_workspace(NO_WORKSPACE);
    assert_not_a_member(&nowhere.call("ls", &json!({})).await);
    assert_not_a_member(&nowhere.call("no_such_tool", &json!({})).await);
    assert_not_a_member(&nowhere.get("").await);
    assert_not_a_member(&nowhere.get("/members").await);
    assert_not_a_member(&nowhere.get("/commits").await);
    let nonsense = on.account().await.in_workspace("no-uuid");
    let reply = nonsense.call("ls", &json!({})).await;
    reply.error_shape();
    assert!((400..500).contains(&reply.status), "{reply}");
}

async fn every_route_of_a_workspace_refuses_non_members(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/a.txt", "first").await;
    workspace.write("/a.txt", "secret").await;
    let chat = workspace.post("/chats", &json!({"title": "Plans"})).await;
    let chat = chat.success()["chat"]["id"].as_str().unwrap().to_owned();
    let commits = workspace.get("/commits").await.success();
    let (id, version) = (text_at(&file, "/file_id"), text_at(&file, "/version_id"));
    let commit = text_at(&commits, "/commits/0/id");
    let owner = &workspace.account.id;
    let stranger = on.account().await;
    let invitation = json!({"email": stranger.email, "role": "owner"});
    let call = json!({"tool": "ls", "args": {}});
    let outside = workspace.for_user(&stranger);
    for (method, path, body) in [
        ("GET", String::new(), None),
        ("PATCH", String::new(), Some(json!({"name": "Mine"}))),
        ("DELETE", String::new(), None),
        ("POST", "/tools".into(), Some(call.clone())),
        ("POST", "/toolsets/workspace".into(), Some(call)),
        ("GET", "/members".into(), None),
        ("POST", "/members".into(), Some(invitation)),
        ("PATCH", format!("/members/{owner}"), Some(json!({"role": "viewer"}))),
        ("DELETE", format!("/members/{owner}"), None),
        ("GET", format!("/files/{id}"), None),
        ("GET", format!("/files/{id}/versions"), None),
        ("GET", format!("/files/{id}/versions/{version}"), None),
        ("POST", format!("/files/{id}/restore"), Some(json!({}))),
        ("GET", "/trash".into(), None),
        ("GET", "/history/a.txt".into(), None),
        ("GET", "/history/missing.txt".into(), None),
        ("GET", "/commits".into(), None),
        ("GET", format!("/commits/{commit}"), None),
        ("GET", format!("/commits/{commit}/diff"), None),
        ("POST", format!("/commits/{commit}/undo"), Some(json!({}))),
        ("GET", "/calls".into(), None),
        ("POST", "/chats".into(), Some(json!({"title": "Mine"}))),
        ("GET", format!("/chats/{chat}"), None),
        ("POST", format!("/chats/{chat}/messages"), Some(json!({"role": "user", "content": "hello"}))),
    ] {
        assert_not_a_member(&outside.send(method, &path, body.as_ref()).await);
    }
    assert_eq!(workspace.text("/a.txt").await, "secret");
    let members = workspace.get("/members").await.success();
    assert_eq!(members["count"], 1);
}

async fn a_foreign_workspace_is_not_listed(on: On) {
    let (alice, bob) = (on.account().await, on.account().await);
    let theirs = alice.workspace("Alice's").await;
    let own = bob.workspace("Bob's").await;
    let listed = bob.get("/workspaces").await.success();
    assert_eq!(listed["count"], 1);
    assert_eq!(listed["workspaces"][0]["id"], own.id);
    assert_eq!(listed["workspaces"][0]["role"], "owner");
    theirs.add_member(&bob, "viewer").await;
    let listed = bob.get("/workspaces").await.success();
    assert_eq!(listed["count"], 2);
}

async fn a_removed_member_is_refused(on: On) {
    let workspace = on.workspace().await;
    let guest = on.account().await;
    workspace.add_member(&guest, "editor").await;
    let seen = workspace.for_user(&guest);
    seen.write("/a.txt", "text").await;
    workspace.delete(&format!("/members/{}", guest.id)).await.success();
    assert_not_a_member(&seen.call("ls", &json!({})).await);
    assert_not_a_member(&seen.get("/members").await);
}

async fn a_deleted_workspace_is_closed_to_its_owner(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/a.txt", "text").await;
    workspace.delete("").await.success();
    assert_not_a_member(&workspace.call("ls", &json!({})).await);
    assert_not_a_member(&workspace.get("").await);
    let path = format!("/files/{}", text_at(&file, "/file_id"));
    assert_not_a_member(&workspace.get(&path).await);
    let listed = workspace.account.get("/workspaces").await.success();
    assert_eq!(listed["count"], 0);
}

async fn a_workspace_can_be_renamed_and_read(on: On) {
    let workspace = on.account().await.workspace("Before").await;
    let renamed = workspace.patch("", &json!({"name": "After"})).await;
    assert_eq!(renamed.success()["workspace"]["name"], "After");
    let read = workspace.get("").await.success();
    assert_eq!(read["workspace"]["name"], "After");
    assert_eq!(read["workspace"]["id"], workspace.id);
    assert_eq!(read["workspace"]["owner_id"], workspace.account.id);
    assert_eq!(read["workspace"]["role"], "owner");
}
