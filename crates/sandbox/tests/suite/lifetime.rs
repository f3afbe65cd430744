//! Jobs end with all their processes.

use std::{fs, path::PathBuf, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use toolrest_sandbox::{Enforcer, Error, Exit, Job, Limit, Limits, Options, Sandbox, Stdin};

use crate::fixture::{Fixture, limits, marker, options, parent, processes_with, program_named, until};

async fn timed_out(fixture: &Fixture, code: &str) {
    let spec = fixture.spec().limits(Limits { wall: Duration::from_millis(500), ..limits() });
    let report = fixture.run(Job::new(spec, ["bash", "-c", code])).await;
    assert_eq!((report.exit, report.limit_hit), (Exit::Signal(9), Some(Limit::Time)), "{code}");
    assert!(report.duration >= Duration::from_millis(490), "{:?}", report.duration);
    assert!(report.duration < Duration::from_secs(5), "{:?}", report.duration);
}

#[tokio::test]
async fn every_job_ends_at_its_time_limit() {
    let fixture = Fixture::new();
    timed_out(&fixture, "trap '' TERM INT HUP QUIT; while :; do sleep 1; done").await;
    timed_out(&fixture, "kill -STOP $$; sleep 100").await;
    timed_out(&fixture, "while :; do :; done").await;
}

#[tokio::test]
async fn a_daemon_ends_with_its_program() {
    let fixture = Fixture::new();
    let marker = marker("daemon");
    let code = format!("setsid -f bash -c 'exec -a {marker} sleep 100' >/dev/null 2>&1; (sleep 0.05); echo done");
    let report = fixture.bash(&code).await;
    assert_eq!((report.exit, report.stdout.text().as_str()), (Exit::Code(0), "done\n"));
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
    assert!(report.duration < Duration::from_secs(5), "{:?}", report.duration);
}

#[tokio::test]
async fn a_daemon_with_open_output_does_not_delay_the_result() {
    let report = Fixture::new().bash("setsid sleep 100 & echo done").await;
    assert_eq!(report.stdout.text(), "done\n");
    assert!(report.duration < Duration::from_secs(5), "{:?}", report.duration);
}

#[tokio::test]
async fn a_daemon_ends_at_the_time_limit() {
    let fixture = Fixture::new();
    let marker = marker("late");
    timed_out(&fixture, &format!("(setsid bash -c 'exec -a {marker} sleep 100' &) ; exec -a {marker} sleep 100")).await;
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
}

#[tokio::test]
async fn a_job_ends_when_it_is_killed() {
    let fixture = Fixture::new();
    let mut running =
        fixture.sandbox.spawn(Job::new(fixture.spec(), ["bash", "-c", "echo up; sleep 100"])).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"up\n");
    running.kill();
    let report = running.wait().await.unwrap();
    assert_eq!((report.exit, report.limit_hit), (Exit::Signal(9), None));
}

#[tokio::test]
async fn a_job_ends_when_its_handle_is_dropped() {
    let fixture = Fixture::new();
    let marker = marker("dropped");
    let code = format!("echo up; exec -a {marker} sleep 100");
    let mut running = fixture.sandbox.spawn(Job::new(fixture.spec(), ["bash", "-c", &code])).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"up\n");
    drop(running);
    until("the job's end", || processes_with(&marker).is_empty()).await;
}

#[tokio::test]
async fn jobs_die_with_the_launcher_and_the_next_job_starts_a_new_one() {
    let fixture = Fixture::new();
    let marker = marker("orphan");
    let code = format!("echo up; exec -a {marker} sleep 100");
    let mut running = fixture.sandbox.spawn(Job::new(fixture.spec(), ["bash", "-c", &code])).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"up\n");
    let program = program_named(&marker).await;
    kill_process(parent(parent(Pid::from_raw(program.cast_signed()).unwrap())), Signal::KILL).unwrap();
    assert!(matches!(running.wait().await, Err(Error::LauncherGone)));
    until("the job's end", || processes_with(&marker).is_empty()).await;
    assert_eq!(fixture.bash("echo again").await.stdout.text(), "again\n");
}

