//! Programs in the sandbox: by themselves and as calls of tools, against a plain spawn of the same program.

mod checkouts;
mod many;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;
use toolrest_sandbox::{Interpreter, Job, Language, Options, Place, Pool, PoolOptions, Sandbox, Script, Source};

use super::Effort;
use crate::process::Folder;
use crate::report::{Figure, Report, Target, median, number};
use crate::server::{Backend, Server, Session};

/// How many of each are measured in a round.
const RUNS: usize = 51;

/// Long enough for an interpreter to have started again, and to wait.
const SETTLE: Duration = Duration::from_millis(60);

pub fn run(toolrest: &Path, effort: Effort, report: &mut Report) {
    eprintln!("programs in the sandbox");
    let (bash, python) = (find(Language::Bash), find(Language::Python));
    report.section(
        "Programs in the sandbox",
        format!(
            "Times a plain spawn of the same program, in turns with it; each round is the ratio of the medians of {RUNS}. \
             Cold: a new job of the sandbox, in the process. A warm interpreter by itself: one that waits in the sandbox's pool. Warm `run_code`: a whole call of `run_code` over HTTP, rights, record, \
             checkout and check-in included, for which an interpreter waits."
        ),
    );
    let cold = Cold::new(toolrest);
    for (case, interpreter, code, bound) in
        [("cold `bash -c true`", &bash, "true", 3.2), ("cold `python3 -c pass`", &python, "pass", 1.35)]
    {
        let pair = || cold.times(interpreter, code);
        add(report, case, Target::AtMost(bound), effort, pair);
    }
    for (case, interpreter, code) in
        [("warm interpreter by itself, Python", &python, "pass"), ("warm interpreter by itself, bash", &bash, "true")]
    {
        add(report, case, Target::None, effort, || cold.warm_times(interpreter, code));
    }
    many::run(&cold, &bash, report);
    drop(cold);
    let server = Server::start(toolrest, Backend::Sqlite, "programs");
    let mut session = server.session();
    let workspace = session.create_workspace("programs");
    session.write(&workspace, "/a.txt", "a file");
    for (case, name, interpreter, code, bound) in [
        ("warm `run_code`, Python", "python", &python, "pass", 0.45),
        ("warm `run_code`, bash", "bash", &bash, "true", 0.6),
    ] {
        let warm = Warm { session: &mut session, workspace: &workspace, language: name, interpreter, code };
        add_warm(report, case, Target::AtMost(bound), effort, warm);
    }
    drop(session);
    checkouts::run(&server, effort, report);
}

fn find(language: Language) -> Interpreter {
    Interpreter::find(language).expect("python3 and bash are installed (Debian: apt-get install python3 bash)")
}

/// Times of a plain spawn and of ours, in turns.
struct Times {
    plain: Vec<f64>,
    ours: Vec<f64>,
}

fn add(report: &mut Report, case: &str, target: Target, effort: Effort, times: impl Fn() -> Times) {
    let rounds: Vec<Times> = (0..effort.rounds).map(|_| times()).collect();
    add_rounds(report, case, target, &rounds);
}

fn add_warm(report: &mut Report, case: &str, target: Target, effort: Effort, mut warm: Warm) {
    let rounds: Vec<Times> = (0..effort.rounds).map(|_| warm.times()).collect();
    add_rounds(report, case, target, &rounds);
}

fn add_rounds(report: &mut Report, case: &str, target: Target, rounds: &[Times]) {
    let middle = |times: fn(&Times) -> &Vec<f64>| {
        number(median(&rounds.iter().map(|round| median(times(round))).collect::<Vec<_>>()))
    };
    report.add(Figure {
        case: case.to_owned(),
        unit: "×",
        rounds: rounds.iter().map(|round| median(&round.ours) / median(&round.plain)).collect(),
        target,
        beside: format!("{} ms, plain {} ms", middle(|times| &times.ours), middle(|times| &times.plain)),
    });
}

