//! Programs that take all they can get.

use std::{fs, time::Duration};

use toolrest_sandbox::{Enforcer, Exit, Job, Limit, Limits, Report};

use crate::scene::{Scene, is_root, limits};

/// What of memory may lie beyond the limit for the time of a look.
const SLACK_BYTES: u64 = 256 << 20;

fn ended_by(report: &Report, limit: Limit) {
    let (out, err) = (report.stdout.text(), report.stderr.text());
    assert_eq!(report.limit_hit, Some(limit), "{:?} after {:?}: {out} {err}", report.exit, report.duration);
}

#[tokio::test]
async fn a_fork_bomb_goes_off_in_a_box() {
    let scene = Scene::new();
    let place = scene.place().limits(Limits { wall: Duration::from_secs(2), ..limits() });
    let code = "bomb() { bomb | bomb & wait; }; bomb";
    let report = scene.run(Job::new(place, ["bash", "-c", code])).await;
    assert!(matches!(report.limit_hit, Some(Limit::Processes | Limit::Time)), "{report:?}");
    assert!(report.duration < Duration::from_secs(10), "{:?}", report.duration);
    // The machine has room for others.
    assert!(scene.bash("true").await.success());
}

#[tokio::test]
async fn no_more_processes_are_made_than_allowed() {
    let code = "import time\nchildren = 0\ntry:\n    while children < 500:\n        if os.fork() == 0: time.sleep(30)\n        \
                children += 1\nexcept BlockingIOError: print(children, flush=True); raise SystemExit(1)";
    let report = Scene::new().python(code).await;
    ended_by(&report, Limit::Processes);
    let children: u64 = report.stdout.text().trim().parse().unwrap();
    assert!((limits().processes - 4..=limits().processes).contains(&children), "{children}");
}

#[tokio::test]
async fn one_process_cannot_have_two_gigabytes() {
    let told = Scene::new().told("try: bytearray(2 << 30)\nexcept MemoryError: print('refused')").await;
    assert_eq!(told, "refused");
}

#[tokio::test]
async fn many_processes_share_one_memory_limit() {
    let code = "import time\nfor _ in range(8):\n    if os.fork() == 0:\n        b = bytearray(os.urandom(1 << 20) * 100); \
                time.sleep(30)\nfor _ in range(8):\n    pid, status = os.wait()\n    \
                if status: os.abort()";
    let report = Scene::new().python(code).await;
    ended_by(&report, Limit::Memory);
    assert!(report.duration < Duration::from_secs(15), "{:?}", report.duration);
}

#[tokio::test]
async fn a_job_does_not_live_on_without_the_process_that_took_too_much() {
    let code = "for i in 1 2 3; do python3 -c 'import os; b = [bytearray(os.urandom(1 << 20) * 20) for _ in range(20)]' & done; wait; sleep 30; echo lived on";
    let report = Scene::new().bash(code).await;
    ended_by(&report, Limit::Memory);
    assert_eq!(report.stdout.text(), "");
}

#[tokio::test]
async fn memory_that_processes_share_counts_once() {
    let code = "import time\nb = bytearray(os.urandom(1 << 20) * 100)\nchildren = []\nfor _ in range(8):\n    \
                pid = os.fork()\n    if pid == 0: time.sleep(0.5); os._exit(0)\n    children.append(pid)\n\
                print(sum(os.waitpid(pid, 0)[1] for pid in children))";
    assert_eq!(Scene::new().told(code).await, "0");
}

#[tokio::test]
async fn shared_memory_counts_as_memory() {
    let code = "import mmap, time\nfor _ in range(4):\n    if os.fork() == 0:\n        m = mmap.mmap(-1, 100 << 20)\n        \
                for at in range(0, 100 << 20, 4096): m[at] = 1\n        time.sleep(30)\n\
                for _ in range(4):\n    if os.wait()[1]: os.abort()";
    ended_by(&Scene::new().python(code).await, Limit::Memory);
}

#[tokio::test]
async fn what_hides_its_memory_is_seen_all_the_same() {
    let code = "import time\nfor _ in range(8):\n    if os.fork() == 0:\n        libc.prctl(4, 0, 0, 0, 0); libc.prctl(15, b'\\xff', 0, 0, 0); \
                b = bytearray(os.urandom(1 << 20) * 100); time.sleep(30)\nfor _ in range(8):\n    \
                if os.wait()[1]: os.abort()";
    ended_by(&Scene::new().python(code).await, Limit::Memory);
}

