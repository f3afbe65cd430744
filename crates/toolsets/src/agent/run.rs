use super::Kit;
use super::answer::{Answer, append, push, short_commit};
use super::arguments::{compact, number, switch};
use super::jobs::{Watched, label};
use super::output::{extent, kilobytes, shown};
use crate::error_text::relative_notice;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use toolrest_core::{
    Action, Annotations, CallCx, CheckedIn, CommitId, ErrorKind, FileType, Intent, LeftOut, LeftOutReason, Limits,
    ProgramChange, ProgramChangeKind, ProgramConflict, Result, Tool, ToolError, WsPath,
};
use toolrest_ops::exec::{
    CommandOutput, Ended, FrontCommand, FrontEnd, ProcessInfo, ProcessState, Program, RequestedLimits, exec_intent,
};

/// Maximum time that a call waits.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(600);
/// Time in which a command in the background may end at once, because it is wrong.
const EARLY_DEATH: Duration = Duration::from_secs(2);
/// Maximum size of the output of a command that is kept: its last part.
const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// What is shown of the output of a command that goes on.
const SO_FAR_BYTES: usize = 3_000;
/// Room for the header of an answer.
const HEADER_BYTES: usize = 300;
/// Number of changes, conflicts and places without history that are named.
const MAX_NAMED: usize = 20;
/// Exit code of a command whose reader went away, such as in `yes | head`.
const BROKEN_PIPE: i32 = 141;

