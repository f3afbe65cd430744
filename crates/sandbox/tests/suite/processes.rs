//! Processes that a job must not see, signal or inspect.

use std::{env, ffi::OsString, process};

use crate::fixture::Fixture;

#[tokio::test]
async fn no_process_has_the_servers_environment() {
    // The environment of the test represents the server's.
    let fixture = Fixture::new();
    let shared: Vec<OsString> = fixture.spec().env.into_iter().map(|(name, _)| name).collect();
    let secrets = env::vars_os().filter(|(name, value)| !shared.contains(name) && value.len() > 3);
    let secrets: Vec<String> = secrets.map(|(name, _)| format!("{}=", name.display())).collect();
    assert!(!secrets.is_empty());
    let code = format!(
        "found = {{}}\nfor pid in os.listdir('/proc'):\n    if pid.isdigit(): \
         found[pid] = open(f'/proc/{{pid}}/environ', 'rb').read().decode()\n\
         print(len(found), [s for s in {secrets:?} if any(s in text for text in found.values())])\n\
         print(attempt(lambda: open('/proc/1/environ')))"
    );
    assert_eq!(fixture.python_output(&code).await, "1 []\nENOENT");
}

#[tokio::test]
async fn only_own_processes_are_visible() {
    let output = Fixture::new()
        .python_output(
            "print([pid for pid in os.listdir('/proc') if pid.isdigit()] == [str(os.getpid())], os.getpid() < 10)",
        )
        .await;
    assert_eq!(output, "True True");
}

#[tokio::test]
async fn processes_of_the_host_cannot_be_signalled() {
    let code = format!("print(attempt(lambda: os.kill({}, 0)), attempt(lambda: os.kill(-1, 0)))", process::id());
    let output = Fixture::new().python_output(&code).await;
    assert!(output.starts_with("ESRCH "), "{output}");
}

#[tokio::test]
async fn pid_1_ignores_every_signal() {
    let code = "import signal, time\nfor number in range(1, 65):\n    try: os.kill(1, number)\n    except OSError: pass\n\
                time.sleep(0.05); print('alive')";
    assert_eq!(Fixture::new().python_output(code).await, "alive");
}

#[tokio::test]
async fn processes_cannot_be_inspected() {
    let pid = process::id();
    let code = format!(
        "print(call(101, 16, 1, 0, 0), call(101, 16, {pid}, 0, 0), call(101, 0, 0, 0, 0))\n\
         print(call(310, 1, 0, 0, 0, 0, 0), call(311, 1, 0, 0, 0, 0, 0), call(440, 1, 0, 0, 0, 0))\n\
         fd = libc.syscall(434, 1, 0); print(call(438, fd, 0, 0), call(438, 1, 0, 0), call(312, 1, 2, 0, 0, 0))\n\
         print(attempt(lambda: open('/proc/1/mem')), attempt(lambda: os.listdir('/proc/1/fd')))"
    );
    let output = Fixture::new().python_output(&code).await;
    assert_eq!(output, "EPERM EPERM EPERM\nEPERM EPERM EPERM\nEPERM EPERM EPERM\nENOENT ENOENT");
}

#[tokio::test]
async fn only_the_standard_streams_are_inherited() {
    // Descriptor 3 is the folder that is being listed.
    let output =
        Fixture::new().python_output("print(sorted(os.listdir('/proc/self/fd')), attempt(lambda: os.fstat(3)))").await;
    assert_eq!(output, "['0', '1', '2', '3'] EBADF");
}

#[tokio::test]
async fn other_users_cannot_be_assumed() {
    let code = "print(attempt(lambda: os.setuid(0)), attempt(lambda: os.setgid(0)), attempt(lambda: os.setgroups([0])), \
                attempt(lambda: os.setresuid(0, 0, 0)), attempt(lambda: os.setuid(1000)))";
    assert_eq!(Fixture::new().python_output(code).await, "EINVAL EINVAL EPERM EINVAL ok");
}

