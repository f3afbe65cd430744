use super::*;

const SECRET: &str = "a secret of at least thirty-two characters";

#[test]
fn a_token_stands_for_the_user_it_was_made_for() {
    let (tokens, user) = (AccessTokens::new(SECRET, 15), UserId::new());
    let (token, _) = tokens.issue(user, 0).unwrap();
    assert_eq!(tokens.check(Some(&token)).unwrap().user, user);
}

#[test]
fn a_token_in_the_standard_form_is_verified() {
    // Put together and signed by Python's hmac and base64 modules.
    let token = concat!(
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.",
        "eyJzdWIiOiIwMTliOTdhYy1lNWY1LTczNWItYjBhNi1mM2EzNGZjZDRmZjEiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI6NDEwMjQ0NDgwMH0.",
        "P0Ub1gKbIcohgltbR4sV40GGIsrW0QeXBZYpgsn4GDU"
    );
    let caller = AccessTokens::new(SECRET, 15).check(Some(token)).unwrap();
    assert_eq!(caller.user.to_string(), "019b97ac-e5f5-735b-b0a6-f3a34fcd4ff1");
}

#[test]
fn an_expired_a_foreign_and_an_unsigned_token_are_refused() {
    let tokens = AccessTokens::new(SECRET, 15);
    let claims = Claims { sub: UserId::new(), iat: 0, exp: now().as_second() - 1, epoch: 0, start: None };
    let expired = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &tokens.encoding).unwrap();
    let foreign = AccessTokens::new("another secret of at least thirty-two", 15).issue(UserId::new(), 0).unwrap().0;
    let payload = foreign.split('.').nth(1).unwrap();
    let unsigned = format!("{}.{payload}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#));
    let other = format!("{}.{payload}.AAAA", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS512","typ":"JWT"}"#));
    for bad in [Some(expired.as_str()), Some(&foreign), Some(&unsigned), Some(&other), Some("x"), Some(""), None] {
        assert_eq!(tokens.check(bad).unwrap_err().kind, ErrorKind::Unauthenticated, "{bad:?}");
    }
    let message = |token| tokens.check(token).unwrap_err().message;
    assert!(message(None).contains("No valid token found"));
    assert!(message(Some(&expired)).contains("expired") && message(Some(&expired)).contains("/auth/refresh"));
    for garbled in [foreign.as_str(), &unsigned, &other, "x"] {
        assert!(message(Some(garbled)).contains("not one of this server's"), "{garbled}");
    }
}

#[test]
fn a_token_of_an_earlier_epoch_or_a_disabled_account_is_refused() {
    let (tokens, user) = (AccessTokens::new(SECRET, 15), UserId::new());
    let [before, after, enabled] = [0, 1, 2].map(|epoch| tokens.issue(user, epoch).unwrap().0);
    let revocation = |is_disabled| toolrest_store::Revocation { user, token_epoch: 1, is_disabled };
    tokens.revoked().set(&[revocation(false)]);
    assert_eq!(tokens.check(Some(&before)).unwrap_err().kind, ErrorKind::Unauthenticated);
    assert_eq!(tokens.check(Some(&after)).unwrap().user, user);
    tokens.revoked().set(&[revocation(true)]);
    assert!(tokens.check(Some(&after)).unwrap_err().message.contains("disabled"));
    assert_eq!(tokens.check(Some(&enabled)).unwrap().user, user, "it has been enabled since the server asked");
}

#[test]
fn a_token_of_serve_dir_is_good_at_the_server_that_printed_it_only() {
    let (here, elsewhere, user) = (AccessTokens::new(SECRET, 15), AccessTokens::new(SECRET, 15), UserId::new());
    let token = here.issue_local(user, 0, Duration::from_secs(60)).unwrap();
    assert_eq!(here.check(Some(&token)).unwrap().user, user);
    let refusal = elsewhere.check(Some(&token)).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Unauthenticated);
    assert!(refusal.message.contains("another start of `toolrest serve --dir`"), "{refusal}");
    let (of_login, _) = here.issue(user, 0).unwrap();
    assert_eq!(elsewhere.check(Some(&of_login)).unwrap().user, user, "others are good at every replica");
}

#[test]
fn an_expired_or_revoked_token_of_serve_dir_is_answered_with_how_to_get_another() {
    let (tokens, user) = (AccessTokens::new(SECRET, 15), UserId::new());
    let expired = tokens.issue_local(user, 0, Duration::ZERO).unwrap();
    let token = tokens.issue_local(user, 0, Duration::from_secs(60)).unwrap();
    tokens.revoked().set(&[toolrest_store::Revocation { user, token_epoch: 1, is_disabled: false }]);
    for (token, word) in [(expired, "expired"), (token, "revoked")] {
        let message = tokens.check(Some(&token)).unwrap_err().message;
        assert!(message.contains(word) && message.contains("Restart `toolrest serve --dir`"), "{message}");
        assert!(!message.contains("/auth/"), "there is no password to sign in with: {message}");
    }
}

#[test]
fn refresh_tokens_differ() {
    assert_ne!(fresh_token().unwrap(), fresh_token().unwrap());
}
