//! Prints what a job costs in the sandbox, beside a plain spawn of the same program.
//!
//! `cargo run --release -p toolrest-sandbox --example measure`

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "it measures plain spawns, and fails loudly")]

use std::{
    env, fs,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use toolrest_sandbox::{Interpreter, Job, Language, Options, Place, Pool, PoolOptions, Sandbox, Script};

const ROUNDS: usize = 101;
const AT_ONCE: usize = 32;
const MANY: usize = 2000;

/// Long enough for an interpreter to have started and to wait.
const SETTLE: Duration = Duration::from_millis(40);

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some("__launcher") {
        return toolrest_sandbox::launcher_main();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { Measure::new().run().await });
    ExitCode::SUCCESS
}

struct Measure {
    folder: tempfile::TempDir,
    place: Place,
    sandbox: Sandbox,
}

impl Measure {
    fn new() -> Self {
        let folder = tempfile::TempDir::new().unwrap();
        let place = Place::new(folder.path(), "/workspace");
        Self { folder, place, sandbox: Sandbox::start(Options::default()).unwrap() }
    }

    async fn run(self) {
        let python = Interpreter::find(Language::Python).unwrap();
        let bash = Interpreter::find(Language::Bash).unwrap();
        println!(
            "| what | plain ms | sandbox ms | ratio | ratio of the best tenth | goal |\n|---|---|---|---|---|---|"
        );
        self.cold("cold bash -c true", &bash, "true", 3.2).await;
        self.cold("cold python3 -c pass", &python, "pass", 1.35).await;
        self.warm("warm python3", &python, "pass", 0.45).await;
        self.warm("warm bash", &bash, "true", 0.6).await;
        self.many_at_once(&bash).await;
        self.many_in_a_row(&bash).await;
        println!("\nin {}", self.folder.path().display());
    }

    async fn cold(&self, name: &str, interpreter: &Interpreter, code: &str, goal: f64) {
        let (mut plain, mut boxed) = (Vec::new(), Vec::new());
        let program = interpreter.program();
        for _ in 0..ROUNDS {
            plain.push(plain_spawn(interpreter, code));
            let begun = Instant::now();
            let job = Job::new(self.place.clone(), [program.as_os_str(), "-c".as_ref(), code.as_ref()]);
            let report = self.sandbox.spawn(job).await.unwrap().wait().await.unwrap();
            boxed.push(begun.elapsed());
            assert!(report.success(), "{report:?}");
        }
        row(name, &plain, &boxed, goal);
    }

    async fn warm(&self, name: &str, interpreter: &Interpreter, code: &str, goal: f64) {
        let pool = Pool::new(self.sandbox.clone(), PoolOptions::default());
        let (mut plain, mut boxed) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            pool.warm(&self.place, interpreter).await.unwrap();
            tokio::time::sleep(SETTLE).await;
            plain.push(plain_spawn(interpreter, code));
            let begun = Instant::now();
            let script = Script { code: code.into(), ..Script::default() };
            let report = pool.run(&self.place, interpreter, script).await.unwrap().wait().await.unwrap();
            boxed.push(begun.elapsed());
            assert!(report.success(), "{report:?}");
        }
        row(name, &plain, &boxed, goal);
    }

    async fn many_at_once(&self, bash: &Interpreter) {
        let begun = Instant::now();
        let mut jobs = Vec::new();
        for _ in 0..AT_ONCE {
            let job = Job::new(self.place.clone(), [bash.program().as_os_str(), "-c".as_ref(), "echo x".as_ref()]);
            jobs.push(self.sandbox.spawn(job).await.unwrap());
        }
        let mut failed = 0;
        for job in jobs {
            failed += usize::from(!job.wait().await.is_ok_and(|report| report.success()));
        }
        println!("\n{AT_ONCE} at once: {:.0} ms, {failed} failed", begun.elapsed().as_secs_f64() * 1e3);
    }

    async fn many_in_a_row(&self, bash: &Interpreter) {
        let begun = Instant::now();
        let mut memory = Vec::new();
        for number in 0..MANY {
            let job = Job::new(self.place.clone(), [bash.program().as_os_str(), "-c".as_ref(), "true".as_ref()]);
            assert!(self.sandbox.spawn(job).await.unwrap().wait().await.unwrap().success());
            if [MANY / 10, MANY - 1].contains(&number) {
                memory.push((resident("self"), children()));
            }
        }
        let each = begun.elapsed().as_secs_f64() * 1e3 / f64::from(u32::try_from(MANY).unwrap());
        println!("{MANY} in a row: {each:.2} ms each");
        for ((server, launcher), when) in memory.into_iter().zip(["after a tenth", "after all"]) {
            println!("memory {when}: server {server} KiB, launcher and waiting cells {launcher:?} KiB");
        }
    }
}

fn plain_spawn(interpreter: &Interpreter, code: &str) -> Duration {
    let begun = Instant::now();
    let output = Command::new(interpreter.program()).args(["-c", code]).output().unwrap();
    assert!(output.status.success());
    begun.elapsed()
}

fn row(name: &str, plain: &[Duration], boxed: &[Duration], goal: f64) {
    let middle = (part(plain, 50), part(boxed, 50));
    let best = (part(plain, 10), part(boxed, 10));
    println!(
        "| {name} | {:.2} | {:.2} | {:.2} | {:.2} | ≤ {goal} |",
        middle.0,
        middle.1,
        middle.1 / middle.0,
        best.1 / best.0
    );
}

/// The time, in milliseconds, that so many percent do not exceed.
fn part(times: &[Duration], percent: usize) -> f64 {
    let mut times = times.to_vec();
    times.sort();
    times[times.len() * percent / 100].as_secs_f64() * 1e3
}

/// Memory of a process that is its own.
fn resident(process: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0");
    line.split_whitespace().next().unwrap_or("0").parse().unwrap_or(0)
}

/// Memory of all processes that descend from this one.
fn children() -> Vec<u64> {
    let mut found = Vec::new();
    let mut parents = vec![std::process::id().to_string()];
    while let Some(parent) = parents.pop() {
        for thread in fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace() {
                found.push(resident(child));
                parents.push(child.to_owned());
            }
        }
    }
    found
}
