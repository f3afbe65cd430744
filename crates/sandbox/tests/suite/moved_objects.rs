//! Programs that move files and descriptors during a measurement of the watchdog.

use std::time::Duration;

use toolrest_sandbox::{Exit, Limit, Limits, Report};

use crate::fixture::{Fixture, limits};

const DISK_BYTES: u64 = 32 << 20;

/// What the attacks try to write: a multiple of the limit, within a second or two.
const ATTACK_BYTES: u64 = 8 * DISK_BYTES;

fn tight() -> Limits {
    Limits {
        disk_bytes: DISK_BYTES,
        memory_bytes: 2 << 30,
        processes: 220,
        open_files: 1000,
        cpu: Duration::from_secs(60),
        ..limits()
    }
}

async fn run(code: &str) -> Report {
    let fixture = Fixture::new();
    fixture.python_in(fixture.spec().limits(tight()), code).await
}

fn assert_disk_limit(report: &Report) {
    let (out, err) = (report.stdout.text(), report.stderr.text());
    assert_eq!(report.limit_hit, Some(Limit::Disk), "{:?} after {:?}: {out} {err}", report.exit, report.duration);
}

#[tokio::test]
async fn a_folder_moved_during_the_walk_counts() {
    // The program learns from the first walk in which order PID 1 reads the folders. Then it always keeps X in the
    // folder that PID 1 has just left.
    let code = format!(
        r"
import struct, threading, time
names = [f'd{{i}}' for i in range(300)]
ino = libc.inotify_init1(0)
watch = {{}}
for name in names:
    os.mkdir(name)
    watch[libc.inotify_add_watch(ino, name.encode(), 0x10)] = name
def left():
    while True:
        buffer, at = os.read(ino, 1 << 16), 0
        while at < len(buffer):
            number, _, _, length = struct.unpack_from('iIII', buffer, at)
            at += 16 + length
            yield watch[number]
events, order = left(), []
while len(set(order)) < 300: order.append(next(events))
order = order[-300:]
P, Q = order[20], order[-20]
os.mkdir(Q + '/X')
X, where = os.open(Q + '/X', os.O_RDONLY), [Q]
def keep_moving():
    for name in events:
        if name in (P, Q) and name != where[0]:
            os.rename(where[0] + '/X', name + '/X')
            where[0] = name
threading.Thread(target=keep_moving, daemon=True).start()
written = 0
while written < {ATTACK_BYTES}:
    f = os.open(f'f{{written}}', os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=X)
    for _ in range(4): written += os.write(f, bytes(1 << 20))
    os.close(f)
    time.sleep(0.02)
time.sleep(8)
print('written', written)
"
    );
    assert_disk_limit(&run(&code).await);
}

#[tokio::test]
async fn deleted_files_of_a_process_that_forks_all_the_time_count() {
    let code = format!(
        r"
import time
for _ in range(100):
    if os.fork() == 0:
        while True:
            try: os.dup(0)
            except OSError: time.sleep(100)
time.sleep(1)
done_r, done_w = os.pipe()
if os.fork() == 0:
    written, until = 0, None
    while until is None or time.monotonic() < until:
        if written < {ATTACK_BYTES}:
            f = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o600)
            for _ in range(4): written += os.write(f, bytes(1 << 20))
        elif until is None: until = time.monotonic() + 8
        for _ in range(20):
            try:
                if os.fork() != 0: os._exit(0)
            # Ended processes must be reaped before there can be more.
            except OSError: time.sleep(0.001)
    os.write(done_w, b'x')
    os._exit(0)
os.read(done_r, 1)
print('written')
"
    );
    assert_disk_limit(&run(&code).await);
}

#[tokio::test]
async fn a_paused_job_continues_as_before() {
    // Endless forks make every measurement uncertain, so the job is paused at times. One of its processes was stopped
    // before.
    let code = r"
import signal, subprocess, time
asleep = subprocess.Popen(['sleep', '100'])
asleep.send_signal(signal.SIGSTOP)
begun = time.monotonic()
while time.monotonic() - begun < 13:
    assert subprocess.run(['true']).returncode == 0
    open('f', 'w').write('x'); os.rename('f', 'g')
state = open(f'/proc/{asleep.pid}/stat').read().rsplit(') ', 1)[1][0]
asleep.kill()
print(state)
";
    let report = run(code).await;
    assert_eq!((report.exit, report.stdout.text()), (Exit::Code(0), "T\n".into()), "{report:?}");
}
