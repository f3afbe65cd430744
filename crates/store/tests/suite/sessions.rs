//! Sessions and sign-in attempts under concurrency.

use crate::test_workspace::{TestWorkspace, on_both_stores};
use std::time::Duration;
use tokio::task::JoinSet;
use toolrest_core::now;
use toolrest_store::{Attempt, Rotation, Session};

on_both_stores!(
    a_token_presented_many_times_is_accepted_once_and_ends_the_session,
    an_expired_token_is_invalid_and_not_reused,
    concurrent_attempts_are_counted_before_they_are_checked,
    a_secret_is_created_once,
    a_concurrent_rotation_does_not_outlive_the_end_of_the_session,
    no_session_survives_the_end_of_all_sessions,
);

fn session(token: u8) -> Session {
    Session { token_hash: [token; 32], expires_at: now().checked_add(Duration::from_secs(60)).unwrap() }
}

async fn a_token_presented_many_times_is_accepted_once_and_ends_the_session(ws: TestWorkspace) {
    ws.store.open_session(ws.user, 0, session(0)).await.unwrap();
    let mut tasks = JoinSet::new();
    for attempt in 1..=10 {
        let ws = ws.clone();
        tasks.spawn(async move { ws.store.rotate_session([0; 32], session(attempt)).await.unwrap() });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Rotation::Rotated(ws.user)).count(), 1, "{outcomes:?}");
    assert!(outcomes.contains(&Rotation::Reused), "{outcomes:?}");
    for token in 0..=10 {
        let outcome = ws.store.rotate_session([token; 32], session(99)).await.unwrap();
        assert_eq!(outcome, Rotation::Invalid, "token {token} of the ended session");
    }
}

async fn an_expired_token_is_invalid_and_not_reused(ws: TestWorkspace) {
    let expires_at = now().checked_sub(Duration::from_secs(1)).unwrap();
    ws.store.open_session(ws.user, 0, Session { token_hash: [1; 32], expires_at }).await.unwrap();
    assert_eq!(ws.store.rotate_session([1; 32], session(2)).await.unwrap(), Rotation::Invalid);
    assert_eq!(ws.store.rotate_session([2; 32], session(3)).await.unwrap(), Rotation::Invalid);
}

async fn concurrent_attempts_are_counted_before_they_are_checked(ws: TestWorkspace) {
    let window = Duration::from_secs(60);
    let attempt = || vec![Attempt { key: "account:x".into(), limit: 3 }];
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let ws = ws.clone();
        tasks.spawn(async move { ws.store.count_attempts(attempt(), window).await.unwrap() });
    }
    let waits = tasks.join_all().await;
    assert_eq!(waits.iter().filter(|wait| wait.is_none()).count(), 3, "{waits:?}");
    assert!(waits.iter().flatten().all(|wait| *wait <= window));
    for _ in 0..8 {
        ws.store.forgive_attempts(vec!["account:x".into()]).await.unwrap();
    }
    assert_eq!(ws.store.count_attempts(attempt(), window).await.unwrap(), None);
    assert_eq!(ws.store.count_attempts(attempt(), Duration::ZERO).await.unwrap(), None, "a new window begins");
}

async fn a_secret_is_created_once(ws: TestWorkspace) {
    assert_eq!(ws.store.secret("jwt", "first").await.unwrap(), "first");
    assert_eq!(ws.store.secret("jwt", "second").await.unwrap(), "first");
}

async fn a_concurrent_rotation_does_not_outlive_the_end_of_the_session(ws: TestWorkspace) {
    for turn in 0..20_u8 {
        let (first, second) = (turn * 2, turn * 2 + 1);
        ws.store.open_session(ws.user, 0, session(first)).await.unwrap();
        let (rotated, closed) =
            tokio::join!(ws.store.rotate_session([first; 32], session(second)), ws.store.close_session([first; 32]));
        rotated.unwrap();
        assert!(closed.unwrap());
        assert_eq!(ws.store.rotate_session([second; 32], session(99)).await.unwrap(), Rotation::Invalid);
    }
}

async fn no_session_survives_the_end_of_all_sessions(ws: TestWorkspace) {
    for round in 0..20_u8 {
        let epoch = i64::from(round);
        let (old, signed_in, renewed) = ([round; 32], [100 + round; 32], [200 + round; 32]);
        let session = |token_hash| Session { token_hash, ..session(0) };
        assert!(ws.store.open_session(ws.user, epoch, session(old)).await.unwrap());
        // A concurrent sign-in whose password was checked before, and a concurrent renewal of a session.
        let (ended, _, _) = tokio::join!(
            ws.store.end_sessions(ws.user),
            ws.store.open_session(ws.user, epoch, session(signed_in)),
            ws.store.rotate_session(old, session(renewed)),
        );
        ended.unwrap();
        for token in [old, signed_in, renewed] {
            let outcome = ws.store.rotate_session(token, session([99; 32])).await.unwrap();
            assert_eq!(outcome, Rotation::Invalid, "round {round}");
        }
        assert!(!ws.store.open_session(ws.user, epoch, session(signed_in)).await.unwrap());
    }
}
