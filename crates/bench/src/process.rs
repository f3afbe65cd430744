//! Processes under measurement: started so that they cannot outlive the bench, and read through `/proc`.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// A parent that stops its child and removes the child's folder as soon as its own standard input ends.
/// That happens when the bench lets go of it, and also when the bench is killed.
/// The child announces its own process id before it becomes the program, and is alone in holding standard output,
/// which so ends with it.
const SUPERVISOR: &str = r#"
signal=$1 folder=$2
shift 2
sh -c 'echo $$; exec "$@"' child "$@" </dev/null 2>"$folder/log" &
pid=$!
exec >/dev/null
cat
kill -s "$signal" "$pid" 2>/dev/null
tries=0
while kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
kill -s KILL "$pid" 2>/dev/null
rm -rf "$folder"
"#;

/// The signal that asks a program to end in good order.
#[derive(Clone, Copy)]
pub enum StopSignal {
    Int,
    Term,
}

/// A program that ends, folder and all, with this value or with the bench, whichever goes first.
pub struct Supervised {
    supervisor: Child,
    lifeline: Option<ChildStdin>,
    output: Mutex<Receiver<String>>,
    pid: u32,
    folder: PathBuf,
}

impl Supervised {
    /// Starts `argv`; its standard error goes to the file `log` in `folder`, which it owns from now on.
    pub fn start<S: AsRef<OsStr>>(argv: &[S], environment: &[(&str, &str)], stop: StopSignal, folder: PathBuf) -> Self {
        let signal = match stop {
            StopSignal::Int => "INT",
            StopSignal::Term => "TERM",
        };
        let mut supervisor = Command::new("sh")
            .args(["-c", SUPERVISOR, "supervisor", signal])
            .arg(&folder)
            .args(argv)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A group of its own, so that Ctrl-C ends the bench and leaves the supervisor to clean up.
            .process_group(0)
            .spawn()
            .expect("sh starts");
        let lifeline = supervisor.stdin.take();
        let lines = BufReader::new(supervisor.stdout.take().expect("stdout is piped")).lines();
        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // Reading goes on without a listener: a full pipe would stop the program.
                let _ = sender.send(line);
            }
        });
        let pid = output
            .recv_timeout(Duration::from_secs(10))
            .ok()
            .and_then(|line| line.parse().ok())
            .expect("the supervised process announces its id");
        Self { supervisor, lifeline, output: Mutex::new(output), pid, folder }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for a line of standard output that begins with `prefix` and returns what follows it.
    pub fn wait_for_line(&self, prefix: &str, patience: Duration) -> String {
        let deadline = Instant::now() + patience;
        let output = self.output.lock().expect("no reader panicked");
        loop {
            match output.recv_timeout(deadline - Instant::now().min(deadline)) {
                Ok(line) => {
                    if let Some(rest) = line.strip_prefix(prefix) {
                        return rest.to_owned();
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("no line \"{prefix}…\" within {patience:?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended before the line \"{prefix}…\""),
            }
        }
    }

    /// The end of what the program wrote to standard error.
    fn log(&self) -> String {
        let text = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if thread::panicking() {
            // The log goes with the folder, and may say why.
            eprintln!("log of process {}:\n{}", self.pid, self.log());
        }
        self.lifeline = None;
        let _ = self.supervisor.wait();
    }
}

/// A folder that goes with this value or with the bench, whichever goes first.
pub struct Folder(Supervised);

impl Folder {
    pub fn new(purpose: &str) -> Self {
        // The program does nothing; what matters is who cleans up after it.
        Self(Supervised::start(&["sleep", "infinity"], &[], StopSignal::Term, fresh_folder(purpose)))
    }

    /// Where files can be put, beside those of the program.
    pub fn path(&self) -> PathBuf {
        self.0.folder.join("files")
    }
}

/// What `/proc/PID/stat` says about a process; `None` once it is gone.
struct Stat {
    parent: u32,
    own: Duration,
    ended_children: Duration,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the program's name in parentheses and may hold anything, so count from its end.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        // Linux shows user space a clock of 100 ticks a second, whatever its own is.
        let ticks = |field: usize| Some(Duration::from_millis(10 * fields.get(field)?.parse::<u64>().ok()?));
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            own: ticks(11)? + ticks(12)?,
            ended_children: ticks(13)? + ticks(14)?,
        })
    }
}

/// CPU time, user and system, that all threads of a process have used.
pub fn cpu(pid: u32) -> Duration {
    Stat::of(pid).expect("the measured process is alive").own
}

/// CPU time of a process and of its children, those that have ended included.
pub fn family_cpu(pid: u32) -> Duration {
    let parent = Stat::of(pid).expect("the measured process is alive");
    let children = fs::read_dir("/proc")
        .expect("/proc can be listed")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Stat::of)
        .filter(|stat| stat.parent == pid)
        .map(|stat| stat.own)
        .sum::<Duration>();
    parent.own + parent.ended_children + children
}

/// Memory that a process holds in RAM, in megabytes (10^6 bytes).
#[derive(Clone, Copy)]
pub struct Resident {
    pub total_mb: f64,
    /// Without the pages of mapped files, which the kernel can take back at any time.
    pub anonymous_mb: f64,
}

pub fn resident(pid: u32) -> Resident {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the measured process is alive");
    let megabytes = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok())
            .map_or(0.0, |kibibytes: f64| kibibytes * 1024.0 / 1e6)
    };
    Resident { total_mb: megabytes("VmRSS:"), anonymous_mb: megabytes("RssAnon:") }
}

/// An empty folder for one supervised program. `TMPDIR` chooses the disk.
pub fn fresh_folder(purpose: &str) -> PathBuf {
    tempfile::Builder::new()
        .prefix(&format!("toolrest-bench-{purpose}-"))
        .tempdir()
        .expect("a temporary folder can be made")
        .keep()
}

/// Synchronous 4 KB writes a second that the disk under `folder` completes: what one commit each would cost.
pub fn fdatasync_per_second(folder: &Path, duration: Duration) -> f64 {
    use std::os::unix::fs::FileExt;
    const PAGE: usize = 4096;
    const PAGES: u64 = 256;
    let file = tempfile::tempfile_in(folder).expect("a file can be made in the data folder");
    let page = [7; PAGE];
    for index in 0..PAGES {
        file.write_all_at(&page, index * PAGE as u64).expect("disk takes a page");
    }
    file.sync_all().expect("disk syncs");
    let start = Instant::now();
    let mut done = 0;
    while start.elapsed() < duration {
        file.write_all_at(&page, done % PAGES * PAGE as u64).expect("disk takes a page");
        file.sync_data().expect("disk syncs");
        done += 1;
    }
    done as f64 / start.elapsed().as_secs_f64()
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
