//! Registration, sign-in and its limits.

use serde_json::{Value, json};
use toolrest_testkit::{Account, Client, PASSWORD, Reply, Request, unique_email};

use crate::on::{On, text_at};

on_both_databases![
    a_registration_gives_the_user,
    an_address_can_be_registered_once,
    of_concurrent_registrations_of_one_address_one_wins,
    a_registration_that_lacks_something_is_refused,
    a_nul_byte_in_a_registration_or_a_name_is_refused,
    a_sign_in_gives_the_user_and_his_tokens,
    a_wrong_password_and_an_unknown_address_are_told_alike,
    cookies_are_http_only_and_usable,
    no_answer_carries_a_password_hash,
    sign_in_attempts_are_limited_per_account,
    sign_in_attempts_are_limited_per_address,
    registration_can_be_closed,
];

async fn post(client: &Client, path: &str, body: &Value) -> Reply {
    let request = Request::new("POST", &format!("/api/v1/auth/{path}"));
    client.send(request.json(body)).await
}

fn registration(email: &str) -> Value {
    json!({"email": email, "password": PASSWORD, "confirm_password": PASSWORD})
}

async fn a_registration_gives_the_user(on: On) {
    let client = on.shared().client();
    let email = unique_email("new");
    let mut body = registration(&email);
    body["full_name"] = json!("Ada Lovelace");
    let made = post(&client, "register", &body).await.success();
    assert_eq!(made["user"]["email"], email);
    assert_eq!(made["user"]["full_name"], "Ada Lovelace");
    for field in ["id", "created_at", "updated_at"] {
        assert!(made["user"][field].is_string(), "{made}");
    }
    let account = Account::login(&client, &email).await;
    let me = account.get("/auth/me").await.success();
    assert_eq!(me["user"], made["user"]);
}

async fn an_address_can_be_registered_once(on: On) {
    let client = on.shared().client();
    let email = unique_email("once");
    post(&client, "register", &registration(&email)).await.success();
    post(&client, "register", &registration(&email)).await.refused(409, "CONFLICT");
}

async fn of_concurrent_registrations_of_one_address_one_wins(on: On) {
    let client = on.shared().client();
    let email = unique_email("race");
    let racing: Vec<_> = (0..6)
        .map(|_| {
            let (client, body) = (client.clone(), registration(&email));
            tokio::spawn(async move { post(&client, "register", &body).await })
        })
        .collect();
    let mut winners = 0;
    for reply in racing {
        let reply = reply.await.unwrap();
        match reply.status {
            200 => winners += 1,
            _ => drop(reply.refused(409, "CONFLICT")),
        }
    }
    assert_eq!(winners, 1);
}

async fn a_registration_that_lacks_something_is_refused(on: On) {
    let client = on.shared().client();
    let good = registration(&unique_email("lacking"));
    let mut faulty = Vec::new();
    for field in ["email", "password", "confirm_password"] {
        let mut body = good.clone();
        body.as_object_mut().unwrap().remove(field);
        faulty.push(body);
    }
    for (field, value) in [("email", "no address"), ("email", ""), ("confirm_password", "another password 1")] {
        let mut body = good.clone();
        body[field] = json!(value);
        faulty.push(body);
    }
    let mut empty = good.clone();
    empty["password"] = json!("");
    empty["confirm_password"] = json!("");
    faulty.push(empty);
    for body in faulty {
        post(&client, "register", &body).await.refused(400, "VALIDATION_ERROR");
    }
}

async fn a_nul_byte_in_a_registration_or_a_name_is_refused(on: On) {
    let client = on.shared().client();
    post(&client, "register", &registration("a\0b@example.com")).await.refused(400, "VALIDATION_ERROR");
    let mut named = registration(&unique_email("nul"));
    named["full_name"] = json!("a\0b");
    post(&client, "register", &named).await.refused(400, "VALIDATION_ERROR");
    let account = on.account().await;
    for name in ["a\0b", ""] {
        account.post("/workspaces", &json!({"name": name})).await.refused(400, "VALIDATION_ERROR");
    }
    let login = json!({"email": "a\0b@example.com", "password": "a\0b"});
    let reply = post(&client, "login", &login).await;
    assert!([400, 401].contains(&reply.status), "{reply}");
}

