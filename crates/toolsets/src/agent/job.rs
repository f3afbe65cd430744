use super::Kit;
use super::answer::{Answer, count, push};
use super::arguments::{compact, number, switch};
use super::errors::{self, asked};
use super::jobs::{self, ListedJob};
use super::output::shown;
use super::run::{Data as RunData, MAX_WAIT, duration, plain_types, seconds};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use toolrest_core::{
    Action, Annotations, ApprovalId, CallCx, ErrorKind, Limits, Result, Role, Tool, ToolError, UserId, WaitedCall,
};
use toolrest_ops::exec::{EndOfInput, Ended, ProcessInfo, ProcessState};

/// Time to wait after input was written.
const AFTER_INPUT: Duration = Duration::from_secs(1);
/// Room for the lines of the tool.
const HEADER_BYTES: usize = 300;
/// Size of the pieces in which output is read.
const PIECE_BYTES: usize = 256 << 10;
/// Maximum size of the new output that `until` is searched in.
const MAX_SEARCHED_BYTES: usize = 8 << 20;

pub(super) struct Job(pub(super) Arc<Kit>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// `j3`.
    #[serde(default, alias = "job", alias = "job_id")]
    id: Option<String>,
    /// Seconds to wait for its end, at most 600. Default: 0.
    #[serde(default, deserialize_with = "number")]
    wait: Option<f64>,
    /// Wait only until its output has this text.
    #[serde(default)]
    until: Option<String>,
    /// A line to write to its input.
    #[serde(default)]
    input: Option<String>,
    /// End it.
    #[serde(default, deserialize_with = "switch")]
    stop: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Data {
    /// One job.
    One(Box<RunData>),
    /// A call that waits for a person.
    Waiting {
        /// `waiting`.
        state: &'static str,
        /// The name of the job.
        job: String,
    },
    /// A call that was approved and has run.
    Answered {
        /// `ended`.
        state: &'static str,
        /// The name of the job.
        job: String,
        /// The answer of the call.
        answer: Value,
    },
    /// The list.
    List {
        /// The jobs.
        jobs: Vec<Listed>,
    },
}

/// A job in the list.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listed {
    /// Its name.
    id: String,
    /// `running`, `ended` or `waiting` for approval.
    state: &'static str,
    /// The command, or what waits for approval.
    command: String,
    /// Run time in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    /// The exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
}

#[async_trait]
impl Tool for Job {
    const NAME: &'static str = "job";
    const DESCRIPTION: &'static str = "See what is new of a job: a command that goes on, or a call that waits for approval. Without `id`: list the jobs.";
    // Who may read may look; input and stopping need the right to run programs.
    const ACTION: Action = Action::Read;
    const ANNOTATIONS: Option<Annotations> =
        Some(Annotations { read_only: None, destructive: None, idempotent: None, open_world: None });
    type Args = Args;
    type Output = Answer<Data>;

    fn shape_schema(schema: &mut Value) {
        compact(schema);
        plain_types(schema, &[("wait", "number"), ("stop", "boolean")]);
    }