#[tokio::test]
async fn descriptors_run_out() {
    let code = "files = []\ntry:\n    while True: files.append(open('/dev/null'))\nexcept OSError as error: \
                print(errno.errorcode[error.errno], len(files) < 256)";
    assert_eq!(Scene::new().told(code).await, "EMFILE True");
}

#[tokio::test]
async fn one_file_cannot_be_larger_than_allowed() {
    let code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nf = open('sparse', 'wb')\n\
                print(attempt(lambda: f.truncate(1 << 40)), attempt(lambda: os.posix_fallocate(f.fileno(), 0, 1 << 40)))";
    let scene = Scene::new();
    assert_eq!(scene.told(code).await, "EFBIG EFBIG");
    let report = scene.bash("exec head -c 100M /dev/zero > big").await;
    ended_by(&report, Limit::Disk);
    assert_eq!(report.exit, Exit::Signal(25));
    assert!(fs::metadata(scene.folder().join("big")).unwrap().len() <= limits().file_bytes);
}

#[tokio::test]
async fn many_files_share_one_disk_limit() {
    let scene = Scene::new();
    let report = scene.bash("for i in $(seq 100); do head -c 60M /dev/zero > f$i; done").await;
    ended_by(&report, Limit::Disk);
    let size: u64 = fs::read_dir(scene.folder()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(size < limits().disk_bytes + 2 * SLACK_BYTES, "{size}");
}

#[tokio::test]
async fn a_folder_that_is_closed_hides_nothing() {
    let scene = Scene::new();
    let report =
        scene.bash("mkdir d; cd d; chmod 300 .; for i in $(seq 100); do head -c 60M /dev/zero > f$i; done").await;
    ended_by(&report, Limit::Disk);
    fs::set_permissions(scene.folder().join("d"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
}

#[tokio::test]
async fn files_without_a_name_count_as_long_as_they_are_held() {
    let open = "files = []\nfor i in range(100):\n    f = open('f', 'wb'); f.write(bytes(60 << 20)); f.flush()\n    \
                os.unlink('f'); files.append(f)";
    ended_by(&Scene::new().python(open).await, Limit::Disk);
    let mapped = "import mmap\nmaps = []\nfor i in range(100):\n    f = open('f', 'w+b'); f.write(bytes(60 << 20)); f.flush()\n    \
                  m = mmap.mmap(f.fileno(), 60 << 20); maps.append(m); os.unlink('f'); f.close()";
    ended_by(&Scene::new().python(mapped).await, Limit::Disk);
}

#[tokio::test]
async fn what_was_there_before_does_not_count() {
    let scene = Scene::new();
    for number in 0..4 {
        fs::write(scene.folder().join(format!("old{number}")), vec![1; 50 << 20]).unwrap();
    }
    let report =
        scene.bash("head -c 60M /dev/zero > new; sync; sleep 1.5; head -c 60M /dev/zero > newer; sleep 0.2").await;
    assert!(report.success(), "{report:?}");
}

#[tokio::test]
async fn a_flood_of_files_is_stopped() {
    let code = "for i in range(200000):\n    if i % 100 == 0: os.makedirs(f'd{i}')\n    open(f'd{i - i % 100}/{i}', 'w').close()";
    let scene = Scene::new();
    let report = scene.python(code).await;
    ended_by(&report, Limit::Disk);
}

#[tokio::test]
async fn no_tree_is_too_deep_to_be_followed() {
    let scene = Scene::new();
    let code = "for i in range(3000):\n    os.mkdir('d'); os.chdir('d')\nfor i in range(100): open(f'f{i}', 'wb').write(bytes(60 << 20))";
    ended_by(&scene.python(code).await, Limit::Disk);
    // Too deep for most others, the remover of the scene among them.
    let place = scene.place().limits(Limits { wall: Duration::from_secs(120), ..limits() });
    let report = scene.run(Job::new(place, ["rm", "-rf", "d"])).await;
    assert!(report.success(), "{report:?}");
}

#[tokio::test]
async fn temporary_folders_fill_up_and_end_nothing() {
    let code = "for folder in ('/tmp', '/dev/shm'):\n    n = 0\n    try:\n        with open(folder + '/f', 'wb') as f:\n            \
                while n < 1000: f.write(bytes(1 << 20)); n += 1\n    except OSError as error: \
                print(errno.errorcode[error.errno], n <= 32)\n    os.remove(folder + '/f')\n\
                n = 0\ntry:\n    while n < 300000: open(f'/tmp/{n}', 'w').close(); n += 1\n\
                except OSError as error: print(errno.errorcode[error.errno])";
    assert_eq!(Scene::new().told(code).await, "ENOSPC True\nENOSPC True\nENOSPC");
}

#[tokio::test]
async fn spinning_ends_when_the_processor_time_is_up() {
    let scene = Scene::new();
    let place = scene.place().limits(Limits { cpu: Duration::from_secs(1), ..limits() });
    let report = scene.run(Job::new(place, ["bash", "-c", "while :; do :; done"])).await;
    ended_by(&report, Limit::Time);
    assert!(report.cpu >= Duration::from_millis(500), "{:?}", report.cpu);
}

#[tokio::test]
async fn the_report_says_who_saw_to_the_limits() {
    let report = Scene::new().bash("true").await;
    let by = report.enforced_by;
    assert_eq!(by.disk, Enforcer::Watchdog);
    // Root can always make groups where there are any; others only where some were delegated to them.
    let groups = |by| matches!(by, Enforcer::CgroupV1 | Enforcer::CgroupV2);
    let has_groups = fs::read_to_string("/proc/self/cgroup").unwrap().contains(":memory:");
    assert!(groups(by.memory) || by.memory == Enforcer::Watchdog && !(is_root() && has_groups), "{by:?}");
    assert!(groups(by.processes) || by.processes == Enforcer::Rlimit, "{by:?}");
}

#[tokio::test]
async fn a_process_whose_first_thread_has_ended_is_seen_all_the_same() {
    let code = "import threading, time\nfor _ in range(8):\n    if os.fork() == 0:\n        def take():\n            \
                time.sleep(0.1); b = bytearray(os.urandom(1 << 20) * 100); time.sleep(10); os._exit(0)\n        \
                threading.Thread(target=take).start(); libc.syscall(60, 0)\nfor _ in range(8):\n    \
                if os.wait()[1]: os.abort()";
    ended_by(&Scene::new().python(code).await, Limit::Memory);
}

#[tokio::test]
async fn shared_memory_that_is_mapped_in_part_counts_as_a_whole() {
    let code = "import time\nlibc.mmap.restype = ctypes.c_void_p\nlibc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]\n\
                size = 64 << 20\nfor _ in range(12):\n    at = libc.mmap(None, ctypes.c_size_t(size), 3, 0x21, -1, 0)\n    \
                ctypes.memset(at, 1, size); libc.munmap(at + 4096, size - 4096); time.sleep(0.05)\ntime.sleep(3)";
    ended_by(&Scene::new().python(code).await, Limit::Memory);
}

#[tokio::test]
async fn the_tables_of_pages_count_as_memory() {
    let code = "import time\nlibc.mmap.restype = ctypes.c_void_p\nsize = 32 << 30\n\
                for _ in range(12):\n    if os.fork() == 0:\n        \
                at = libc.mmap(None, ctypes.c_size_t(size), 1, 0x4022, -1, 0)\n        \
                for page in range(at, at + size, 2 << 20): ctypes.c_char.from_address(page).value\n        \
                time.sleep(5); os._exit(0)\nfor _ in range(12):\n    if os.wait()[1]: os.abort()";
    ended_by(&Scene::new().python(code).await, Limit::Memory);
}

#[tokio::test]
async fn orphans_without_number_do_not_keep_the_watch_from_looking() {
    let code = "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
                static char name[20], bytes[1 << 20];\nint main(void) { \
                for (int i = 0; i < 4500; i++) { sprintf(name, \"e%d\", i); close(creat(name, 0600)); } \
                for (int i = 0; i < 6; i++) if (!fork()) for (;;) { \
                pid_t child = vfork(); if (!child) { vfork(); _exit(0); } waitpid(child, 0, 0); } \
                for (int i = 0; i < 6; i++) { sprintf(name, \"f%d\", i); int file = creat(name, 0600); \
                for (int j = 0; j < 50; j++) write(file, bytes, sizeof bytes); usleep(50000); } }";
    let scene = Scene::new();
    fs::write(scene.folder().join("m.c"), code).unwrap();
    let place = scene.place().limits(Limits { wall: Duration::from_secs(60), ..limits() });
    let job = Job::new(place, ["bash", "-c", "gcc -w m.c -o m && exec ./m"]);
    ended_by(&scene.run(job).await, Limit::Disk);
}

#[tokio::test]
async fn a_nameless_file_of_which_little_is_mapped_counts_as_a_whole() {
    let code = "import time\nlibc.mmap.restype = ctypes.c_void_p\nfor i in range(20):\n    f = open(b'\\xff', 'w+b'); \
                f.write(bytes(50 << 20)); f.flush(); os.fsync(f.fileno())\n    \
                libc.mmap(None, ctypes.c_size_t(4096), 1, 1, f.fileno(), 0); os.unlink(b'\\xff'); f.close()\ntime.sleep(3)";
    ended_by(&Scene::new().python(code).await, Limit::Disk);
}

#[tokio::test]
async fn nameless_files_on_their_way_through_a_socket_count() {
    let code = "import time\na, b = socket.socketpair()\nfor i in range(20):\n    f = open('f', 'wb'); f.write(bytes(50 << 20)); \
                f.flush(); os.fsync(f.fileno())\n    socket.send_fds(a, [b'x'], [f.fileno()]); os.unlink('f'); f.close()\n\
                time.sleep(3)";
    ended_by(&Scene::new().python(code).await, Limit::Disk);
}

#[tokio::test]
async fn nameless_files_that_only_a_thread_holds_count() {
    let code = "#define _GNU_SOURCE\n#include <sched.h>\n#include <fcntl.h>\n#include <unistd.h>\n#include <stdlib.h>\n\
                static int f(void *x) { for (int i = 0; i < 20; i++) { int d = open(\"f\", O_CREAT|O_WRONLY, 0600); \
                for (int j = 0; j < 50; j++) write(d, x, 1 << 20); fsync(d); unlink(\"f\"); } sleep(3); _exit(0); }\n\
                int main(void) { clone(f, (char *)malloc(1 << 20) + (1 << 20), CLONE_VM|CLONE_SIGHAND|CLONE_THREAD, malloc(1 << 20)); pause(); }";
    let scene = Scene::new();
    fs::write(scene.folder().join("m.c"), code).unwrap();
    ended_by(&scene.bash("gcc -w m.c -o m && exec ./m").await, Limit::Disk);
}

#[tokio::test]
async fn descriptors_that_a_job_leaves_in_sockets_keep_no_other_job_from_starting() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    // As most servers are started: with as many as a job may have.
    let current = Some(limits().open_files * 4);
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    let scene = Scene::new();
    let code = "import socket, time\npairs = []\ntry:\n    while True:\n        pairs.append(socket.socketpair())\n        \
                socket.send_fds(pairs[-1][0], [b'x'], [0] * 250)\nexcept OSError: print('full', flush=True); time.sleep(100)";
    let place = scene.place().limits(Limits { open_files: limits().open_files * 4, ..limits() });
    let mut running = scene.sandbox.spawn(Job::new(place, ["python3", "-c", code])).await.unwrap();
    assert_eq!(running.next().await.unwrap().bytes, b"full\n");
    let report = tokio::time::timeout(Duration::from_secs(10), scene.bash("true")).await.unwrap();
    assert!(report.success());
}

#[tokio::test]
async fn a_tight_memory_limit_of_one_job_ends_no_other() {
    let scene = Scene::new();
    let tight = scene.place().limits(Limits { memory_bytes: Limits::LEAST_MEMORY_BYTES, ..limits() });
    for _ in 0..15 {
        let mut running = Vec::new();
        for number in 0..36 {
            let place = if number % 3 == 0 { tight.clone() } else { scene.place() };
            running.push((number % 3 == 0, scene.sandbox.spawn(Job::new(place, ["echo", "ok"])).await.unwrap()));
        }
        for (is_tight, running) in running {
            let report = running.wait().await;
            assert!(report.as_ref().is_ok_and(|report| report.stdout.text() == "ok\n"), "{is_tight} {report:?}");
        }
    }
}
