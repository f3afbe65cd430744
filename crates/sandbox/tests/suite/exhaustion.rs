//! Programs that try to exhaust memory, processes, descriptors or disk space.

use std::{fs, time::Duration};

use toolrest_sandbox::{Enforcer, Exit, Job, Limit, Limits, Report};

use crate::fixture::{Fixture, is_root, limits};

/// How far memory use may exceed the limit until the watchdog's next check.
const SLACK_BYTES: u64 = 256 << 20;

fn assert_limit(report: &Report, limit: Limit) {
    let (out, err) = (report.stdout.text(), report.stderr.text());
    assert_eq!(report.limit_hit, Some(limit), "{:?} after {:?}: {out} {err}", report.exit, report.duration);
}

#[tokio::test]
async fn a_fork_bomb_is_contained() {
    let fixture = Fixture::new();
    let spec = fixture.spec().limits(Limits { wall: Duration::from_secs(2), ..limits() });
    let code = "bomb() { bomb | bomb & wait; }; bomb";
    let report = fixture.run(Job::new(spec, ["bash", "-c", code])).await;
    assert!(matches!(report.limit_hit, Some(Limit::Processes | Limit::Time)), "{report:?}");
    assert!(report.duration < Duration::from_secs(10), "{:?}", report.duration);
    // Other jobs can still run.
    assert!(fixture.bash("true").await.success());
}

#[tokio::test]
async fn no_more_processes_are_made_than_allowed() {
    let code = "import time\nchildren = 0\ntry:\n    while children < 500:\n        if os.fork() == 0: time.sleep(30)\n        \
                children += 1\nexcept BlockingIOError: print(children, flush=True); raise SystemExit(1)";
    let report = Fixture::new().python(code).await;
    assert_limit(&report, Limit::Processes);
    let children: u64 = report.stdout.text().trim().parse().unwrap();
    assert!((limits().processes - 4..=limits().processes).contains(&children), "{children}");
}

#[tokio::test]
async fn one_process_cannot_have_two_gigabytes() {
    let output = Fixture::new().python_output("try: bytearray(2 << 30)\nexcept MemoryError: print('refused')").await;
    assert_eq!(output, "refused");
}

#[tokio::test]
async fn many_processes_share_one_memory_limit() {
    let code = "import time\nfor _ in range(8):\n    if os.fork() == 0:\n        b = bytearray(os.urandom(1 << 20) * 100); \
                time.sleep(30)\nfor _ in range(8):\n    pid, status = os.wait()\n    \
                if status: os.abort()";
    let report = Fixture::new().python(code).await;
    assert_limit(&report, Limit::Memory);
    assert!(report.duration < Duration::from_secs(15), "{:?}", report.duration);
}

#[tokio::test]
async fn a_job_ends_completely_when_one_process_exceeds_the_memory() {
    let code = "for i in 1 2 3; do python3 -c 'import os; b = [bytearray(os.urandom(1 << 20) * 20) for _ in range(20)]' & done; wait; sleep 30; echo lived on";
    let report = Fixture::new().bash(code).await;
    assert_limit(&report, Limit::Memory);
    assert_eq!(report.stdout.text(), "");
}

#[tokio::test]
async fn memory_that_processes_share_counts_once() {
    let code = "import time\nb = bytearray(os.urandom(1 << 20) * 100)\nchildren = []\nfor _ in range(8):\n    \
                pid = os.fork()\n    if pid == 0: time.sleep(0.5); os._exit(0)\n    children.append(pid)\n\
                print(sum(os.waitpid(pid, 0)[1] for pid in children))";
    assert_eq!(Fixture::new().python_output(code).await, "0");
}

#[tokio::test]
async fn shared_memory_counts_as_memory() {
    let code = "import mmap, time\nfor _ in range(4):\n    if os.fork() == 0:\n        m = mmap.mmap(-1, 100 << 20)\n        \
                for at in range(0, 100 << 20, 4096): m[at] = 1\n        time.sleep(30)\n\
                for _ in range(4):\n    if os.wait()[1]: os.abort()";
    assert_limit(&Fixture::new().python(code).await, Limit::Memory);
}