    fn timeout(&self, limits: &Limits) -> Duration {
        MAX_WAIT + limits.call_timeout
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Answer<Data>> {
        let Some(id) = args.id.as_deref().map(str::trim).filter(|id| !id.is_empty()) else {
            let answer = self.list(cx).await?;
            return Ok(self.0.finish(cx, answer));
        };
        let stop = args.stop.unwrap_or(false);
        let (number, process) = match self.0.job(cx, id).await? {
            (number, jobs::Job::Process(process)) => (number, process),
            (number, jobs::Job::Call(_)) if stop || args.input.is_some() => {
                let message = format!("j{number} waits for a person; it has no input and cannot be stopped");
                return Err(ToolError::argument("id", message));
            }
            (number, jobs::Job::Call(id)) => {
                let answer = self.waiting(cx, number, id, seconds(args.wait, Duration::ZERO)).await?;
                return Ok(self.0.finish(cx, answer));
            }
        };
        if stop || args.input.is_some() {
            cx.guard.require(Action::Exec)?;
        }
        if let Some(input) = &args.input {
            let line = if input.ends_with('\n') { input.clone() } else { format!("{input}\n") };
            self.0.processes.write(cx, &process, line.as_bytes(), EndOfInput::No).await?;
        }
        if stop {
            self.0.processes.stop(cx, &process).await?;
        }
        let default = if args.input.is_some() { AFTER_INPUT } else { Duration::ZERO };
        let wait = seconds(args.wait, default);
        let answer = self.wait_and_show(cx, number, &process, wait, args.until.as_deref()).await?;
        Ok(self.0.finish(cx, answer))
    }

    fn text(&self, output: &Answer<Data>) -> Option<String> {
        Some(output.text.clone())
    }
}

impl Job {
    async fn list(&self, cx: &CallCx) -> Result<Answer<Data>> {
        let jobs = self.0.jobs(cx).await?;
        let mut text =
            if jobs.is_empty() { "== no jobs".to_owned() } else { format!("== {}", count(jobs.len(), "job")) };
        let mut listed = Vec::new();
        for (number, job) in jobs {
            let ProcessInfo { command, state, running_for, .. } = match job {
                ListedJob::Process(process) => process,
                ListedJob::Call(approval) => {
                    let command = asked(&approval);
                    push(&mut text, format!("j{number} waiting for approval: {command}"));
                    listed.push(Listed {
                        id: format!("j{number}"),
                        state: "waiting",
                        command,
                        seconds: None,
                        exit: None,
                    });
                    continue;
                }
            };
            let (words, state, exit, time) = match &state {
                ProcessState::Running => (format!("running {}", duration(running_for)), "running", None, running_for),
                ProcessState::Ended(Ended { exit_code, duration: time, .. }) => {
                    let code = exit_code.map_or_else(|| "ended".to_owned(), |code| format!("exit {code}"));
                    (format!("{code}, {}", duration(*time)), "ended", *exit_code, *time)
                }
            };
            push(&mut text, format!("j{number} {words}: {command}"));
            listed.push(Listed { id: format!("j{number}"), state, command, seconds: Some(time.as_secs_f64()), exit });
        }
        Ok(Answer::new(text, Data::List { jobs: listed }))
    }

    /// Waits for a call that must be approved, and returns its answer.
    async fn waiting(&self, cx: &CallCx, number: u32, id: ApprovalId, wait: Duration) -> Result<Answer<Data>> {
        let access = cx.access(Role::Viewer);
        match self.0.waiting_calls.answer(access, id, wait).await? {
            WaitedCall::Waiting(approval) => {
                let text = errors::waiting(&approval, number);
                let data = Data::Waiting { state: "waiting", job: format!("j{number}") };
                Ok(Answer::new(text, data))
            }
            WaitedCall::Refused { by, reason } => {
                let by = self.address(by).await;
                let reason = reason.filter(|reason| !reason.is_empty());
                let reason = reason.map_or_else(String::new, |reason| format!(": \"{reason}\""));
                let error = ToolError::new(ErrorKind::ApprovalDenied, format!("{by} refused{reason}"));
                Err(error.with_hint("do not send it again; find another way or ask the user"))
            }
            WaitedCall::Answered { body, by, .. } => {
                let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
                let text = answer["text"].as_str().map(str::to_owned);
                let mut text = text.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned());
                if let Some(by) = by {
                    push(&mut text, format!(".. approved by {}", self.address(Some(by)).await));
                }
                Ok(Answer::new(text, Data::Answered { state: "ended", job: format!("j{number}"), answer }))
            }
        }
    }

    /// Returns the address of a person.
    async fn address(&self, user: Option<UserId>) -> String {
        let Some(user) = user else { return "a person".to_owned() };
        let addresses = self.0.sessions.addresses(vec![user]).await.unwrap_or_default();
        addresses.get(&user).cloned().unwrap_or_else(|| "a person".to_owned())
    }

