//! Jobs end when they should, whole.

use std::{fs, path::PathBuf, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use toolrest_sandbox::{Enforcer, Error, Exit, Job, Limit, Limits, Options, Sandbox, Stdin};

use crate::scene::{Scene, limits, mark, options, parent, processes_with, program_named, until};

async fn timed_out(scene: &Scene, code: &str) {
    let place = scene.place().limits(Limits { wall: Duration::from_millis(500), ..limits() });
    let report = scene.run(Job::new(place, ["bash", "-c", code])).await;
    assert_eq!((report.exit, report.limit_hit), (Exit::Signal(9), Some(Limit::Time)), "{code}");
    assert!(report.duration >= Duration::from_millis(490), "{:?}", report.duration);
    assert!(report.duration < Duration::from_secs(5), "{:?}", report.duration);
}

#[tokio::test]
async fn nothing_can_refuse_to_end() {
    let scene = Scene::new();
    timed_out(&scene, "trap '' TERM INT HUP QUIT; while :; do sleep 1; done").await;
    timed_out(&scene, "kill -STOP $$; sleep 100").await;
    timed_out(&scene, "while :; do :; done").await;
}

#[tokio::test]
async fn a_daemon_ends_with_its_program() {
    let scene = Scene::new();
    let mark = mark("daemon");
    let code = format!("setsid -f bash -c 'exec -a {mark} sleep 100' >/dev/null 2>&1; (sleep 0.05); echo done");
    let report = scene.bash(&code).await;
    assert_eq!((report.exit, report.stdout.text().as_str()), (Exit::Code(0), "done\n"));
    assert_eq!(processes_with(&mark), Vec::<u32>::new());
    assert!(report.duration < Duration::from_secs(5), "{:?}", report.duration);
}

#[tokio::test]
async fn a_daemon_that_holds_the_output_open_holds_nobody_up() {
    let report = Scene::new().bash("setsid sleep 100 & echo done").await;
    assert_eq!(report.stdout.text(), "done\n");
    assert!(report.duration < Duration::from_secs(5), "{:?}", report.duration);
}

#[tokio::test]
async fn a_daemon_ends_when_time_is_up() {
    let scene = Scene::new();
    let mark = mark("late");
    timed_out(&scene, &format!("(setsid bash -c 'exec -a {mark} sleep 100' &) ; exec -a {mark} sleep 100")).await;
    assert_eq!(processes_with(&mark), Vec::<u32>::new());
}

#[tokio::test]
async fn a_job_ends_when_it_is_killed() {
    let scene = Scene::new();
    let mut running = scene.sandbox.spawn(Job::new(scene.place(), ["bash", "-c", "echo up; sleep 100"])).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"up\n");
    running.kill();
    let report = running.wait().await.unwrap();
    assert_eq!((report.exit, report.limit_hit), (Exit::Signal(9), None));
}

#[tokio::test]
async fn a_job_ends_when_nobody_cares_for_it_any_more() {
    let scene = Scene::new();
    let mark = mark("dropped");
    let code = format!("echo up; exec -a {mark} sleep 100");
    let mut running = scene.sandbox.spawn(Job::new(scene.place(), ["bash", "-c", &code])).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"up\n");
    drop(running);
    until("the job's end", || processes_with(&mark).is_empty()).await;
}

#[tokio::test]
async fn jobs_die_with_the_launcher_and_the_next_one_gets_another() {
    let scene = Scene::new();
    let mark = mark("orphan");
    let code = format!("echo up; exec -a {mark} sleep 100");
    let mut running = scene.sandbox.spawn(Job::new(scene.place(), ["bash", "-c", &code])).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"up\n");
    let program = program_named(&mark).await;
    kill_process(parent(parent(Pid::from_raw(program.cast_signed()).unwrap())), Signal::KILL).unwrap();
    assert!(matches!(running.wait().await, Err(Error::LauncherGone)));
    until("the job's end", || processes_with(&mark).is_empty()).await;
    assert_eq!(scene.bash("echo again").await.stdout.text(), "again\n");
}

