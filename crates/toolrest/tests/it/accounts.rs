//! Registration, sign-in and its limits.

use serde_json::{Value, json};
use toolrest_testkit::{Account, Client, PASSWORD, Reply, Request, unique_email};

use crate::on::{On, text_at};

on_both_databases![
    a_registration_makes_an_account,
    registering_a_known_address_changes_nothing_and_answers_as_for_a_new_one,
    of_concurrent_registrations_of_one_address_one_wins,
    a_registration_that_lacks_something_is_refused,
    a_nul_byte_in_a_registration_or_a_name_is_refused,
    a_sign_in_gives_the_user_and_his_tokens,
    a_wrong_password_and_an_unknown_address_get_the_same_answer,
    cookies_are_http_only_and_usable,
    no_answer_carries_a_password_hash,
    sign_in_attempts_are_limited_per_account,
    sign_in_attempts_are_limited_per_address,
    registration_can_be_closed,
    registrations_are_limited_per_address,
    a_trusted_proxy_names_the_address,
];

async fn post(client: &Client, path: &str, body: &Value) -> Reply {
    let request = Request::new("POST", &format!("/api/v1/auth/{path}"));
    client.send(request.json(body)).await
}

fn registration(email: &str) -> Value {
    json!({"email": email, "password": PASSWORD, "confirm_password": PASSWORD})
}

async fn a_registration_makes_an_account(on: On) {
    let client = on.shared().client();
    let email = unique_email("new");
    let mut body = registration(&email);
    body["full_name"] = json!("Ada Lovelace");
    assert!(post(&client, "register", &body).await.success()["message"].is_string());
    let account = Account::login(&client, &email).await;
    let me = account.get("/auth/me").await.success();
    assert_eq!(me["user"]["email"], email);
    assert_eq!(me["user"]["full_name"], "Ada Lovelace");
    for field in ["id", "created_at", "updated_at"] {
        assert!(me["user"][field].is_string(), "{me}");
    }
}

fn registration_with(email: &str, password: &str) -> Value {
    json!({"email": email, "password": password, "confirm_password": password})
}

async fn registering_a_known_address_changes_nothing_and_answers_as_for_a_new_one(on: On) {
    let client = on.shared().client();
    let email = unique_email("once");
    let mut replies = Vec::new();
    for password in [PASSWORD, "another password 1"] {
        let begun = std::time::Instant::now();
        let reply = post(&client, "register", &registration_with(&email, password)).await;
        assert!(begun.elapsed().as_millis() >= 100, "both wait for the same moments");
        replies.push((reply.status, reply.text, reply.headers.len()));
    }
    assert_eq!(replies[0].0, 200);
    assert_eq!(replies[0], replies[1]);
    Account::login(&client, &email).await;
    let other = json!({"email": email, "password": "another password 1"});
    post(&client, "login", &other).await.refused(401, "INVALID_TOKEN");
}

async fn of_concurrent_registrations_of_one_address_one_wins(on: On) {
    let client = on.shared().client();
    let email = unique_email("race");
    let password = |n: usize| format!("the password number {n}");
    let racing: Vec<_> = (0..6)
        .map(|n| {
            let (client, body) = (client.clone(), registration_with(&email, &password(n)));
            tokio::spawn(async move { post(&client, "register", &body).await })
        })
        .collect();
    for reply in racing {
        reply.await.unwrap().success();
    }
    let mut winners = 0;
    for n in 0..6 {
        let login = json!({"email": email, "password": password(n)});
        winners += usize::from(post(&client, "login", &login).await.status == 200);
    }
    assert_eq!(winners, 1);
}

async fn registrations_are_limited_per_address(on: On) {
    let server = on
        .options()
        .env("TOOLREST__AUTH__REGISTRATIONS_PER_ADDRESS", "3")
        .env("TOOLREST__SERVER__TRUSTED_PROXIES", "192.0.2.1")
        .start();
    let client = server.client();
    for _ in 0..3 {
        post(&client, "register", &registration(&unique_email("one-of-many"))).await.success();
    }
    // Who is no proxy cannot name another address.
    for forwarded in ["203.0.113.7", "203.0.113.8"] {
        let body = registration(&unique_email("one-too-many"));
        let request = Request::new("POST", "/api/v1/auth/register").header("X-Forwarded-For", forwarded).json(&body);
        let reply = client.send(request).await;
        reply.refused(429, "RATE_LIMITED");
        assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() > 0, "{reply}");
    }
}

async fn a_trusted_proxy_names_the_address(on: On) {
    let server = on
        .options()
        .env("TOOLREST__AUTH__REGISTRATIONS_PER_ADDRESS", "1")
        .env("TOOLREST__SERVER__TRUSTED_PROXIES", "127.0.0.1,10.0.0.0/8")
        .start();
    let register = async |forwarded: &str| {
        let body = registration(&unique_email("forwarded"));
        let request = Request::new("POST", "/api/v1/auth/register").header("X-Forwarded-For", forwarded).json(&body);
        server.client().send(request).await.status
    };
    assert_eq!(register("203.0.113.7").await, 200);
    // The caller may have forged the addresses before the last one that is not a proxy's.
    assert_eq!(register("198.51.100.1, 203.0.113.7, 10.0.0.2").await, 429);
    assert_eq!(register("203.0.113.7, 203.0.113.9").await, 200);
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

async fn a_wrong_password_and_an_unknown_address_get_the_same_answer(on: On) {
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
    workspace.add_member(&guest, "viewer").await;
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