#[tokio::test]
async fn no_processes_are_left_after_many_jobs() {
    let fixture = Fixture::new();
    let marker = marker("first");
    let code = format!("echo up; exec -a {marker} sleep 100");
    let mut running = fixture.sandbox.spawn(Job::new(fixture.spec(), ["bash", "-c", &code])).await.unwrap();
    running.next().await.unwrap();
    let program = program_named(&marker).await;
    let launcher = parent(parent(Pid::from_raw(program.cast_signed()).unwrap())).as_raw_nonzero();
    drop(running);
    for number in 0..40 {
        let job = Job::new(fixture.spec(), ["bash", "-c", "sleep 0 & setsid sleep 100 & true"]);
        let mut running = fixture.sandbox.spawn(job).await.unwrap();
        match number % 4 {
            // Dropped before the start, killed while running, and after the end.
            0 => drop(running),
            1 => running.kill(),
            2 => assert!(running.next().await.is_none()),
            _ => assert!(running.wait().await.unwrap().success()),
        }
    }
    let cells = || {
        let children = fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).unwrap_or_default();
        children.split_whitespace().count()
    };
    let ready = fixture.sandbox.options().ready_cells;
    until("only the cells that wait to be left", || cells() <= ready).await;
    drop(fixture);
    until("the launcher's end", || !fs::exists(format!("/proc/{launcher}")).unwrap()).await;
}

