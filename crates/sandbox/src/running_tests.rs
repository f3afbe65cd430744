use std::{sync::Arc, time::Duration};

use rustix::net::SocketFlags;

use super::{RunningJob, Streams};
use crate::{
    Enforcer, Exit, LimitEnforcers, Limits, Stdin,
    sandbox::Launcher,
    wire::{self, Event, JobEnd},
};

/// Returns a job whose launcher is this test, and the launcher's socket.
fn job() -> (RunningJob, std::os::fd::OwnedFd) {
    let (ours, theirs) = wire::pair(SocketFlags::NONBLOCK).unwrap();
    let (control, _) = wire::pair(SocketFlags::NONBLOCK).unwrap();
    // The job's ends of the pipes are dropped, so it prints nothing.
    let (streams, _) = Streams::open(true).unwrap();
    let launcher = Arc::new(Launcher::new(control).unwrap());
    (RunningJob::new(ours, streams, &Limits::default(), launcher).unwrap(), theirs)
}

fn ended(code: i32) -> Event {
    let enforced_by =
        LimitEnforcers { memory: Enforcer::Watchdog, processes: Enforcer::Rlimit, disk: Enforcer::Watchdog };
    Event::Ended(JobEnd { exit: Exit::Code(code), limit_hit: None, cpu: Duration::ZERO, enforced_by })
}

#[tokio::test]
async fn the_result_is_received_although_the_launcher_left_messages_unread() {
    let (mut running, launcher) = job();
    running.send_script(&Limits::default(), Vec::new(), Stdin::Empty).unwrap();
    wire::send(&launcher, &ended(3), &[]).unwrap();
    drop(launcher);
    assert_eq!(running.wait().await.unwrap().exit, Exit::Code(3));
}

#[tokio::test]
async fn a_job_that_ended_before_its_script_was_sent_reports_its_result() {
    let (mut running, launcher) = job();
    wire::send(&launcher, &ended(0), &[]).unwrap();
    drop(launcher);
    running.send_script(&Limits::default(), Vec::new(), Stdin::Empty).unwrap();
    assert_eq!(running.wait().await.unwrap().exit, Exit::Code(0));
}

#[tokio::test]
async fn a_job_whose_launcher_disappears_fails() {
    let (mut running, launcher) = job();
    running.send_script(&Limits::default(), Vec::new(), Stdin::Empty).unwrap();
    drop(launcher);
    assert!(matches!(running.wait().await, Err(crate::Error::LauncherGone)));
}
