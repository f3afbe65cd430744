//! Programs that exhaust resources which the kernel limits per user.

use std::{fs, os::unix::fs::MetadataExt, time::Duration};

use toolrest_sandbox::{Exit, Job, Limit, Limits, Report};

use crate::fixture::{Fixture, PYTHON, is_root, limits, marker, options, program_named, user_of};

const MEMORY_BYTES: u64 = 128 << 20;

/// Runs Python with little memory and many descriptors.
async fn run(fixture: &Fixture, code: &str) -> Report {
    let limits = Limits { memory_bytes: MEMORY_BYTES, open_files: 1024, ..limits() };
    fixture.python_in(fixture.spec().limits(limits), code).await
}

fn assert_memory_limit(report: &Report) {
    let (out, err) = (report.stdout.text(), report.stderr.text());
    assert_eq!(report.limit_hit, Some(Limit::Memory), "{:?} after {:?}: {out} {err}", report.exit, report.duration);
}

#[tokio::test]
async fn inotify_is_limited_per_job() {
    let code = "n = 0\nwhile n < 200 and libc.inotify_init1(0) >= 0: n += 1\nprint(n, errno.errorcode[ctypes.get_errno()])\n\
                n, e = 0, None\nfor folder, _, files in os.walk('/usr'):\n    for name in [folder] + [os.path.join(folder, f) for f in files]:\n        \
                if libc.inotify_add_watch(4, os.fsencode(name), 0x2000002) < 0:\n            \
                e = ctypes.get_errno()\n            if e == errno.ENOSPC: break\n        else: n += 1\n    \
                if n > 20000 or e == errno.ENOSPC: break\nprint(n <= 16384)";
    assert_eq!(Fixture::new().python_output(code).await, "8 EMFILE\nTrue");
}

#[tokio::test]
async fn the_quotas_of_namespaces_are_set() {
    let code = "for name in ('user/max_user_namespaces', 'user/max_inotify_instances', 'user/max_fanotify_groups', \
                'user/max_fanotify_marks', 'net/ipv4/tcp_max_tw_buckets'):\n    path = '/proc/sys/' + name\n    \
                print(open(path).read().strip() if os.path.exists(path) else 0)";
    assert_eq!(Fixture::new().python_output(code).await, "0\n8\n0\n0\n4096");
}

#[tokio::test]
async fn jobs_do_not_exhaust_the_inotify_quota_of_root() {
    if !is_root() {
        // Without root, jobs run as the server's own user.
        return;
    }
    let fixture = Fixture::new();
    let code = "import ctypes, time\nlibc = ctypes.CDLL(None)\nwhile libc.inotify_init1(0) >= 0: pass\nprint('full', flush=True); time.sleep(100)";
    let mut all = Vec::new();
    for _ in 0..20 {
        let mut running = fixture.sandbox.spawn(Job::new(fixture.spec(), [PYTHON, "-c", code])).await.unwrap();
        assert_eq!(running.next().await.unwrap().bytes, b"full\n");
        all.push(running);
    }
    rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC).unwrap();
    // Jobs do not share the quota with each other either: each has its own host user.
    let code = "print(sum(libc.inotify_init1(0) >= 0 for _ in range(20)))";
    assert_eq!(fixture.python_output(code).await, "8");
}

#[tokio::test]
async fn concurrent_jobs_run_as_different_host_users() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    let mut running = Vec::new();
    let mut users = std::collections::BTreeSet::new();
    for number in 0..4 {
        let name = marker(&format!("user-{number}"));
        let code = format!("echo x > file-{number}; exec -a {name} sleep 100");
        running.push(fixture.sandbox.spawn(Job::new(fixture.spec(), ["bash", "-c", &code])).await.unwrap());
        users.insert(user_of(program_named(&name).await));
        // Files still belong to the owner of the folder.
        assert_eq!(fs::metadata(fixture.folder().join(format!("file-{number}"))).unwrap().uid(), 0);
    }
    assert_eq!(users.len(), 4);
    assert!(users.iter().all(|user| *user >= options().host_id), "{users:?}");
}