    /// Waits, and returns what is new.
    async fn wait_and_show(
        &self,
        cx: &CallCx,
        number: u32,
        process: &str,
        wait: Duration,
        until: Option<&str>,
    ) -> Result<Answer<Data>> {
        let deadline = Instant::now() + wait;
        let seen = self.0.jobs.seen(cx, number);
        let until = until.filter(|until| !until.is_empty());
        let (info, new, is_met) = if let Some(until) = until {
            self.until(cx, process, seen, until, deadline).await?
        } else {
            let info = self.end(cx, process, deadline).await?;
            let (new, info) = self.new_output(cx, process, seen, info).await?;
            (info, new, false)
        };
        self.0.jobs.set_seen(cx, number, info.output_bytes.max(seen));
        if let ProcessState::Ended(ended) = &info.state {
            let output = self.0.job_output(cx, number, process).await?;
            let Answer { mut text, data, .. } = self.0.ended(cx, ended, output, Some(number)).await?;
            if let Some(until) = until.filter(|_| is_met) {
                push(&mut text, format!(".. matched: {until}"));
            }
            return Ok(Answer::new(text, Data::One(Box::new(data))));
        }
        let all = self.0.job_output(cx, number, process).await?;
        let all_lines = String::from_utf8_lossy(&all.bytes).lines().count();
        let found = shown(&new, self.0.options.run_bytes.saturating_sub(HEADER_BYTES));
        let of = if all_lines > found.lines { format!(" (of {all_lines})") } else { String::new() };
        let extent = match found.lines {
            0 if all_lines == 0 => "no output".to_owned(),
            lines => format!("{} new {}{of}: out:j{number}", lines, if lines == 1 { "line" } else { "lines" }),
        };
        let mut text = format!("== j{number} running {}, {extent}", duration(info.running_for));
        if !found.text.is_empty() {
            push(&mut text, &found.text);
        }
        match until {
            Some(until) if is_met => push(&mut text, format!(".. matched: {until}")),
            Some(until) => push(&mut text, format!(".. not seen yet: {until}")),
            None => {}
        }
        let out = (all_lines > 0).then(|| format!("out:j{number}"));
        Ok(Answer::new(text, Data::One(Box::new(RunData::running(&info, found.text, out, number)))))
    }

    /// Waits for the end of a process until a time.
    async fn end(&self, cx: &CallCx, process: &str, deadline: Instant) -> Result<ProcessInfo> {
        loop {
            // A single wait is shorter than the time limit of other calls.
            let info = self.0.processes.wait(cx, process, deadline.saturating_duration_since(Instant::now())).await?;
            if info.state.is_over() || Instant::now() >= deadline {
                return Ok(info);
            }
        }
    }

    /// Returns the output from an offset on, as far as it is there.
    async fn new_output(
        &self,
        cx: &CallCx,
        process: &str,
        mut offset: u64,
        mut info: ProcessInfo,
    ) -> Result<(String, ProcessInfo)> {
        let mut text = String::new();
        while text.len() < MAX_SEARCHED_BYTES {
            let read = self.0.processes.output(cx, process, offset, PIECE_BYTES, Duration::ZERO).await?;
            let (piece, now) = read;
            let is_last = piece.text.is_empty();
            offset = piece.next_offset;
            text.push_str(&piece.text);
            info = now;
            if is_last {
                break;
            }
        }
        info.output_bytes = offset;
        Ok((text, info))
    }

    /// Waits until the new output has a text, for the end of the process, or until a time.
    async fn until(
        &self,
        cx: &CallCx,
        process: &str,
        seen: u64,
        until: &str,
        deadline: Instant,
    ) -> Result<(ProcessInfo, String, bool)> {
        let (mut text, mut offset) = (String::new(), seen);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (piece, mut info) = self.0.processes.output(cx, process, offset, PIECE_BYTES, left).await?;
            // The text may begin in the piece before.
            let from = text.len().saturating_sub(until.len());
            let from = (0..=from).rev().find(|from| text.is_char_boundary(*from)).unwrap_or(0);
            text.push_str(&piece.text);
            offset = piece.next_offset;
            info.output_bytes = offset;
            let is_met = text[from..].contains(until);
            let is_over = info.state.is_over() && piece.text.is_empty();
            if is_met || is_over || (piece.text.is_empty() && Instant::now() >= deadline) {
                return Ok((info, text, is_met));
            }
            if text.len() > MAX_SEARCHED_BYTES {
                return Err(ToolError::new(ErrorKind::ResponseTooLarge, "the job prints too much to wait for a text")
                    .with_hint("wait without `until`, or grep its out:"));
            }
        }
    }
}
