//! Refresh tokens, logout, and tokens over restarts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};
use toolrest_testkit::{Account, Client, Port, Reply, Request, unique_email};

use crate::on::{On, text_at, workspace_at};

on_both_databases![
    a_refresh_gives_new_tokens_that_work,
    a_refresh_token_is_taken_from_body_header_or_cookie,
    a_spent_refresh_token_is_refused_and_ends_the_family,
    a_spent_token_ends_only_its_own_family,
    of_concurrent_refreshes_with_one_token_at_most_one_wins,
    a_refresh_without_a_good_token_is_refused,
    a_logout_ends_the_session_and_clears_the_cookies,
    a_generated_secret_is_kept_over_a_restart,
    the_names_of_the_specification_set_secret_and_expiry,
];

async fn refresh(client: &Client, token: &str) -> Reply {
    let request = Request::new("POST", "/api/v1/auth/refresh");
    client.send(request.json(&json!({"refresh_token": token}))).await
}

async fn refreshed(client: &Client, token: &str) -> (String, String) {
    let session = refresh(client, token).await.success();
    (text_at(&session, "/access_token").to_owned(), text_at(&session, "/refresh_token").to_owned())
}

async fn a_refresh_gives_new_tokens_that_work(on: On) {
    let account = on.account().await;
    let reply = refresh(&account.client, &account.refresh_token).await;
    let session = reply.success();
    assert_eq!(session["user"]["id"], account.id);
    for field in ["access_token_expires_at", "refresh_token_expires_at"] {
        assert!(session[field].is_string(), "{session}");
    }
    assert_ne!(session["refresh_token"], account.refresh_token);
    let request = Request::new("GET", "/api/v1/auth/me").bearer(text_at(&session, "/access_token"));
    account.client.send(request).await.success();
    assert!(reply.cookies().contains("refresh_token="), "{reply}");
}

async fn a_refresh_token_is_taken_from_body_header_or_cookie(on: On) {
    let account = on.account().await;
    let (_, token) = refreshed(&account.client, &account.refresh_token).await;
    let request = Request::new("POST", "/api/v1/auth/refresh").bearer(&token);
    let session = account.client.send(request).await.success();
    let cookie = format!("refresh_token={}", text_at(&session, "/refresh_token"));
    let request = Request::new("POST", "/api/v1/auth/refresh").header("Cookie", &cookie);
    account.client.send(request).await.success();
}

async fn a_spent_refresh_token_is_refused_and_ends_the_family(on: On) {
    let account = on.account().await;
    let (_, second) = refreshed(&account.client, &account.refresh_token).await;
    let (_, third) = refreshed(&account.client, &second).await;
    refresh(&account.client, &account.refresh_token).await.refused(401, "INVALID_TOKEN");
    refresh(&account.client, &third).await.refused(401, "INVALID_TOKEN");
}

async fn a_spent_token_ends_only_its_own_family(on: On) {
    let phone = on.account().await;
    let laptop = Account::login(&phone.client, &phone.email).await;
    refreshed(&phone.client, &phone.refresh_token).await;
    refresh(&phone.client, &phone.refresh_token).await.refused(401, "INVALID_TOKEN");
    refreshed(&laptop.client, &laptop.refresh_token).await;
}

async fn of_concurrent_refreshes_with_one_token_at_most_one_wins(on: On) {
    let account = on.account().await;
    let racing: Vec<_> = (0..8)
        .map(|_| {
            let account = account.clone();
            tokio::spawn(async move { refresh(&account.client, &account.refresh_token).await })
        })
        .collect();
    let mut winners = 0;
    for reply in racing {
        let reply = reply.await.unwrap();
        match reply.status {
            200 => winners += 1,
            _ => drop(reply.refused(401, "INVALID_TOKEN")),
        }
    }
    assert_eq!(winners, 1);
}

async fn a_refresh_without_a_good_token_is_refused(on: On) {
    let account = on.account().await;
    for token in ["", "garbage", account.access_token.as_str()] {
        refresh(&account.client, token).await.refused(401, "INVALID_TOKEN");
    }
    let request = Request::new("POST", "/api/v1/auth/refresh");
    let reply = account.client.send(request).await;
    reply.refused(401, "INVALID_TOKEN");
}

async fn a_logout_ends_the_session_and_clears_the_cookies(on: On) {
    let account = on.account().await;
    let cookies = format!("access_token={}; refresh_token={}", account.access_token, account.refresh_token);
    let request = Request::new("POST", "/api/v1/auth/logout").header("Cookie", &cookies);
    let reply = account.client.send(request).await;
    assert!(reply.success()["message"].is_string(), "{reply}");
    for name in ["access_token=", "refresh_token="] {
        let cookie = reply
            .headers_named("set-cookie")
            .find(|cookie| cookie.starts_with(name))
            .unwrap_or_else(|| panic!("{name} is not cleared: {:?}", reply.headers));
        assert!(cookie.contains("Max-Age=0") || cookie.contains("1970"), "{cookie}");
    }
    refresh(&account.client, &account.refresh_token).await.refused(401, "INVALID_TOKEN");
}

async fn a_generated_secret_is_kept_over_a_restart(on: On) {
    let mut server = on.options().start();
    let workspace = workspace_at(&server).await;
    workspace.write("/a.txt", "text").await;
    assert!(server.stop().success(), "{}", server.output());
    server.restart(Port::New);
    let client = server.client();
    let again = workspace.through(&client);
    assert_eq!(again.text("/a.txt").await, "text");
    refreshed(&client, &workspace.account.refresh_token).await;
}

async fn the_names_of_the_specification_set_secret_and_expiry(on: On) {
    let secret = "a secret of at least thirty-two characters";
    let mut server = on
        .options()
        .env("BUILDSCALE__JWT__SECRET", secret)
        .env("BUILDSCALE__JWT__ACCESS_TOKEN_EXPIRATION_MINUTES", "5")
        .start();
    let account = Account::register(&server.client(), &unique_email("short")).await;
    let claims = account.access_token.split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&BASE64.decode(claims).unwrap()).unwrap();
    let lifetime = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap();
    assert_eq!(lifetime, 5 * 60);
    server.set_env("BUILDSCALE__JWT__SECRET", &secret.to_uppercase());
    server.restart(Port::New);
    let with_other_secret = account.through(&server.client());
    let reply = with_other_secret.get("/auth/me").await;
    reply.refused(401, "INVALID_TOKEN");
    server.set_env("BUILDSCALE__JWT__SECRET", secret);
    server.restart(Port::New);
    let with_its_secret = account.through(&server.client());
    with_its_secret.get("/auth/me").await.success();
}