fn plain_ms(interpreter: &Interpreter, code: &str) -> f64 {
    let begun = Instant::now();
    let output = Command::new(interpreter.program()).args(["-c", code]).output().expect("the interpreter starts");
    assert!(output.status.success(), "{output:?}");
    begun.elapsed().as_secs_f64() * 1e3
}

/// A sandbox of our own, with the binary as its launcher.
struct Cold {
    runtime: Runtime,
    sandbox: Sandbox,
    folder: Folder,
}

impl Cold {
    fn new(toolrest: &Path) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let options = Options { program: toolrest.to_owned(), ..Options::default() };
        let sandbox = runtime.block_on(async { Sandbox::start(options) }).expect("the sandbox starts");
        let folder = Folder::new("sandbox");
        fs::create_dir_all(folder.path()).expect("a new folder");
        Self { runtime, sandbox, folder }
    }

    fn job(&self, interpreter: &Interpreter, code: &str) -> Job {
        let place = Place::new(Source::open(self.folder.path()).expect("the folder is there"), "/workspace");
        Job::new(place, [interpreter.program().as_os_str(), "-c".as_ref(), code.as_ref()])
    }

    fn times(&self, interpreter: &Interpreter, code: &str) -> Times {
        let mut times = Times { plain: Vec::new(), ours: Vec::new() };
        for _ in 0..RUNS {
            times.plain.push(plain_ms(interpreter, code));
            let begun = Instant::now();
            let job = self.job(interpreter, code);
            let report = self.runtime.block_on(async { self.sandbox.spawn(job).await?.wait().await });
            times.ours.push(begun.elapsed().as_secs_f64() * 1e3);
            let report = report.expect("the sandbox runs jobs");
            assert!(report.success(), "{report:?}");
        }
        times
    }
}

impl Cold {
    /// Times of an interpreter that waits, without a tool around it.
    fn warm_times(&self, interpreter: &Interpreter, code: &str) -> Times {
        let mut times = Times { plain: Vec::new(), ours: Vec::new() };
        let place = Place::new(Source::open(self.folder.path()).expect("the folder is there"), "/workspace");
        let pool = self.runtime.block_on(async { Pool::new(self.sandbox.clone(), PoolOptions::default()) });
        for _ in 0..RUNS {
            self.runtime.block_on(pool.warm(&place, interpreter)).expect("an interpreter waits");
            thread::sleep(SETTLE);
            times.plain.push(plain_ms(interpreter, code));
            let begun = Instant::now();
            let script = Script { code: code.into(), ..Script::default() };
            let report = self.runtime.block_on(async { pool.run(&place, interpreter, script).await?.wait().await });
            times.ours.push(begun.elapsed().as_secs_f64() * 1e3);
            let report = report.expect("the sandbox runs jobs");
            assert!(report.success(), "{report:?}");
        }
        times
    }
}

/// Calls of `run_code` for which an interpreter waits.
struct Warm<'a, 'b> {
    session: &'a mut Session<'b>,
    workspace: &'a str,
    language: &'static str,
    interpreter: &'a Interpreter,
    code: &'static str,
}

impl Warm<'_, '_> {
    fn times(&mut self) -> Times {
        let mut times = Times { plain: Vec::new(), ours: Vec::new() };
        self.call_ms();
        for _ in 0..RUNS {
            thread::sleep(SETTLE);
            times.plain.push(plain_ms(self.interpreter, self.code));
            times.ours.push(self.call_ms());
        }
        times
    }

    fn call_ms(&mut self) -> f64 {
        run_code_ms(self.session, self.workspace, self.language, self.code)
    }
}

/// Calls `run_code` with code that must end well, and gives how long that took.
fn run_code_ms(session: &mut Session, workspace: &str, language: &str, code: &str) -> f64 {
    let begun = Instant::now();
    let args = json!({"language": language, "code": code});
    let answer = session
        .post(&format!("/api/v1/workspaces/{workspace}/toolsets/system"), &json!({"tool": "run_code", "args": args}));
    assert_eq!(answer["value"]["exitCode"], 0, "{answer}");
    begun.elapsed().as_secs_f64() * 1e3
}
