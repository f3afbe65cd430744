//! Attacks and careless requests, each of which worked once.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use toolrest_testkit::{PASSWORD, Request, unique_email};

use crate::on::{On, text_at};

on_every_backend!(
    an_edit_cannot_grow_a_file_beyond_the_limit,
    a_search_that_repeats_itself_does_not_hold_the_server,
    deeply_nested_json_is_not_laid_out_beyond_the_limit,
    a_nul_is_refused_in_every_place_that_takes_text,
    a_duplicate_key_is_refused,
    the_root_cannot_be_written_as_a_folder,
    a_path_that_is_not_text_is_answered_in_shape,
    a_faulty_request_of_a_non_member_reveals_nothing,
    a_body_that_is_no_object_is_refused,
    a_long_list_says_that_it_was_cut,
    many_chats_of_one_title_are_separate_files,
    a_browser_that_sends_its_access_token_too_can_refresh_and_log_out,
    failed_sign_ins_from_other_addresses_do_not_lock_the_owner_out,
);

async fn an_edit_cannot_grow_a_file_beyond_the_limit(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", &"a".repeat(1_000_000)).await;
    let args = json!({"path": "/a.txt", "old_string": "a", "new_string": "b".repeat(1_000_000)});
    workspace.refused(413, "PAYLOAD_TOO_LARGE", "edit-many", args).await;
    assert_eq!(workspace.text("/a.txt").await.len(), 1_000_000);
}

async fn a_search_that_repeats_itself_does_not_hold_the_server(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", &"a".repeat(2_000_000)).await;
    let args = json!({"path": "/a.txt", "old_string": "a".repeat(1_000_000), "new_string": "b"});
    workspace.refused(400, "VALIDATION_ERROR", "edit", args).await;
}

async fn deeply_nested_json_is_not_laid_out_beyond_the_limit(on: On) {
    let workspace = on.workspace().await;
    let zeros = vec![0; 300_000];
    let deep = (0..100).fold(json!(zeros), |inner, _| json!([inner]));
    let args = json!({"path": "/deep", "content": {"deep": deep}, "file_type": "canvas"});
    workspace.ok("write", args).await;
    let args = json!({"path": "/deep", "old_string": "deep", "new_string": "x"});
    workspace.refused(413, "PAYLOAD_TOO_LARGE", "edit", args).await;
}

async fn a_nul_is_refused_in_every_place_that_takes_text(on: On) {
    let workspace = on.workspace().await;
    workspace.ok("write", json!({"path": "/more", "content": {"text": "a", "n": 1}})).await;
    for (tool, args) in [
        ("write", json!({"path": "/x", "content": "a\u{0}b"})),
        ("write", json!({"path": "/x", "content": {"text": "a\u{0}b", "n": 1}})),
        ("write", json!({"path": "/x\u{0}", "content": "a"})),
        ("edit", json!({"path": "/more", "old_string": "a", "new_string": "\u{0}"})),
    ] {
        workspace.refused(400, "VALIDATION_ERROR", tool, args).await;
    }
    for (path, body) in [
        ("/members", json!({"email": "a\u{0}b@example.com", "role": "viewer"})),
        ("/chats", json!({"title": "a\u{0}b"})),
    ] {
        workspace.post(path, &body).await.refused(400, "VALIDATION_ERROR");
    }
    let strange = workspace.call("no\u{0}tool\u{1b}[31m", &json!({})).await;
    strange.refused(404, "NOT_FOUND");
}

