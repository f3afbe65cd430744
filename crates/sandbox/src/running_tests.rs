use std::{sync::Arc, time::Duration};

use rustix::net::SocketFlags;

use super::{Running, Streams};
use crate::{
    Enforced, Enforcer, Exit, Limits, Stdin,
    sandbox::Launcher,
    wire::{self, Ending, Event},
};

/// A job whose launcher is this test, and the launcher's end of it.
fn job() -> (Running, std::os::fd::OwnedFd) {
    let (ours, theirs) = wire::pair(SocketFlags::NONBLOCK).unwrap();
    let (control, _) = wire::pair(SocketFlags::NONBLOCK).unwrap();
    // The ends of the pipes that belong to the job are dropped: it prints nothing.
    let (streams, _) = Streams::open(true).unwrap();
    let launcher = Arc::new(Launcher::new(control).unwrap());
    (Running::new(ours, streams, &Limits::default(), launcher).unwrap(), theirs)
}

fn ended(code: i32) -> Event {
    let enforced_by = Enforced { memory: Enforcer::Watchdog, processes: Enforcer::Rlimit, disk: Enforcer::Watchdog };
    Event::Ended(Ending { exit: Exit::Code(code), limit_hit: None, cpu: Duration::ZERO, enforced_by })
}

#[tokio::test]
async fn how_a_job_ended_is_known_though_the_launcher_has_not_read_all() {
    let (mut running, launcher) = job();
    running.begin(&Limits::default(), Vec::new(), Stdin::Empty).unwrap();
    wire::send(&launcher, &ended(3), &[]).unwrap();
    drop(launcher);
    assert_eq!(running.wait().await.unwrap().exit, Exit::Code(3));
}

#[tokio::test]
async fn a_job_that_is_over_before_it_is_told_to_begin_has_ended_all_the_same() {
    let (mut running, launcher) = job();
    wire::send(&launcher, &ended(0), &[]).unwrap();
    drop(launcher);
    running.begin(&Limits::default(), Vec::new(), Stdin::Empty).unwrap();
    assert_eq!(running.wait().await.unwrap().exit, Exit::Code(0));
}

#[tokio::test]
async fn a_job_whose_launcher_went_away_without_a_word_is_lost() {
    let (mut running, launcher) = job();
    running.begin(&Limits::default(), Vec::new(), Stdin::Empty).unwrap();
    drop(launcher);
    assert!(matches!(running.wait().await, Err(crate::Error::LauncherGone)));
}