#[tokio::test]
async fn nothing_is_left_of_many_jobs_and_nothing_at_all_of_the_sandbox() {
    let scene = Scene::new();
    let mark = mark("first");
    let code = format!("echo up; exec -a {mark} sleep 100");
    let mut running = scene.sandbox.spawn(Job::new(scene.place(), ["bash", "-c", &code])).await.unwrap();
    running.next().await.unwrap();
    let program = program_named(&mark).await;
    let launcher = parent(parent(Pid::from_raw(program.cast_signed()).unwrap())).as_raw_nonzero();
    drop(running);
    for number in 0..40 {
        let job = Job::new(scene.place(), ["bash", "-c", "sleep 0 & setsid sleep 100 & true"]);
        let mut running = scene.sandbox.spawn(job).await.unwrap();
        match number % 4 {
            // Before it has begun, while it ends, and when it has ended.
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
    let ready = scene.sandbox.options().ready_cells;
    until("only the cells that wait to be left", || cells() <= ready).await;
    drop(scene);
    until("the launcher's end", || !fs::exists(format!("/proc/{launcher}")).unwrap()).await;
}

#[tokio::test]
async fn jobs_die_with_the_server() {
    let scene = Scene::new();
    let mark = mark("server");
    if std::env::var_os("TOOLREST_SERVER_STAND_IN").is_some() {
        // Started below: runs a job and waits to be killed.
        let code = format!("exec -a {} sleep 100", std::env::var("TOOLREST_SERVER_STAND_IN").unwrap());
        let running = scene.sandbox.spawn(Job::new(scene.place(), ["bash", "-c", &code])).await.unwrap();
        running.wait().await.unwrap();
        return;
    }
    #[allow(clippy::disallowed_methods, reason = "stands for a server that is killed")]
    let mut stand_in = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lifetime::jobs_die_with_the_server", "--nocapture"])
        .env("TOOLREST_SERVER_STAND_IN", &mark)
        // Nobody removes what it leaves, but us.
        .env("TMPDIR", scene.home.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the job's start", || !processes_with(&mark).is_empty()).await;
    stand_in.kill().unwrap();
    stand_in.wait().unwrap();
    until("the job's end", || processes_with(&mark).is_empty()).await;
}

/// Control groups of a launcher.
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

async fn launcher_of(mark: &str) -> Pid {
    parent(parent(Pid::from_raw(program_named(mark).await.cast_signed()).unwrap()))
}

#[tokio::test]
async fn no_control_group_is_left_by_a_server_that_ends_or_is_killed() {
    let mark = mark("groups");
    if let Some(mark) = std::env::var_os("TOOLREST_SERVER_STAND_IN") {
        // Started below: runs a job, and ends when it has ended.
        let scene = Scene::new();
        let code = format!("exec -a {} sleep 100", mark.display());
        scene.bash(&code).await;
        std::process::exit(0);
    }
    for (number, deed) in ["kill", "end"].into_iter().enumerate() {
        let mark = format!("{mark}-{number}");
        let home = tempfile::tempdir().unwrap();
        #[allow(clippy::disallowed_methods, reason = "stands for a server that is killed")]
        let mut stand_in = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lifetime::no_control_group_is_left_by_a_server_that_ends_or_is_killed", "--nocapture"])
            .env("TOOLREST_SERVER_STAND_IN", &mark)
            .env("TMPDIR", home.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let launcher = launcher_of(&mark).await;
        let groups = groups_of(launcher);
        // Where there are none, nothing can be left.
        assert!(!groups.is_empty() || scene_has_no_groups().await);
        match deed {
            "kill" => stand_in.kill().unwrap(),
            _ => kill_process(
                Pid::from_raw(processes_with(&format!("{mark}\0"))[0].cast_signed()).unwrap(),
                Signal::KILL,
            )
            .unwrap(),
        }
        stand_in.wait().unwrap();
        until("the groups to be gone", || groups.iter().all(|group| !group.exists())).await;
    }
}

async fn scene_has_no_groups() -> bool {
    let by = Scene::new().bash("true").await.enforced_by;
    by.memory == Enforcer::Watchdog
}

#[tokio::test]
async fn what_a_killed_launcher_leaves_is_swept_by_the_next_one() {
    let scene = Scene::new();
    let mark = mark("swept");
    let code = format!("echo up; exec -a {mark} sleep 100");
    let mut running = scene.sandbox.spawn(Job::new(scene.place(), ["bash", "-c", &code])).await.unwrap();
    running.next().await.unwrap();
    let launcher = launcher_of(&mark).await;
    let groups = groups_of(launcher);
    kill_process(launcher, Signal::KILL).unwrap();
    assert!(matches!(running.wait().await, Err(Error::LauncherGone)));
    until("the job's end", || processes_with(&mark).is_empty()).await;
    let next = Scene::new();
    assert!(next.bash("true").await.success());
    until("the groups to be gone", || groups.iter().all(|group| !group.exists())).await;
}

#[tokio::test]
async fn a_launcher_does_not_end_by_a_signal_that_is_meant_for_the_server() {
    let scene = Scene::new();
    let mark = mark("asked");
    let code = format!("echo up; exec -a {mark} sleep 1");
    let mut running = scene.sandbox.spawn(Job::new(scene.place(), ["bash", "-c", &code])).await.unwrap();
    running.next().await.unwrap();
    let launcher = launcher_of(&mark).await;
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        kill_process(launcher, signal).unwrap();
    }
    assert!(running.wait().await.unwrap().success());
}

#[tokio::test]
async fn abort_leaves_no_core() {
    let scene = Scene::new();
    let report = scene.python("os.abort()").await;
    assert_eq!(report.exit, Exit::Signal(6));
    assert_eq!(fs::read_dir(scene.folder()).unwrap().count(), 0);
}

#[tokio::test]
async fn waiting_for_input_that_does_not_come_ends() {
    let scene = Scene::new();
    let report = scene.bash("cat; echo ended").await;
    assert_eq!(report.stdout.text(), "ended\n");
    let place = scene.place().limits(Limits { wall: Duration::from_millis(300), ..limits() });
    let running = scene.sandbox.spawn(Job::new(place, ["cat"]).stdin(Stdin::Open)).await.unwrap();
    assert_eq!(running.wait().await.unwrap().limit_hit, Some(Limit::Time));
}

#[tokio::test]
async fn a_job_whose_cell_has_died_before_it_goes_to_another() {
    let scene = Scene::new();
    let launcher = scene.home.path().join("launcher-of-its-own");
    fs::copy(options().program, &launcher).unwrap();
    let sandbox = Sandbox::start(Options { program: launcher.clone(), ..options() }).unwrap();
    for _ in 0..20 {
        let cells = || {
            let mut family = processes_with(launcher.to_str().unwrap());
            family.sort_unstable();
            // The launcher itself came first.
            family.into_iter().skip(1).collect::<Vec<u32>>()
        };
        until("cells to wait", || cells().len() >= 2).await;
        let killed = cells();
        for cell in &killed {
            // What waits in a cell may have died with it already.
            let _ = kill_process(Pid::from_raw(cell.cast_signed()).unwrap(), Signal::KILL);
        }
        until("their end", || cells().iter().all(|cell| !killed.contains(cell))).await;
        let report = sandbox.spawn(Job::new(scene.place(), ["echo", "ok"])).await.unwrap().wait().await.unwrap();
        assert_eq!(report.stdout.text(), "ok\n");
    }
}