async fn a_duplicate_key_is_refused(on: On) {
    let workspace = on.workspace().await;
    for content in [r#"{"text":"a","text":5}"#, r#"{"text":"one","text":"two"}"#, r#"{"text":"a","m":{"k":1,"k":2}}"#] {
        let body = format!(r#"{{"tool":"write","args":{{"path":"/x","content":{content}}}}}"#);
        workspace.call_text(&body).await.refused(400, "VALIDATION_ERROR");
    }
}

async fn the_root_cannot_be_written_as_a_folder(on: On) {
    let workspace = on.workspace().await;
    for path in ["/", "", "/a/.."] {
        let args = json!({"path": path, "content": "", "file_type": "folder"});
        workspace.refused(400, "VALIDATION_ERROR", "write", args).await;
    }
    let args = json!({"path": "/folder", "content": "", "file_type": "folder", "last_read_hash": "stale"});
    let refused = workspace.call("write", &args).await;
    assert!([404, 409].contains(&refused.status), "{refused}");
}

async fn a_path_that_is_not_text_is_answered_in_shape(on: On) {
    let account = on.account().await;
    for path in ["/workspaces/%ff/tools", "/workspaces/%ff/toolsets/workspace", "/workspaces/%ff/trash"] {
        let reply = account.post(path, &json!({"tool": "ls", "args": {}})).await;
        assert!((400..500).contains(&reply.status), "{reply}");
        reply.error_shape();
    }
    account.get("/toolsets/%ff").await.refused(404, "NOT_FOUND");
}

async fn a_faulty_request_of_a_non_member_reveals_nothing(on: On) {
    let workspace = on.workspace().await;
    let stranger = workspace.for_user(&on.account().await);
    for reply in [
        stranger.patch("", &json!({"nam": 1})).await,
        stranger.post("/members", &json!({"email": 1})).await,
        stranger.post("/members", &json!({"email": "x", "role": "owner"})).await,
        stranger.post("/chats", &json!({"title": ""})).await,
        stranger.get("/commits?limit=x").await,
        stranger.get("/trash?before=x").await,
        stranger.get("/files/no-id").await,
        stranger.call("edit", &json!({"path": "/a", "old_string": "", "new_string": ""})).await,
    ] {
        reply.refused(403, "FORBIDDEN");
    }
}

async fn a_body_that_is_no_object_is_refused(on: On) {
    let workspace = on.workspace().await;
    workspace.call_text(r#"["ls", {"path": "/"}]"#).await.refused(400, "VALIDATION_ERROR");
    let body = json!([unique_email("array"), PASSWORD, PASSWORD, null]);
    on.account().await.post("/auth/register", &body).await.refused(400, "VALIDATION_ERROR");
}

async fn a_long_list_says_that_it_was_cut(on: On) {
    let workspace = on.workspace().await;
    for n in 0..5 {
        workspace.write(&format!("/{n}"), "text").await;
    }
    for n in 0..5 {
        workspace.ok("rm", json!({"path": format!("/{n}")})).await;
    }
    let whole = workspace.get("/trash").await.success();
    assert_eq!((&whole["count"], &whole["truncated"]), (&json!(5), &json!(false)));
    let mut seen = Vec::new();
    let mut next = String::from("/trash?limit=2");
    loop {
        let page = workspace.get(&next).await.success();
        let files = page["files"].as_array().unwrap();
        seen.extend(files.iter().map(|file| file["id"].clone()));
        if page["truncated"] == false {
            break;
        }
        next = format!("/trash?limit=2&before={}", text_at(files.last().unwrap(), "/id"));
    }
    let ids: Vec<Value> = whole["files"].as_array().unwrap().iter().map(|file| file["id"].clone()).collect();
    assert_eq!(seen, ids);
    for limit in ["0", "-1", "x", "10001"] {
        workspace.get(&format!("/commits?limit={limit}")).await.refused(400, "VALIDATION_ERROR");
    }
}

async fn many_chats_of_one_title_are_separate_files(on: On) {
    let workspace = on.workspace().await;
    for _ in 0..4 {
        workspace.post("/chats", &json!({"title": "Same/Title"})).await.success();
    }
    let listed = workspace.ok("ls", json!({"path": "/chats"})).await;
    let entries = listed["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 4);
    assert!(entries.iter().all(|entry| entry["display_name"] == "Same/Title"), "{listed}");
    assert!(entries.iter().any(|entry| entry["name"] == "Same-Title.chat"), "{listed}");
}

async fn a_browser_that_sends_its_access_token_too_can_refresh_and_log_out(on: On) {
    let client = on.shared().client();
    let account = on.account().await;
    let login = account.post("/auth/login", &json!({"email": account.email, "password": PASSWORD})).await;
    let token = text_at(&login.success(), "/access_token").to_owned();
    let send =
        |path: &str, cookies: &str| client.send(Request::new("POST", path).bearer(&token).header("cookie", cookies));
    let refreshed = send("/api/v1/auth/refresh", &login.cookies()).await;
    refreshed.success();
    send("/api/v1/auth/logout", &refreshed.cookies()).await.success();
    let again = send("/api/v1/auth/logout", &refreshed.cookies()).await;
    assert_eq!(again.status, 401);
    assert!(again.headers_named("set-cookie").any(|cookie| cookie.starts_with("refresh_token=;")), "{again}");
}

async fn failed_sign_ins_from_other_addresses_do_not_lock_the_owner_out(on: On) {
    let server = on.options().env("TOOLREST__SERVER__TRUSTED_PROXIES", "127.0.0.1").start();
    let client = server.client();
    let email = unique_email("owner");
    let account = toolrest_testkit::Account::register(&client, &email).await;
    let sign_in = |from: &str, password: &str| {
        let body = json!({"email": account.email, "password": password});
        client.send(Request::new("POST", "/api/v1/auth/login").header("x-forwarded-for", from).json(&body))
    };
    for _ in 0..12 {
        sign_in("203.0.113.7", "wrong password").await;
    }
    assert_eq!(sign_in("203.0.113.7", PASSWORD).await.status, 429);
    assert_eq!(sign_in("203.0.113.8", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn a_data_folder_is_for_the_server_alone() {
    let server = On::Sqlite.options().start();
    On::Sqlite.workspace_at(&server).await.write("/a", "text").await;
    for entry in std::fs::read_dir(server.data_folder()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o077;
        assert_eq!(mode, 0, "{} is open to others", entry.path().display());
    }
}