#[tokio::test]
async fn memory_of_processes_that_hide_it_counts() {
    let code = "import time\nfor _ in range(8):\n    if os.fork() == 0:\n        libc.prctl(4, 0, 0, 0, 0); libc.prctl(15, b'\\xff', 0, 0, 0); \
                b = bytearray(os.urandom(1 << 20) * 100); time.sleep(30)\nfor _ in range(8):\n    \
                if os.wait()[1]: os.abort()";
    assert_limit(&Fixture::new().python(code).await, Limit::Memory);
}

#[tokio::test]
async fn open_files_are_limited_per_process() {
    let code = "files = []\ntry:\n    while True: files.append(open('/dev/null'))\nexcept OSError as error: \
                print(errno.errorcode[error.errno], len(files) < 256)";
    assert_eq!(Fixture::new().python_output(code).await, "EMFILE True");
}

#[tokio::test]
async fn one_file_cannot_be_larger_than_allowed() {
    let code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nf = open('sparse', 'wb')\n\
                print(attempt(lambda: f.truncate(1 << 40)), attempt(lambda: os.posix_fallocate(f.fileno(), 0, 1 << 40)))";
    let fixture = Fixture::new();
    assert_eq!(fixture.python_output(code).await, "EFBIG EFBIG");
    let report = fixture.bash("exec head -c 100M /dev/zero > big").await;
    assert_limit(&report, Limit::Disk);
    assert_eq!(report.exit, Exit::Signal(25));
    assert!(fs::metadata(fixture.folder().join("big")).unwrap().len() <= limits().file_bytes);
}