async fn a_sign_in_gives_the_user_and_his_tokens(on: On) {
    let account = on.account().await;
    let login = json!({"email": account.email, "password": PASSWORD});
    let session = post(&account.client, "login", &login).await.success();
    let mut fields: Vec<_> = session.as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(
        fields,
        ["access_token", "access_token_expires_at", "refresh_token", "refresh_token_expires_at", "user"]
    );
    assert_eq!(session["user"]["id"], account.id);
    assert_eq!(session["user"]["email"], account.email);
}

async fn a_wrong_password_and_an_unknown_address_are_told_alike(on: On) {
    let account = on.account().await;
    for login in [
        json!({"email": account.email, "password": "not the password 1"}),
        json!({"email": unique_email("nobody"), "password": PASSWORD}),
    ] {
        let reply = post(&account.client, "login", &login).await;
        let body = reply.refused(401, "INVALID_TOKEN");
        assert_eq!(body["error"], "Invalid email or password");
    }
}

async fn cookies_are_http_only_and_usable(on: On) {
    let account = on.account().await;
    let login = json!({"email": account.email, "password": PASSWORD});
    let reply = post(&account.client, "login", &login).await;
    for name in ["access_token=", "refresh_token="] {
        let cookie = reply
            .headers_named("set-cookie")
            .find(|cookie| cookie.starts_with(name))
            .unwrap_or_else(|| panic!("no cookie {name} in {:?}", reply.headers));
        let attributes: Vec<_> = cookie.split("; ").skip(1).collect();
        assert!(attributes.contains(&"HttpOnly"), "{cookie}");
        assert!(attributes.iter().any(|one| one.starts_with("SameSite=")), "{cookie}");
    }
    let request = Request::new("GET", "/api/v1/auth/me").header("Cookie", &reply.cookies());
    let me = account.client.send(request).await.success();
    assert_eq!(me["user"]["id"], account.id);
    let request = Request::new("POST", "/api/v1/auth/refresh").header("Cookie", &reply.cookies());
    account.client.send(request).await.success();
}

/// The client refuses any answer with a hash in it; this asks for all that speak of users.
async fn no_answer_carries_a_password_hash(on: On) {
    let workspace = on.workspace().await;
    let guest = on.account().await;
    workspace.admit(&guest, "viewer").await;
    let account = &workspace.account;
    for path in ["/auth/me", "/workspaces"] {
        account.get(path).await.success();
    }
    for path in ["", "/members", "/commits", "/calls", "/trash"] {
        let reply = workspace.get(path).await;
        reply.success();
        assert!(!reply.text.contains("\"password\""), "{reply}");
    }
    let login = json!({"email": account.email, "password": PASSWORD});
    let reply = post(&account.client, "login", &login).await;
    assert!(!reply.text.contains(PASSWORD), "{reply}");
}

async fn sign_in_attempts_are_limited_per_account(on: On) {
    let victim = on.account().await;
    let other = on.account().await;
    let wrong = json!({"email": victim.email, "password": "a guess 1"});
    let mut limited = None;
    for _ in 0..200 {
        let reply = post(&victim.client, "login", &wrong).await;
        if reply.status == 429 {
            limited = Some(reply);
            break;
        }
        reply.refused(401, "INVALID_TOKEN");
    }
    let limited = limited.expect("200 guesses at one account were all tried");
    limited.refused(429, "RATE_LIMITED");
    let wait: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    assert!(wait > 0);
    let right = json!({"email": victim.email, "password": PASSWORD});
    post(&victim.client, "login", &right).await.refused(429, "RATE_LIMITED");
    Account::login(&other.client, &other.email).await;
    victim.get("/auth/me").await.success();
}

async fn sign_in_attempts_are_limited_per_address(on: On) {
    let server = on.options().env("TOOLREST__AUTH__ATTEMPTS_PER_ADDRESS", "10").start();
    let client = server.client();
    for attempt in 0.. {
        assert!(attempt < 20, "20 guesses from one address were all tried");
        let wrong = json!({"email": unique_email("guess"), "password": "a guess 1"});
        let reply = post(&client, "login", &wrong).await;
        if reply.status == 429 {
            reply.refused(429, "RATE_LIMITED");
            assert!(reply.header("retry-after").is_some(), "{reply}");
            break;
        }
        reply.refused(401, "INVALID_TOKEN");
    }
}

async fn registration_can_be_closed(on: On) {
    let server = on.options().env("TOOLREST__AUTH__REGISTRATION_OPEN", "false").start();
    let reply = post(&server.client(), "register", &registration(&unique_email("late"))).await;
    let body = reply.refused(403, "FORBIDDEN");
    assert!(!text_at(&body, "/error").is_empty());
}