#[tokio::test]
async fn limits_cannot_be_raised() {
    let code = "import resource as r\nfor name in ('NOFILE', 'NPROC', 'CPU', 'FSIZE', 'AS', 'DATA'):\n    \
                limit = getattr(r, 'RLIMIT_' + name); hard = r.getrlimit(limit)[1]\n    \
                try: r.setrlimit(limit, (hard, hard + 1)); print(name, 'raised')\n    \
                except (ValueError, OSError): pass\n\
                print(*[r.getrlimit(getattr(r, 'RLIMIT_' + name)) for name in ('RTPRIO', 'NICE')])";
    assert_eq!(Fixture::new().python_output(code).await, "(0, 0) (0, 0)");
}

#[tokio::test]
async fn core_dumps_start_no_program_on_the_host() {
    // Only with a limit of 1 the kernel neither writes a core dump nor pipes it to a program.
    let code = "import resource as r\nfor limit in ((0, 0), (0, 1), (1, 1)): r.setrlimit(r.RLIMIT_CORE, limit)\n\
                call(160, 4, (ctypes.c_uint64 * 2)(0, 0)); call(302, 0, 4, (ctypes.c_uint64 * 2)(0, 0), None)\n\
                print(r.getrlimit(r.RLIMIT_CORE))";
    assert_eq!(Fixture::new().python_output(code).await, "(1, 1)");
}

#[tokio::test]
async fn programs_are_the_first_choice_of_the_oom_killer() {
    let output = Fixture::new()
        .python_output("print(open('/proc/self/oom_score_adj').read().strip(), attempt(lambda: open('/proc/self/oom_score_adj', 'w')))")
        .await;
    assert_eq!(output, "1000 EACCES");
}

#[tokio::test]
async fn there_is_no_terminal() {
    let code = "import fcntl\nprint(attempt(lambda: fcntl.ioctl(0, 0x5412, b'x')), attempt(lambda: fcntl.ioctl(1, \
                0x541C, b'x')), attempt(lambda: open('/dev/tty')), attempt(lambda: open('/dev/ptmx')))";
    let output = Fixture::new().python_output(code).await;
    assert_eq!(output, "EPERM EPERM ENOENT ENOENT");
}

#[tokio::test]
async fn host_information_in_proc_is_hidden() {
    let code = "for name in ('cmdline', 'bootconfig', 'diskstats', 'interrupts', 'keys', 'locks', 'modules', 'partitions', 'swaps'):\n    \
                if os.path.exists('/proc/' + name) and open('/proc/' + name, 'rb').read(1): print(name)\n\
                for name in ('acpi', 'bus', 'driver', 'fs', 'irq', 'scsi'):\n    \
                if os.path.exists('/proc/' + name):\n        \
                if os.listdir('/proc/' + name): print(name)\n        \
                if attempt(lambda: open(f'/proc/{name}/x', 'w')) != 'EACCES': print(name, 'can be written to')\n\
                print(all(open('/proc/' + name).read() for name in ('meminfo', 'cpuinfo', 'stat', 'uptime', 'self/status', 'net/tcp')))";
    assert_eq!(Fixture::new().python_output(code).await, "True");
}

#[tokio::test]
async fn processes_stay_dumpable() {
    let output = Fixture::new().python_output("print(libc.prctl(4, 0, 0, 0, 0), libc.prctl(3, 0, 0, 0, 0))").await;
    assert_eq!(output, "0 1");
}

#[tokio::test]
async fn zombies_are_reaped() {
    let code = "import time\nfor _ in range(200):\n    if os.fork() == 0:\n        if os.fork() == 0: os._exit(0)\n        \
                os._exit(0)\n    os.wait()\n\
                deadline = time.time() + 5\nwhile True:\n    \
                dead = sum(1 for p in os.listdir('/proc') if p.isdigit() and p != str(os.getpid()))\n    \
                if dead == 0 or time.time() > deadline: break\n\
                print(dead)";
    assert_eq!(Fixture::new().python_output(code).await, "0");
}