#[tokio::test]
async fn jobs_die_with_the_server() {
    let fixture = Fixture::new();
    let marker = marker("server");
    if std::env::var_os("TOOLREST_SERVER_STAND_IN").is_some() {
        // In the child process started below: runs a job until it is killed.
        let code = format!("exec -a {} sleep 100", std::env::var("TOOLREST_SERVER_STAND_IN").unwrap());
        let running = fixture.sandbox.spawn(Job::new(fixture.spec(), ["bash", "-c", &code])).await.unwrap();
        running.wait().await.unwrap();
        return;
    }
    #[allow(clippy::disallowed_methods, reason = "the child process represents a server")]
    let mut stand_in = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lifetime::jobs_die_with_the_server", "--nocapture"])
        .env("TOOLREST_SERVER_STAND_IN", &marker)
        // The child process is killed, so this test removes its temporary files.
        .env("TMPDIR", fixture.home.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the job's start", || !processes_with(&marker).is_empty()).await;
    stand_in.kill().unwrap();
    stand_in.wait().unwrap();
    until("the job's end", || processes_with(&marker).is_empty()).await;
}

/// Returns the control groups of a launcher.
fn groups_of(launcher: Pid) -> Vec<PathBuf> {
    let name = format!("toolrest-{}-0", launcher.as_raw_nonzero());
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name() == *name {
                found.push(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    found
}

async fn launcher_of(marker: &str) -> Pid {
    parent(parent(Pid::from_raw(program_named(marker).await.cast_signed()).unwrap()))
}

#[tokio::test]
async fn no_control_groups_are_left_after_the_server_ends() {
    let marker = marker("groups");
    if let Some(marker) = std::env::var_os("TOOLREST_SERVER_STAND_IN") {
        // In the child process started below: runs a job, and exits after it.
        let fixture = Fixture::new();
        let code = format!("exec -a {} sleep 100", marker.display());
        fixture.bash(&code).await;
        std::process::exit(0);
    }
    for (number, deed) in ["kill", "end"].into_iter().enumerate() {
        let marker = format!("{marker}-{number}");
        let home = tempfile::tempdir().unwrap();
        #[allow(clippy::disallowed_methods, reason = "the child process represents a server")]
        let mut stand_in = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lifetime::no_control_groups_are_left_after_the_server_ends", "--nocapture"])
            .env("TOOLREST_SERVER_STAND_IN", &marker)
            .env("TMPDIR", home.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let launcher = launcher_of(&marker).await;
        let groups = groups_of(launcher);
        // Without control groups there is nothing to check.
        assert!(!groups.is_empty() || has_no_control_groups().await);
        match deed {
            "kill" => stand_in.kill().unwrap(),
            _ => kill_process(
                Pid::from_raw(processes_with(&format!("{marker}\0"))[0].cast_signed()).unwrap(),
                Signal::KILL,
            )
            .unwrap(),
        }
        stand_in.wait().unwrap();
        until("the groups to be gone", || groups.iter().all(|group| !group.exists())).await;
    }
}

async fn has_no_control_groups() -> bool {
    let by = Fixture::new().bash("true").await.enforced_by;
    by.memory == Enforcer::Watchdog
}

#[tokio::test]
async fn control_groups_of_a_killed_launcher_are_removed_by_the_next() {
    let fixture = Fixture::new();
    let marker = marker("swept");
    let code = format!("echo up; exec -a {marker} sleep 100");
    let mut running = fixture.sandbox.spawn(Job::new(fixture.spec(), ["bash", "-c", &code])).await.unwrap();
    running.next().await.unwrap();
    let launcher = launcher_of(&marker).await;
    let groups = groups_of(launcher);
    kill_process(launcher, Signal::KILL).unwrap();
    assert!(matches!(running.wait().await, Err(Error::LauncherGone)));
    until("the job's end", || processes_with(&marker).is_empty()).await;
    let next = Fixture::new();
    assert!(next.bash("true").await.success());
    until("the groups to be gone", || groups.iter().all(|group| !group.exists())).await;
}

#[tokio::test]
async fn a_launcher_ignores_termination_signals() {
    let fixture = Fixture::new();
    let marker = marker("asked");
    let code = format!("echo up; exec -a {marker} sleep 1");
    let mut running = fixture.sandbox.spawn(Job::new(fixture.spec(), ["bash", "-c", &code])).await.unwrap();
    running.next().await.unwrap();
    let launcher = launcher_of(&marker).await;
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        kill_process(launcher, signal).unwrap();
    }
    assert!(running.wait().await.unwrap().success());
}

#[tokio::test]
async fn abort_leaves_no_core_file() {
    let fixture = Fixture::new();
    let report = fixture.python("os.abort()").await;
    assert_eq!(report.exit, Exit::Signal(6));
    assert_eq!(fs::read_dir(fixture.folder()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_program_that_waits_for_input_ends() {
    let fixture = Fixture::new();
    let report = fixture.bash("cat; echo ended").await;
    assert_eq!(report.stdout.text(), "ended\n");
    let spec = fixture.spec().limits(Limits { wall: Duration::from_millis(300), ..limits() });
    let running = fixture.sandbox.spawn(Job::new(spec, ["cat"]).stdin(Stdin::Open)).await.unwrap();
    assert_eq!(running.wait().await.unwrap().limit_hit, Some(Limit::Time));
}

#[tokio::test]
async fn a_job_whose_cell_died_early_runs_in_another() {
    let fixture = Fixture::new();
    let launcher = fixture.home.path().join("launcher-of-its-own");
    fs::copy(options().program, &launcher).unwrap();
    let sandbox = Sandbox::start(Options { program: launcher.clone(), ..options() }).unwrap();
    for _ in 0..20 {
        let cells = || {
            let mut family = processes_with(launcher.to_str().unwrap());
            family.sort_unstable();
            // The launcher has the lowest PID.
            family.into_iter().skip(1).collect::<Vec<u32>>()
        };
        until("cells to wait", || cells().len() >= 2).await;
        let killed = cells();
        for cell in &killed {
            // The prepared process of a cell may have died with its cell already.
            let _ = kill_process(Pid::from_raw(cell.cast_signed()).unwrap(), Signal::KILL);
        }
        until("their end", || cells().iter().all(|cell| !killed.contains(cell))).await;
        let report = sandbox.spawn(Job::new(fixture.spec(), ["echo", "ok"])).await.unwrap().wait().await.unwrap();
        assert_eq!(report.stdout.text(), "ok\n");
    }
}