/// What makes programs print plainly and never wait for input.
const ENVIRONMENT: [(&str, &str); 9] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("npm_config_yes", "true"),
    ("PIP_PROGRESS_BAR", "off"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

pub(super) struct Run(pub(super) Arc<Kit>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    #[serde(alias = "cmd")]
    command: String,
    /// Folder. Default: the project root.
    #[serde(default, alias = "workdir", alias = "directory")]
    cwd: Option<String>,
    /// Seconds to wait, at most 600. Default: 45.
    #[serde(default, deserialize_with = "number")]
    wait: Option<f64>,
    /// Make it a job at once and let it see later edits: for servers and watchers.
    #[serde(default, deserialize_with = "switch")]
    background: Option<bool>,
}

/// A command, or what is known of it so far.
#[derive(Serialize, JsonSchema)]
pub(super) struct Data {
    /// `running` or `ended`.
    state: &'static str,
    /// The exit code; 128 and the number of the signal if one ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    /// The exit codes of the commands of the last pipe.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pipe: Vec<i32>,
    /// Run time in seconds.
    seconds: f64,
    /// The output that is shown.
    output: String,
    /// The name of the whole output.
    #[serde(skip_serializing_if = "Option::is_none")]
    out: Option<String>,
    /// The commit of its changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<CommitId>,
    /// Its changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    changes: Vec<ProgramChange>,
    /// Its changes that have no history.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    left_out: Vec<Left>,
    /// Files that somebody else changed meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    conflicts: Vec<ProgramConflict>,
    /// The name of the job, if it goes on or went on as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
}

/// A change without history.
#[derive(Serialize, JsonSchema)]
pub(super) struct Left {
    /// The path.
    path: String,
    /// Why.
    reason: LeftOutReason,
}

#[async_trait]
impl Tool for Run {
    const NAME: &'static str = "run";
    const DESCRIPTION: &'static str = "Run a bash command in a sandbox, in the project. Long output is shortened for you and kept whole, so do not pipe it through head or tail. Files it changes become one commit. Each call is a new shell. There is no terminal and no input: pass flags like --yes. What is not done after `wait` seconds goes on as a job.";
    const ACTION: Action = Action::Exec;
    // Without hints, clients ask their users.
    const ANNOTATIONS: Option<Annotations> =
        Some(Annotations { read_only: None, destructive: None, idempotent: None, open_world: None });
    type Args = Args;
    type Output = Answer<Data>;

    fn shape_schema(schema: &mut Value) {
        compact(schema);
        plain_types(schema, &[("wait", "number"), ("background", "boolean")]);
    }

    fn timeout(&self, limits: &Limits) -> Duration {
        MAX_WAIT + limits.call_timeout
    }

    fn intents(&self, args: &Args) -> Vec<Intent> {
        vec![exec_intent("bash", &args.command)]
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Answer<Data>> {
        if args.command.trim().is_empty() {
            return Err(ToolError::argument("command", "`command` is empty"));
        }
        let folder = match args.cwd.as_deref().map(str::trim).filter(|folder| !folder.is_empty()) {
            Some(folder) => self.folder(cx, folder).await?,
            None => None,
        };
        let program = Program {
            env: ENVIRONMENT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Program::merged_command(&args.command, folder.as_ref().map(WsPath::without_slash))
        };
        let answer = if args.background.unwrap_or(false) {
            self.in_background(cx, args.command, program).await?
        } else {
            let wait = seconds(args.wait, self.0.options.wait);
            self.in_front(cx, args.command, program, wait).await?
        };
        Ok(self.0.finish(cx, answer))
    }

    fn text(&self, output: &Answer<Data>) -> Option<String> {
        Some(output.text.clone())
    }
}

/// Gives optional properties one type.
pub(super) fn plain_types(schema: &mut Value, types: &[(&str, &str)]) {
    for (name, kind) in types {
        if let Some(property) = schema.pointer_mut(&format!("/properties/{name}")).and_then(Value::as_object_mut) {
            property.insert("type".to_owned(), (*kind).into());
        }
    }
}

/// Returns how long to wait.
pub(super) fn seconds(given: Option<f64>, default: Duration) -> Duration {
    let given = given.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(MAX_WAIT));
    given.unwrap_or(default).min(MAX_WAIT)
}

impl Run {
    async fn folder(&self, cx: &CallCx, named: &str) -> Result<Option<WsPath>> {
        let located = self.0.locate(cx, named).await?;
        if located.path.is_root() {
            return Ok(None);
        }
        match located.entry {
            Some(entry) if entry.file_type == FileType::Folder => Ok(Some(located.path)),
            Some(_) => {
                let message = format!("`cwd` is a file: {}", located.path.without_slash());
                Err(ToolError::new(ErrorKind::NotADirectory, message).with_hint("name its folder, or leave `cwd` out"))
            }
            None => Err(self.0.not_found(cx, &located.path).await),
        }
    }

    async fn in_front(&self, cx: &CallCx, command: String, program: Program, wait: Duration) -> Result<Answer<Data>> {
        let front = FrontCommand {
            command: label(&command),
            program,
            requested: RequestedLimits::default(),
            wait,
            output_bytes: MAX_OUTPUT_BYTES,
        };
        let mut watched = Watched { kit: &self.0, cx, command: &command, is_answered: false };
        let end = self.0.processes.run_in_front(cx, front).await;
        watched.is_answered = true;
        match end? {
            FrontEnd::Ended(ended, output) => {
                self.0.note_commit(cx, ended.checked_in.commit, &format!("run `{}`", label(&command))).await;
                self.0.ended(cx, &ended, output, None).await
            }
            FrontEnd::Background(process, output) => {
                let number = self.0.begin_job(cx, &process.id, &command);
                self.0.jobs.set_seen(cx, number, process.output_bytes);
                let next = format!("job {{\"id\":\"j{number}\",\"wait\":120}}");
                Ok(going_on(&process, &output, number, "still running after", &next))
            }
        }
    }

    async fn in_background(&self, cx: &CallCx, command: String, program: Program) -> Result<Answer<Data>> {
        let process = self.0.processes.start(cx, label(&command), program, RequestedLimits::default()).await?;
        let number = self.0.begin_job(cx, &process.id, &command);
        let process = self.0.processes.wait(cx, &process.id, EARLY_DEATH).await?;
        let output = self.0.job_output(cx, number, &process.id).await?;
        self.0.jobs.set_seen(cx, number, output.dropped_bytes + output.bytes.len() as u64);
        match &process.state {
            ProcessState::Ended(ended) => self.0.ended(cx, ended, output, Some(number)).await,
            ProcessState::Running => {
                let next = format!("job {{\"id\":\"j{number}\"}} shows what is new");
                Ok(going_on(&process, &output, number, "running,", &next))
            }
        }
    }
}

/// Returns the answer for a command that goes on.
fn going_on(process: &ProcessInfo, output: &CommandOutput, number: u32, state: &str, next: &str) -> Answer<Data> {
    let text = String::from_utf8_lossy(&output.bytes);
    let found = shown(&text, SO_FAR_BYTES);
    let so_far = match found.lines {
        0 => "no output so far".to_owned(),
        1 => format!("1 line so far: out:j{number}"),
        lines => format!("{lines} lines so far: out:j{number}"),
    };
    let mut answer = format!("== {state} {}: job j{number}; {so_far}", duration(process.running_for));
    if !found.text.is_empty() {
        push(&mut answer, &found.text);
    }
    push(&mut answer, format!(".. {next}"));
    let out = (found.lines > 0).then(|| format!("out:j{number}"));
    Answer::new(answer, Data::running(process, found.text, out, number))
}

impl Data {
    pub(super) fn running(process: &ProcessInfo, output: String, out: Option<String>, number: u32) -> Self {
        Self {
            state: "running",
            exit: None,
            pipe: Vec::new(),
            seconds: process.running_for.as_secs_f64(),
            output,
            out,
            commit: None,
            changes: Vec::new(),
            left_out: Vec::new(),
            conflicts: Vec::new(),
            job: Some(format!("j{number}")),
        }
    }
}

/// Returns a time in words: `0.2 s`, `81 s`.
pub(super) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

impl Kit {
    /// Returns the answer for a command that has ended; with the number of its job if it was one.
    pub(super) async fn ended(
        &self,
        cx: &CallCx,
        ended: &Ended,
        output: CommandOutput,
        job: Option<u32>,
    ) -> Result<Answer<Data>> {
        let mut notes = notes(ended);
        if output.dropped_bytes > 0 {
            notes.insert(0, format!(".. the first {} of the output are not kept", kilobytes(output.dropped_bytes)));
        }
        let notes_bytes: usize = notes.iter().map(|note| note.len() + 1).sum();
        let text = String::from_utf8_lossy(&output.bytes);
        let found = shown(&text, self.options.run_bytes.saturating_sub(notes_bytes + HEADER_BYTES));
        let is_kept = found.is_shortened || job.is_some() && found.lines > 0;
        let out = match job {
            _ if !is_kept => None,
            Some(number) => Some(format!("out:j{number}")),
            None => Some(self.keep(cx, &text).await?),
        };
        let name = job.map_or_else(String::new, |number| format!("j{number} "));
        let mut answer = format!("== {name}{}, {}", state(ended), duration(ended.duration));
        match &out {
            Some(out) => append(&mut answer, format!(", {}: {out}", extent(found.lines, output.bytes.len() as u64))),
            None if found.lines == 0 => answer.push_str(", no output"),
            None => {}
        }
        if !found.text.is_empty() {
            push(&mut answer, &found.text);
        }
        for note in notes {
            push(&mut answer, note);
        }
        let CheckedIn { commit, changed, conflicts, left_out, .. } = ended.checked_in.clone();
        let left = |LeftOut { path, reason }| Left { path: path.trim_start_matches('/').to_owned(), reason };
        let data = Data {
            state: "ended",
            exit: ended.exit_code,
            pipe: ended.pipe_codes.clone(),
            seconds: ended.duration.as_secs_f64(),
            output: found.text,
            out,
            commit,
            changes: changed,
            left_out: left_out.into_iter().map(left).collect(),
            conflicts,
            job: job.map(|number| format!("j{number}")),
        };
        Ok(Answer::new(answer, data))
    }
}

/// Returns how a command ended: `exit 1`, `exit 0 (pipe: 1 0)`, `killed (memory limit)`, `stopped`.
fn state(ended: &Ended) -> String {
    if let Some(limit) = &ended.limit {
        return format!("killed ({limit} limit)");
    }
    let was_stopped = ended.reason.as_ref().is_some_and(|reason| reason.text.starts_with("It was stopped"));
    if was_stopped {
        return "stopped".to_owned();
    }
    match ended.exit_code {
        None => "ended without a report".to_owned(),
        Some(code @ 129..=159) => format!("exit {code} (signal {})", code - 128),
        Some(0) if ended.pipe_codes.iter().any(|code| *code != 0 && *code != BROKEN_PIPE) => {
            let codes: Vec<String> = ended.pipe_codes.iter().map(ToString::to_string).collect();
            format!("exit 0 (pipe: {})", codes.join(" "))
        }
        Some(code) => format!("exit {code}"),
    }
}

/// Returns what became of the changes of a command.
fn notes(ended: &Ended) -> Vec<String> {
    let CheckedIn { commit, changed, conflicts, left_out, .. } = &ended.checked_in;
    let mut notes = Vec::new();
    if let Some(commit) = commit {
        let mut named: Vec<String> = changed.iter().take(MAX_NAMED).map(named).collect();
        let more = changed.len().saturating_sub(MAX_NAMED);
        if more > 0 {
            named.push(format!("{more} more"));
        }
        notes.push(format!(".. changed: {}, commit {}", named.join(", "), short_commit(*commit)));
    }
    for ProgramConflict { path, kept_as, reason } in conflicts.iter().take(MAX_NAMED) {
        let own =
            kept_as.as_ref().map_or_else(String::new, |copy| format!(", the command's is {}", copy.without_slash()));
        notes.push(format!(".. conflict: {}: {reason}; theirs stands{own}", path.without_slash()));
    }
    notes.extend(without_history(left_out));
    if let Some(reason) = &ended.reason
        && reason.text != "It was stopped"
    {
        notes.push(format!(".. {}", relative_notice(reason)));
    }
    notes
}

fn named(change: &ProgramChange) -> String {
    let path = change.path.without_slash();
    match (change.change, &change.from) {
        (ProgramChangeKind::Moved, Some(from)) => format!("R {} -> {path}", from.without_slash()),
        (ProgramChangeKind::Created, _) => format!("A {path}"),
        (ProgramChangeKind::Removed, _) => format!("D {path}"),
        (ProgramChangeKind::Changed | ProgramChangeKind::Moved, _) => format!("M {path}"),
    }
}

/// Returns the changes without history, by their place at the root and by reason.
fn without_history(left_out: &[LeftOut]) -> Option<String> {
    let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
    for LeftOut { path, reason } in left_out {
        let path = path.trim_start_matches('/');
        let place = path.split_once('/').map_or_else(|| path.to_owned(), |(first, _)| format!("{first}/"));
        // What git does in its own folder is no news.
        if place == ".git/" && *reason == LeftOutReason::Ignored {
            continue;
        }
        let reason = serde_json::to_value(reason).ok();
        let reason = reason.as_ref().and_then(Value::as_str).unwrap_or_default().replace('_', " ");
        *places.entry((place, reason)).or_default() += 1;
    }
    if places.is_empty() {
        return None;
    }
    let more = places.len().saturating_sub(MAX_NAMED);
    let place = |((place, reason), number): ((String, String), usize)| {
        let files =
            if place.ends_with('/') { format!(", {}", super::answer::count(number, "file")) } else { String::new() };
        format!("{place} ({reason}{files})")
    };
    let mut named: Vec<String> = places.into_iter().take(MAX_NAMED).map(place).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    Some(format!(".. not in history: {}", named.join(", ")))
}