#[tokio::test]
async fn many_files_share_one_disk_limit() {
    let fixture = Fixture::new();
    let report = fixture.bash("for i in $(seq 100); do head -c 60M /dev/zero > f$i; done").await;
    assert_limit(&report, Limit::Disk);
    let size: u64 = fs::read_dir(fixture.folder()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(size < limits().disk_bytes + 2 * SLACK_BYTES, "{size}");
}

#[tokio::test]
async fn files_in_an_unreadable_folder_count() {
    let fixture = Fixture::new();
    let report =
        fixture.bash("mkdir d; cd d; chmod 300 .; for i in $(seq 100); do head -c 60M /dev/zero > f$i; done").await;
    assert_limit(&report, Limit::Disk);
    fs::set_permissions(fixture.folder().join("d"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
}

#[tokio::test]
async fn deleted_files_count_while_they_are_open_or_mapped() {
    let open = "files = []\nfor i in range(100):\n    f = open('f', 'wb'); f.write(bytes(60 << 20)); f.flush()\n    \
                os.unlink('f'); files.append(f)";
    assert_limit(&Fixture::new().python(open).await, Limit::Disk);
    let mapped = "import mmap\nmaps = []\nfor i in range(100):\n    f = open('f', 'w+b'); f.write(bytes(60 << 20)); f.flush()\n    \
                  m = mmap.mmap(f.fileno(), 60 << 20); maps.append(m); os.unlink('f'); f.close()";
    assert_limit(&Fixture::new().python(mapped).await, Limit::Disk);
}

#[tokio::test]
async fn files_from_before_the_job_do_not_count() {
    let fixture = Fixture::new();
    for number in 0..4 {
        fs::write(fixture.folder().join(format!("old{number}")), vec![1; 50 << 20]).unwrap();
    }
    let report =
        fixture.bash("head -c 60M /dev/zero > new; sync; sleep 1.5; head -c 60M /dev/zero > newer; sleep 0.2").await;
    assert!(report.success(), "{report:?}");
}

#[tokio::test]
async fn the_number_of_new_files_is_limited() {
    let code = "for i in range(200000):\n    if i % 100 == 0: os.makedirs(f'd{i}')\n    open(f'd{i - i % 100}/{i}', 'w').close()";
    let fixture = Fixture::new();
    let report = fixture.python(code).await;
    assert_limit(&report, Limit::Disk);
}

#[tokio::test]
async fn files_in_very_deep_trees_count() {
    let fixture = Fixture::new();
    let code = "for i in range(3000):\n    os.mkdir('d'); os.chdir('d')\nfor i in range(100): open(f'f{i}', 'wb').write(bytes(60 << 20))";
    assert_limit(&fixture.python(code).await, Limit::Disk);
    // The tree is too deep for the temporary folder's own removal.
    let spec = fixture.spec().limits(Limits { wall: Duration::from_secs(120), ..limits() });
    let report = fixture.run(Job::new(spec, ["rm", "-rf", "d"])).await;
    assert!(report.success(), "{report:?}");
}

#[tokio::test]
async fn full_temporary_folders_end_no_job() {
    let code = "for folder in ('/tmp', '/dev/shm'):\n    n = 0\n    try:\n        with open(folder + '/f', 'wb') as f:\n            \
                while n < 1000: f.write(bytes(1 << 20)); n += 1\n    except OSError as error: \
                print(errno.errorcode[error.errno], n <= 32)\n    os.remove(folder + '/f')\n\
                n = 0\ntry:\n    while n < 300000: open(f'/tmp/{n}', 'w').close(); n += 1\n\
                except OSError as error: print(errno.errorcode[error.errno])";
    assert_eq!(Fixture::new().python_output(code).await, "ENOSPC True\nENOSPC True\nENOSPC");
}

#[tokio::test]
async fn a_busy_loop_ends_at_the_processor_time_limit() {
    let fixture = Fixture::new();
    let spec = fixture.spec().limits(Limits { cpu: Duration::from_secs(1), ..limits() });
    let report = fixture.run(Job::new(spec, ["bash", "-c", "while :; do :; done"])).await;
    assert_limit(&report, Limit::Time);
    assert!(report.cpu >= Duration::from_millis(500), "{:?}", report.cpu);
}

#[tokio::test]
async fn the_report_names_the_enforcers_of_the_limits() {
    let report = Fixture::new().bash("true").await;
    let by = report.enforced_by;
    assert_eq!(by.disk, Enforcer::Watchdog);
    // Root can always create control groups if the kernel has any; other users only in delegated ones.
    let groups = |by| matches!(by, Enforcer::CgroupV1 | Enforcer::CgroupV2);
    let has_groups = fs::read_to_string("/proc/self/cgroup").unwrap().contains(":memory:");
    assert!(groups(by.memory) || by.memory == Enforcer::Watchdog && !(is_root() && has_groups), "{by:?}");
    assert!(groups(by.processes) || by.processes == Enforcer::Rlimit, "{by:?}");
}

#[tokio::test]
async fn memory_of_a_process_whose_first_thread_has_ended_counts() {
    let code = "import threading, time\nfor _ in range(8):\n    if os.fork() == 0:\n        def take():\n            \
                time.sleep(0.1); b = bytearray(os.urandom(1 << 20) * 100); time.sleep(10); os._exit(0)\n        \
                threading.Thread(target=take).start(); libc.syscall(60, 0)\nfor _ in range(8):\n    \
                if os.wait()[1]: os.abort()";
    assert_limit(&Fixture::new().python(code).await, Limit::Memory);
}

#[tokio::test]
async fn partly_mapped_shared_memory_counts_completely() {
    let code = "import time\nlibc.mmap.restype = ctypes.c_void_p\nlibc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]\n\
                size = 64 << 20\nfor _ in range(12):\n    at = libc.mmap(None, ctypes.c_size_t(size), 3, 0x21, -1, 0)\n    \
                ctypes.memset(at, 1, size); libc.munmap(at + 4096, size - 4096); time.sleep(0.05)\ntime.sleep(3)";
    assert_limit(&Fixture::new().python(code).await, Limit::Memory);
}

#[tokio::test]
async fn page_tables_count_as_memory() {
    let code = "import time\nlibc.mmap.restype = ctypes.c_void_p\nsize = 32 << 30\n\
                for _ in range(12):\n    if os.fork() == 0:\n        \
                at = libc.mmap(None, ctypes.c_size_t(size), 1, 0x4022, -1, 0)\n        \
                for page in range(at, at + size, 2 << 20): ctypes.c_char.from_address(page).value\n        \
                time.sleep(5); os._exit(0)\nfor _ in range(12):\n    if os.wait()[1]: os.abort()";
    assert_limit(&Fixture::new().python(code).await, Limit::Memory);
}

#[tokio::test]
async fn many_orphans_do_not_delay_the_disk_check() {
    let code = "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
                static char name[20], bytes[1 << 20];\nint main(void) { \
                for (int i = 0; i < 4500; i++) { sprintf(name, \"e%d\", i); close(creat(name, 0600)); } \
                for (int i = 0; i < 6; i++) if (!fork()) for (;;) { \
                pid_t child = vfork(); if (!child) { vfork(); _exit(0); } waitpid(child, 0, 0); } \
                for (int i = 0; i < 6; i++) { sprintf(name, \"f%d\", i); int file = creat(name, 0600); \
                for (int j = 0; j < 50; j++) write(file, bytes, sizeof bytes); usleep(50000); } }";
    let fixture = Fixture::new();
    fs::write(fixture.folder().join("m.c"), code).unwrap();
    let spec = fixture.spec().limits(Limits { wall: Duration::from_secs(60), ..limits() });
    let job = Job::new(spec, ["bash", "-c", "gcc -w m.c -o m && exec ./m"]);
    assert_limit(&fixture.run(job).await, Limit::Disk);
}

#[tokio::test]
async fn a_partly_mapped_deleted_file_counts_completely() {
    let code = "import time\nlibc.mmap.restype = ctypes.c_void_p\nfor i in range(20):\n    f = open(b'\\xff', 'w+b'); \
                f.write(bytes(50 << 20)); f.flush(); os.fsync(f.fileno())\n    \
                libc.mmap(None, ctypes.c_size_t(4096), 1, 1, f.fileno(), 0); os.unlink(b'\\xff'); f.close()\ntime.sleep(3)";
    assert_limit(&Fixture::new().python(code).await, Limit::Disk);
}

#[tokio::test]
async fn deleted_files_in_flight_through_a_socket_count() {
    let code = "import time\na, b = socket.socketpair()\nfor i in range(20):\n    f = open('f', 'wb'); f.write(bytes(50 << 20)); \
                f.flush(); os.fsync(f.fileno())\n    socket.send_fds(a, [b'x'], [f.fileno()]); os.unlink('f'); f.close()\n\
                time.sleep(3)";
    assert_limit(&Fixture::new().python(code).await, Limit::Disk);
}

#[tokio::test]
async fn deleted_files_open_in_one_thread_only_count() {
    let code = "#define _GNU_SOURCE\n#include <sched.h>\n#include <fcntl.h>\n#include <unistd.h>\n#include <stdlib.h>\n\
                static int f(void *x) { for (int i = 0; i < 20; i++) { int d = open(\"f\", O_CREAT|O_WRONLY, 0600); \
                for (int j = 0; j < 50; j++) write(d, x, 1 << 20); fsync(d); unlink(\"f\"); } sleep(3); _exit(0); }\n\
                int main(void) { clone(f, (char *)malloc(1 << 20) + (1 << 20), CLONE_VM|CLONE_SIGHAND|CLONE_THREAD, malloc(1 << 20)); pause(); }";
    let fixture = Fixture::new();
    fs::write(fixture.folder().join("m.c"), code).unwrap();
    assert_limit(&fixture.bash("gcc -w m.c -o m && exec ./m").await, Limit::Disk);
}

#[tokio::test]
async fn descriptors_left_in_sockets_do_not_block_other_jobs() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Most servers start with a soft limit like that of a job.
    let current = Some(limits().open_files * 4);
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    let fixture = Fixture::new();
    let code = "import socket, time\npairs = []\ntry:\n    while True:\n        pairs.append(socket.socketpair())\n        \
                socket.send_fds(pairs[-1][0], [b'x'], [0] * 250)\nexcept OSError: print('full', flush=True); time.sleep(100)";
    let spec = fixture.spec().limits(Limits { open_files: limits().open_files * 4, ..limits() });
    let mut running = fixture.sandbox.spawn(Job::new(spec, ["python3", "-c", code])).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"full\n");
    let report = tokio::time::timeout(Duration::from_secs(10), fixture.bash("true")).await.unwrap();
    assert!(report.success());
}

#[tokio::test]
async fn a_tight_memory_limit_of_one_job_does_not_affect_others() {
    let fixture = Fixture::new();
    let tight = fixture.spec().limits(Limits { memory_bytes: Limits::MIN_MEMORY_BYTES, ..limits() });
    for _ in 0..15 {
        let mut running = Vec::new();
        for number in 0..36 {
            let spec = if number % 3 == 0 { tight.clone() } else { fixture.spec() };
            running.push((number % 3 == 0, fixture.sandbox.spawn(Job::new(spec, ["echo", "ok"])).await.unwrap()));
        }
        for (is_tight, running) in running {
            let report = running.wait().await;
            assert!(report.as_ref().is_ok_and(|report| report.stdout.text() == "ok\n"), "{is_tight} {report:?}");
        }
    }
}