#[tokio::test]
async fn epoll_watches_are_limited() {
    let code = "import select, time\nfiles = [os.eventfd(0) for _ in range(500)]\npolls = []\nfor _ in range(400):\n    \
                p = select.epoll(); polls.append(p)\n    for f in files: p.register(f)\ntime.sleep(10)";
    assert_memory_limit(&run(&Fixture::new(), code).await);
}

#[tokio::test]
async fn file_locks_are_limited() {
    let code = "import fcntl, time\nfiles = [open(f'f{i}', 'w') for i in range(20)]\nfor i in range(2500):\n    \
                for f in files: fcntl.lockf(f, fcntl.LOCK_EX, 1, 2 * i)\ntime.sleep(10)";
    assert_memory_limit(&run(&Fixture::new(), code).await);
}

#[tokio::test]
async fn locks_on_folders_and_pipes_are_limited() {
    for open in ["os.mkdir(f'd{i}') or os.open(f'd{i}', os.O_RDONLY)", "os.pipe()[0]"] {
        let code = format!(
            "import fcntl, time\nfiles = [{open} for i in range(20)]\nfor i in range(2500):\n    \
             for f in files: fcntl.lockf(f, fcntl.LOCK_SH, 1, 2 * i)\ntime.sleep(10)"
        );
        assert_memory_limit(&run(&Fixture::new(), &code).await);
    }
}

#[tokio::test]
async fn epoll_instances_in_flight_count() {
    let code = "import select, time\nfiles = [os.eventfd(0) for _ in range(500)]\na, b = socket.socketpair()\nfor _ in range(COUNT):\n    \
                p = select.epoll()\n    for f in files: p.register(f)\n    socket.send_fds(a, [b'x'], [p.fileno()]); p.close()\n\
                time.sleep(1.5); print('ok')";
    assert_memory_limit(&run(&Fixture::new(), &code.replace("COUNT", "100")).await);
    let report = run(&Fixture::new(), &code.replace("COUNT", "20")).await;
    assert_eq!(report.stdout.text(), "ok\n", "{report:?}");
}

#[tokio::test]
async fn sockets_are_limited() {
    let code = "import time\nos.fork()\nheld = [socket.socket() for _ in range(600)]\ntime.sleep(5)";
    let fixture = Fixture::new();
    let limits = Limits { memory_bytes: 2 << 30, open_files: 1024, ..limits() };
    assert_memory_limit(&fixture.python_in(fixture.spec().limits(limits), code).await);
}

#[tokio::test]
async fn locks_that_outlive_their_process_count() {
    // A process that shares its descriptors with another one, and exits.
    let code = "#define _GNU_SOURCE\n#include <sched.h>\n#include <fcntl.h>\n#include <unistd.h>\n#include <stdlib.h>\n#include <signal.h>\n#include <sys/wait.h>\n\
                static int d[20];\nstatic int f(void *x) { for (int i = 0; i < 2500; i++) for (int j = 0; j < 20; j++) { \
                struct flock l = { .l_type = F_WRLCK, .l_start = 2 * i, .l_len = 1 }; fcntl(d[j], F_SETLK, &l); } _exit(0); }\n\
                int main(void) { for (int j = 0; j < 20; j++) { char n[] = {'f', 'a' + j, 0}; d[j] = open(n, O_CREAT|O_RDWR, 0600); } \
                clone(f, (char *)malloc(1 << 20) + (1 << 20), CLONE_FILES | CLONE_VM | SIGCHLD, 0); wait(0); sleep(10); }";
    let fixture = Fixture::new();
    fs::write(fixture.folder().join("m.c"), code).unwrap();
    assert_memory_limit(&fixture.bash("gcc -w m.c -o m && exec ./m").await);
}

