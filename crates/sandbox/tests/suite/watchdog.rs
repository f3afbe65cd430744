//! Attempts to blind or slow down PID 1, which enforces the limits of a job.

use std::{fs, os::unix::process::CommandExt, time::Duration};

use rustix::process::Pid;
use toolrest_sandbox::{Error, Job, Limit, Limits, Step};

use crate::fixture::{Fixture, PYTHON, limits, marker, parent, program_named, user_of};

#[tokio::test]
async fn the_limits_of_pid_1_cannot_be_set() {
    let code = "old = ctypes.create_string_buffer(16); new = (ctypes.c_uint64 * 2)(3, 3)\n\
                print(*[call(302, pid, 7, new, None) for pid in (1, -1, os.getpid())])\n\
                print(call(302, 1, 7, None, old), call(302, 0, 7, None, old), call(302, 0, 4, (ctypes.c_uint64 * 2)(0, 0), None))";
    assert_eq!(Fixture::new().python_output(code).await, "EPERM EPERM EPERM\nok ok ok");
}

#[tokio::test]
async fn the_priority_of_pid_1_cannot_be_changed() {
    let code = "one = (ctypes.c_uint64 * 8)(1); zero = (ctypes.c_uint64 * 8)(); attributes = (ctypes.c_uint32 * 12)(48, 3)\n\
                print('affinity', call(203, 1, 8, one), call(203, 0, 8, one), call(203, os.getpid(), 8, one))\n\
                print('scheduler', call(144, 1, 5, zero), call(144, 0, 3, zero), call(144, os.getpid(), 3, zero))\n\
                print('parameters', call(142, 1, zero), call(142, 0, zero), call(142, os.getpid(), zero))\n\
                print('attributes', call(314, 1, attributes, 0), call(314, 0, attributes, 0), call(314, os.getpid(), attributes, 0))\n\
                print('priority', call(141, 0, 1, 19), call(141, 0, 0, 1), call(141, 0, os.getpid(), 1))\n\
                print('user', call(141, 2, 0, 19), call(141, 1, 0, 1), 'ok')\n\
                print('io', call(251, 1, 1, 3 << 13), call(251, 1, 0, 3 << 13), call(251, 1, os.getpid(), 3 << 13))\n\
                print('io-user', call(251, 3, os.getuid(), 3 << 13), 'ok ok')";
    for line in Fixture::new().python_output(code).await.lines() {
        assert!(line.ends_with(" EPERM ok ok"), "{line}");
    }
}

#[tokio::test]
async fn lowering_the_limits_of_pid_1_does_not_disable_the_disk_limit() {
    let code = "call(302, 1, 7, (ctypes.c_uint64 * 2)(3, 3), None)\n\
                for i in range(100): open(f'f{i}', 'wb').write(bytes(60 << 20))";
    let report = Fixture::new().python(code).await;
    assert_eq!(report.limit_hit, Some(Limit::Disk), "{report:?}");
}

#[tokio::test]
async fn a_job_ends_when_its_watchdog_cannot_measure() {
    let fixture = Fixture::new();
    let marker = marker("blind");
    let code = format!("exec -a {marker} sleep 100");
    let running = fixture.sandbox.spawn(Job::new(fixture.spec(), ["bash", "-c", &code])).await.unwrap();
    let program = program_named(&marker).await;
    let watchdog = parent(Pid::from_raw(program.cast_signed()).unwrap()).as_raw_nonzero();
    // Run as the job's user, so that no capability is needed.
    let set = format!("import resource; resource.prlimit({watchdog}, resource.RLIMIT_NOFILE, (3, 3))");
    let user = user_of(program);
    #[allow(clippy::disallowed_methods, reason = "the process limits the watchdog from outside")]
    let status =
        std::process::Command::new(PYTHON).args(["-c", &set]).uid(user).gid(user).current_dir("/").status().unwrap();
    assert!(status.success());
    let error = tokio::time::timeout(Duration::from_secs(10), running.wait()).await.unwrap().unwrap_err();
    let Error::Unwatched(failure) = &error else { panic!("{error}") };
    assert_eq!(failure.step, Step::Watch);
    assert!(error.to_string().contains("its limits could not be watched: reading the use of "), "{error}");
}

#[tokio::test]
async fn a_process_that_cannot_be_inspected_ends_its_job() {
    let fixture = Fixture::new();
    let code = "cp $(readlink -f /usr/bin/python3) p; chmod 111 p; exec ./p -c 'import time; time.sleep(100)'";
    let running = fixture.sandbox.spawn(Job::new(fixture.spec(), ["bash", "-c", code])).await.unwrap();
    match tokio::time::timeout(Duration::from_secs(15), running.wait()).await.unwrap() {
        Err(Error::Unwatched(failure)) => assert_eq!(failure.subject, "descriptors"),
        // Other tests fill the disk at the same time. Lost space is charged to a process that cannot be inspected.
        ended => assert_eq!(ended.unwrap().limit_hit, Some(Limit::Disk)),
    }
}

#[tokio::test]
async fn deleted_files_of_an_undumpable_process_count() {
    let code = "import time\nlibc.prctl(4, 0, 0, 0, 0)\nfiles = []\nfor i in range(20):\n    \
                f = open('f', 'wb'); f.write(bytes(50 << 20)); f.flush(); os.fsync(f.fileno())\n    \
                os.unlink('f'); files.append(f)\ntime.sleep(5)";
    let report = Fixture::new().python(code).await;
    assert_eq!(report.limit_hit, Some(Limit::Disk), "{report:?}");
}

#[tokio::test]
async fn signals_and_exits_do_not_block_the_watchdog() {
    let code = "import signal, time\nfor i in range(6):\n    if os.fork() == 0:\n        while True:\n            \
                if i < 3: os.kill(1, signal.SIGCHLD)\n            \
                elif os.fork() == 0:\n                if os.fork() == 0: os._exit(0)\n                os._exit(0)\n            \
                else: os.wait()\n\
                for i in range(100): open(f'f{i}', 'wb').write(bytes(60 << 20))";
    let fixture = Fixture::new();
    let report =
        fixture.python_in(fixture.spec().limits(Limits { cpu: Duration::from_secs(60), ..limits() }), code).await;
    assert_eq!(report.limit_hit, Some(Limit::Disk), "{report:?}");
    let size: u64 = fs::read_dir(fixture.folder()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(size < limits().disk_bytes + (1 << 30), "{size}");
}
