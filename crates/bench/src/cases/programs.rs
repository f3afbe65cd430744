//! Programs in the sandbox, by themselves and through tool calls, compared with a plain spawn of the same program.

mod checkouts;
mod many;

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use toolrest_sandbox::{CellSpec, Interpreter, Job, Language, Options, Pool, PoolOptions, Sandbox, Script, Source};
use toolrest_testkit::temp_folder;

use super::Effort;
use crate::report::{Figure, Report, Target, median, number};
use crate::server::{Backend, Server, Session};

/// Runs of each program per round.
const RUNS: usize = 51;

/// Time for the pool to start the next interpreter.
const POOL_REFILL: Duration = Duration::from_millis(60);

pub fn run(toolrest: &Path, effort: Effort, report: &mut Report) {
    eprintln!("programs in the sandbox");
    let (bash, python) = (find(Language::Bash), find(Language::Python));
    report.section(
        "Programs in the sandbox",
        format!(
            "Time divided by that of a plain spawn of the same program, in turns; each round is the ratio of the medians \
             of {RUNS} runs. Cold: a new job of the sandbox, in the process. Warm interpreter: one that waits in the \
             sandbox's pool. Warm `run_code`: a whole call of `run_code` over HTTP with a waiting interpreter, including \
             access check, record, checkout and check-in."
        ),
    );
    let jobs = Jobs::new(toolrest);
    for (case, interpreter, code, limit) in
        [("cold `bash -c true`", &bash, "true", 3.2), ("cold `python3 -c pass`", &python, "pass", 1.35)]
    {
        add(report, case, Target::AtMost(limit), effort, || jobs.cold_times(interpreter, code));
    }
    for (case, interpreter, code) in [
        ("warm interpreter without a tool call, Python", &python, "pass"),
        ("warm interpreter without a tool call, bash", &bash, "true"),
    ] {
        add(report, case, Target::None, effort, || jobs.warm_times(interpreter, code));
    }
    many::run(&jobs, &bash, report);
    drop(jobs);
    let server = Server::start(toolrest, Backend::Sqlite);
    let session = server.session();
    let workspace = session.create_workspace("programs");
    session.write(&workspace, "/a.txt", "a file");
    for (case, language, interpreter, code, limit) in [
        ("warm `run_code`, Python", "python", &python, "pass", 0.45),
        ("warm `run_code`, bash", "bash", &bash, "true", 0.6),
    ] {
        let call = || run_code_ms(&session, &workspace, language, code);
        add(report, case, Target::AtMost(limit), effort, || {
            call();
            Times::measure(interpreter, code, || thread::sleep(POOL_REFILL), call)
        });
    }
    checkouts::run(&server, effort, report);
}

fn find(language: Language) -> Interpreter {
    Interpreter::find(language).expect("python3 and bash are installed (Debian: apt-get install python3 bash)")
}

/// Times of a plain spawn and of ours in milliseconds.
struct Times {
    plain: Vec<f64>,
    ours: Vec<f64>,
}

impl Times {
    /// Measures a plain spawn and ours in turns, each time after `prepare`.
    fn measure(interpreter: &Interpreter, code: &str, prepare: impl Fn(), ours_ms: impl Fn() -> f64) -> Self {
        let mut times = Self { plain: Vec::new(), ours: Vec::new() };
        for _ in 0..RUNS {
            prepare();
            times.plain.push(plain_ms(interpreter, code));
            times.ours.push(ours_ms());
        }
        times
    }
}

fn add(report: &mut Report, case: &str, target: Target, effort: Effort, times: impl Fn() -> Times) {
    let rounds: Vec<Times> = (0..effort.rounds).map(|_| times()).collect();
    let typical = |times: fn(&Times) -> &Vec<f64>| {
        number(median(&rounds.iter().map(|round| median(times(round))).collect::<Vec<_>>()))
    };
    report.add(Figure {
        case: case.to_owned(),
        unit: "×",
        rounds: rounds.iter().map(|round| median(&round.ours) / median(&round.plain)).collect(),
        target,
        notes: format!("{} ms, plain {} ms", typical(|times| &times.ours), typical(|times| &times.plain)),
    });
}

fn plain_ms(interpreter: &Interpreter, code: &str) -> f64 {
    let start = Instant::now();
    let output = Command::new(interpreter.program()).args(["-c", code]).output().expect("the interpreter starts");
    assert!(output.status.success(), "{output:?}");
    start.elapsed().as_secs_f64() * 1e3
}

/// A sandbox in this process, with the binary as its launcher.
struct Jobs {
    runtime: Runtime,
    sandbox: Sandbox,
    folder: TempDir,
}

impl Jobs {
    fn new(toolrest: &Path) -> Self {
        let runtime = Runtime::new().expect("a runtime starts");
        let options = Options { program: toolrest.to_owned(), ..Options::default() };
        let sandbox = runtime.block_on(async { Sandbox::start(options) }).expect("the sandbox starts");
        Self { runtime, sandbox, folder: temp_folder("sandbox") }
    }

    fn place(&self) -> CellSpec {
        CellSpec::new(Source::open(self.folder.path()).expect("the folder can be opened"), "/workspace")
    }

    fn job(&self, interpreter: &Interpreter, code: &str) -> Job {
        Job::new(self.place(), [interpreter.program().as_os_str(), "-c".as_ref(), code.as_ref()])
    }

    /// Times of new jobs.
    fn cold_times(&self, interpreter: &Interpreter, code: &str) -> Times {
        Times::measure(
            interpreter,
            code,
            || (),
            || {
                let start = Instant::now();
                let job = self.job(interpreter, code);
                let report = self.runtime.block_on(async { self.sandbox.spawn(job).await?.wait().await });
                let elapsed = start.elapsed();
                assert!(report.as_ref().is_ok_and(toolrest_sandbox::Report::success), "{report:?}");
                elapsed.as_secs_f64() * 1e3
            },
        )
    }

    /// Times of scripts in an interpreter that waits in the pool.
    fn warm_times(&self, interpreter: &Interpreter, code: &str) -> Times {
        let place = self.place();
        let pool = self.runtime.block_on(async { Pool::new(self.sandbox.clone(), PoolOptions::default()) });
        let refill = || {
            self.runtime.block_on(pool.warm(&place, interpreter)).expect("an interpreter starts");
            thread::sleep(POOL_REFILL);
        };
        Times::measure(interpreter, code, refill, || {
            let start = Instant::now();
            let script = Script { code: code.into(), ..Script::default() };
            let report = self.runtime.block_on(async { pool.run(&place, interpreter, script).await?.wait().await });
            let elapsed = start.elapsed();
            assert!(report.as_ref().is_ok_and(toolrest_sandbox::Report::success), "{report:?}");
            elapsed.as_secs_f64() * 1e3
        })
    }
}

/// Calls `run_code` with code that must succeed, and returns the wall time.
fn run_code_ms(session: &Session, workspace: &str, language: &str, code: &str) -> f64 {
    let start = Instant::now();
    let args = json!({"language": language, "code": code});
    let path = format!("/workspaces/{workspace}/toolsets/system");
    let answer = session.post(&path, &json!({"tool": "run_code", "args": args})).success();
    assert_eq!(answer["value"]["exitCode"], 0, "{answer}");
    start.elapsed().as_secs_f64() * 1e3
}
