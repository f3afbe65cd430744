//! Sessions and attempts, where replicas meet in the database.

use crate::room::{Room, on_both_stores};
use std::time::Duration;
use tokio::task::JoinSet;
use toolrest_core::now;
use toolrest_store::{Attempt, Rotation, Session};

on_both_stores!(
    of_many_who_present_one_token_one_gets_through_and_the_session_ends,
    an_expired_token_is_no_reuse,
    attempts_are_counted_before_they_are_judged,
    a_secret_is_made_once,
    a_session_does_not_outlive_its_end,
    no_session_outlives_the_order_to_end_them_all,
);

fn session(token: u8) -> Session {
    Session { token_hash: [token; 32], expires_at: now().checked_add(Duration::from_secs(60)).unwrap() }
}

async fn of_many_who_present_one_token_one_gets_through_and_the_session_ends(room: Room) {
    room.store.open_session(room.user, 0, session(0)).await.unwrap();
    let mut tasks = JoinSet::new();
    for thief in 1..=10 {
        let room = room.clone();
        tasks.spawn(async move { room.store.rotate_session([0; 32], session(thief)).await.unwrap() });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Rotation::Rotated(room.user)).count(), 1, "{outcomes:?}");
    assert!(outcomes.contains(&Rotation::Reused), "{outcomes:?}");
    for token in 0..=10 {
        let outcome = room.store.rotate_session([token; 32], session(99)).await.unwrap();
        assert_eq!(outcome, Rotation::Invalid, "token {token} of the ended session");
    }
}

async fn an_expired_token_is_no_reuse(room: Room) {
    let expires_at = now().checked_sub(Duration::from_secs(1)).unwrap();
    room.store.open_session(room.user, 0, Session { token_hash: [1; 32], expires_at }).await.unwrap();
    assert_eq!(room.store.rotate_session([1; 32], session(2)).await.unwrap(), Rotation::Invalid);
    assert_eq!(room.store.rotate_session([2; 32], session(3)).await.unwrap(), Rotation::Invalid);
}

async fn attempts_are_counted_before_they_are_judged(room: Room) {
    let window = Duration::from_secs(60);
    let attempt = || vec![Attempt { key: "account:x".into(), limit: 3 }];
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let room = room.clone();
        tasks.spawn(async move { room.store.count_attempts(attempt(), window).await.unwrap() });
    }
    let waits = tasks.join_all().await;
    assert_eq!(waits.iter().filter(|wait| wait.is_none()).count(), 3, "{waits:?}");
    assert!(waits.iter().flatten().all(|wait| *wait <= window));
    for _ in 0..8 {
        room.store.forgive_attempts(vec!["account:x".into()]).await.unwrap();
    }
    assert_eq!(room.store.count_attempts(attempt(), window).await.unwrap(), None);
    assert_eq!(room.store.count_attempts(attempt(), Duration::ZERO).await.unwrap(), None, "a new window begins");
}

async fn a_secret_is_made_once(room: Room) {
    assert_eq!(room.store.secret("jwt", "first").await.unwrap(), "first");
    assert_eq!(room.store.secret("jwt", "second").await.unwrap(), "first");
}

async fn a_session_does_not_outlive_its_end(room: Room) {
    for turn in 0..20_u8 {
        let (first, second) = (turn * 2, turn * 2 + 1);
        room.store.open_session(room.user, 0, session(first)).await.unwrap();
        let (rotated, closed) = tokio::join!(
            room.store.rotate_session([first; 32], session(second)),
            room.store.close_session([first; 32])
        );
        rotated.unwrap();
        assert!(closed.unwrap());
        assert_eq!(room.store.rotate_session([second; 32], session(99)).await.unwrap(), Rotation::Invalid);
    }
}

async fn no_session_outlives_the_order_to_end_them_all(room: Room) {
    for round in 0..20_u8 {
        let epoch = i64::from(round);
        let (old, signed_in, renewed) = ([round; 32], [100 + round; 32], [200 + round; 32]);
        let session = |token_hash| Session { token_hash, ..session(0) };
        assert!(room.store.open_session(room.user, epoch, session(old)).await.unwrap());
        // A sign-in whose password was right before, and a session that is renewed, at the same moment.
        let (ended, _, _) = tokio::join!(
            room.store.end_sessions(room.user),
            room.store.open_session(room.user, epoch, session(signed_in)),
            room.store.rotate_session(old, session(renewed)),
        );
        ended.unwrap();
        for token in [old, signed_in, renewed] {
            let outcome = room.store.rotate_session(token, session([99; 32])).await.unwrap();
            assert_eq!(outcome, Rotation::Invalid, "round {round}");
        }
        assert!(!room.store.open_session(room.user, epoch, session(signed_in)).await.unwrap());
    }
}
