use super::*;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};

#[test]
fn hashes_are_those_that_argon2_itself_makes_and_takes() {
    let mut memory = Vec::new();
    let ours = hash("a password", &mut memory).unwrap();
    assert!(ours.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{ours}");
    let parsed = PasswordHash::new(&ours).unwrap();
    assert!(Argon2::default().verify_password(b"a password", &parsed).is_ok());
    assert!(Argon2::default().verify_password(b"another", &parsed).is_err());
    let theirs = Argon2::default().hash_password(b"a password").unwrap().to_string();
    for known in [ours, theirs] {
        assert!(verify("a password", &known, &mut memory).unwrap());
        assert!(!verify("another", &known, &mut memory).unwrap());
    }
    assert!(verify("a password", "no hash", &mut memory).is_err());
}

#[test]
fn what_a_hash_left_in_the_memory_does_not_change_the_next() {
    let mut memory = Vec::new();
    let first = hash("first", &mut memory).unwrap();
    let second = hash("second", &mut memory).unwrap();
    assert!(verify("first", &first, &mut memory).unwrap() && verify("second", &second, &mut Vec::new()).unwrap());
}

#[tokio::test]
async fn there_is_no_password_for_an_account_that_does_not_exist() {
    let passwords = Passwords::new().unwrap();
    let hash = passwords.hash("a password".into()).await.unwrap();
    assert!(passwords.verify("a password".into(), Some(hash)).await.unwrap());
    assert!(!passwords.verify("no account has this password".into(), None).await.unwrap());
}

#[tokio::test]
async fn more_hashes_than_can_wait_are_refused_at_once() {
    let passwords = Passwords::new().unwrap();
    let all = (0..=QUEUE_LIMIT + 2 * THREADS_LIMIT).map(|_| passwords.hash("a password".into()));
    let mut all = Box::pin(futures_util::future::select_all(all.map(Box::pin)));
    let (first, _, rest) = (&mut all).await;
    assert_eq!(first.unwrap_err().kind, ErrorKind::Unavailable);
    // Nobody waits for these any more, so they are not computed.
    drop(rest);
}