#[tokio::test]
async fn unread_socket_data_counts_as_memory() {
    let code = "import time\npairs = []\nfor _ in range(3):\n    if os.fork() == 0: break\n\
                for _ in range(450):\n    a, b = socket.socketpair(); a.setblocking(False); b.setblocking(False); pairs.append((a, b))\n    \
                for s in (a, b):\n        try:\n            while True: s.send(bytes(1 << 16))\n        except BlockingIOError: pass\ntime.sleep(10)";
    assert_memory_limit(&run(&Fixture::new(), code).await);
}

#[tokio::test]
async fn unread_data_of_few_sockets_counts_as_memory() {
    // Fewer sockets than a job may have.
    let code = "import time\npairs = []\nfor _ in range(400):\n    a, b = socket.socketpair(); a.setblocking(False); b.setblocking(False); pairs.append((a, b))\n    \
                for s in (a, b):\n        try:\n            while True: s.send(bytes(1 << 16))\n        except BlockingIOError: pass\ntime.sleep(10)";
    assert_memory_limit(&run(&Fixture::new(), code).await);
}

#[tokio::test]
async fn unread_socket_data_of_closed_senders_counts_as_memory() {
    let code = "import time\nreceivers = []\nfor i in range(400):\n    r = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); r.bind(f'\\0{i}'); receivers.append(r)\n    \
                try:\n        while True:\n            s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.setblocking(False)\n            \
                s.sendto(bytes(100 << 10), f'\\0{i}'); s.close()\n    except BlockingIOError: pass\ntime.sleep(10)";
    let report = run(&Fixture::new(), code).await;
    // A control group can also make the send fail.
    if !(is_root() && report.stderr.text().contains("No buffer space available")) {
        assert_memory_limit(&report);
    }
}

#[tokio::test]
async fn unread_tcp_data_is_limited() {
    let code = "import time\nl = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(100); held, sent = [l], 0\n\
                for _ in range(450):\n    a = socket.create_connection(l.getsockname()); b, _ = l.accept(); held += [a, b]\n    \
                for s in (a, b):\n        s.setblocking(False)\n        try:\n            while True: sent += s.send(bytes(1 << 16))\n        except BlockingIOError: pass\n\
                time.sleep(1); print(sent)";
    let report = run(&Fixture::new(), code).await;
    if report.exit == Exit::Code(0) {
        // The kernel blocked the senders within the limit of the control group.
        assert!(is_root());
        let sent: u64 = report.stdout.text().trim().parse().unwrap();
        assert!(sent < 2 * MEMORY_BYTES, "{sent}");
    } else {
        assert_memory_limit(&report);
    }
}

#[tokio::test]
async fn unread_pipe_data_counts_as_memory() {
    let code = "import time\nfor _ in range(7):\n    if os.fork() == 0: break\n\
                pipes = [os.pipe() for _ in range(480)]\nfor r, w in pipes:\n    os.set_blocking(w, False)\n    \
                try:\n        while True: os.write(w, bytes(1 << 12))\n    except BlockingIOError: pass\ntime.sleep(3)";
    let report = run(&Fixture::new(), code).await;
    // A control group counts the content of pipes, not their capacity.
    if !is_root() || report.limit_hit.is_some() {
        assert_memory_limit(&report);
    }
}

#[tokio::test]
async fn an_ordinary_number_of_sockets_and_pipes_is_allowed() {
    let code = "import time, select\nl = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(100)\n\
                held = [(socket.create_connection(l.getsockname()), l.accept()) for _ in range(40)]\n\
                pipes = [os.pipe() for _ in range(50)]; p = select.epoll()\nfor r, w in pipes: p.register(r)\n\
                time.sleep(1.5); print('ok')";
    let fixture = Fixture::new();
    let limits = Limits { wall: Duration::from_secs(10), ..limits() };
    let report = fixture.python_in(fixture.spec().limits(limits), code).await;
    assert_eq!(report.stdout.text(), "ok\n", "{report:?}");
}
