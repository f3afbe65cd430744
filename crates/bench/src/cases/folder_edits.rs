//! Reading, editing and patching in a folder, by the engine in the process, compared with plain system calls and git.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use toolrest_core::{
    Call, CallId, Caller, Engine, JsonText, Limits, NoRecords, NoRules, Permission, UserId, WorkspaceId,
};
use toolrest_directory::{Change, CommitOptions, Expect, Hash, Parents, Root};
use toolrest_edit::{StopFlag, diff, patch};
use toolrest_store::{Location, NewUser, Sqlite, Store};
use toolrest_testkit::temp_folder;
use toolrest_workspaces::{AllowedRoot, FolderOptions, HistoryLimits, Scratch, StoredWorkspaces};

use super::Effort;
use crate::report::{Figure, Report, Target, median, number};

const FILE_BYTES: usize = 10_000;
const READS: usize = 2000;
const EDITS: usize = 200;
const PATCHES: usize = 500;
const GIT_RUNS: usize = 20;

pub fn run(effort: Effort, report: &mut Report) {
    eprintln!("reading, editing and patching in a folder");
    let folders = Folders::new();
    report.section(
        "Reading and editing in a folder",
        "Tool calls through the engine in the process, with access checks and history in SQLite on the same disk. Plain: \
         the new file is written, synced and renamed over the old one, and the folder synced, in turns with ours.",
    );
    let mut reads = Vec::new();
    let mut ratios = [Vec::new(), Vec::new()];
    let mut plain_ms = Vec::new();
    for _ in 0..effort.rounds {
        reads.push(folders.read_us());
        let measured = folders.edits();
        for (all, ratio) in ratios.iter_mut().zip(measured.ratios) {
            all.push(ratio);
        }
        plain_ms.push(measured.plain_ms);
    }
    report.add(Figure {
        case: format!("read of {FILE_BYTES} bytes (`file.read`)"),
        unit: "µs",
        rounds: reads,
        target: Target::AtMost(30.0),
        notes: format!("median of {READS} reads"),
    });
    let [commit, edit] = ratios;
    let notes = format!("times the plain replacement, which took {} ms", number(median(&plain_ms)));
    let case = "one-file commit on disk, without history".to_owned();
    report.add(Figure { case, unit: "×", rounds: commit, target: Target::AtMost(1.3), notes: notes.clone() });
    let case = "one-file edit (`edit` of coding), with durable history".to_owned();
    report.add(Figure { case, unit: "×", rounds: edit, target: Target::AtMost(1.3), notes });
    patches(effort, report);
}

fn text(lines: usize, seed: usize) -> String {
    (0..lines).map(|line| format!("line {line} of {seed}, as long as lines are\n")).collect::<Vec<_>>().concat()
}

fn median_of(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A folder that is a workspace, one that is not, and the engine.
struct Folders {
    runtime: Runtime,
    engine: Engine,
    user: UserId,
    workspace: WorkspaceId,
    home: TempDir,
}

struct Edits {
    /// Times of a commit on disk and of a whole edit, divided by the time of a plain replacement.
    ratios: [f64; 2],
    plain_ms: f64,
}

impl Folders {
    fn new() -> Self {
        let home = temp_folder("folder-edits");
        for name in ["root", "plain", "journals"] {
            fs::create_dir_all(home.path().join(name)).expect("a new folder");
        }
        let runtime = Runtime::new().expect("a runtime");
        let (engine, user, workspace) = runtime.block_on(async {
            let store: Arc<dyn Store> =
                Arc::new(Sqlite::open(&home.path().join("toolrest.db"), 0).expect("a database"));
            let new = NewUser { email: "bench@example.com".into(), password_hash: "none".into(), full_name: None };
            let user = store.create_user(new).await.expect("a user").id;
            let root = home.path().join("root").canonicalize().expect("the folder is there");
            let options = FolderOptions {
                allowed_roots: vec![AllowedRoot::for_all(root.clone())],
                journal_dir: home.path().join("journals"),
                guarded: Vec::new(),
                history: HistoryLimits::default(),
                ..FolderOptions::default()
            };
            let scratch = Scratch::open(&home.path().join("checkouts")).expect("a folder for checkouts");
            let workspaces = StoredWorkspaces::new(Arc::clone(&store), options, scratch);
            let place =
                Location::Directory { root: workspaces.allowed_root(&root, "anyone").await.expect("it is allowed") };
            let workspace = store.create_workspace(user, "bench".into(), place).await.expect("a workspace").id;
            let engine = Engine::new(
                toolrest_toolsets::all(&toolrest_toolsets::Services::none()),
                Arc::new(workspaces),
                Arc::new(NoRules),
                Arc::new(NoRecords),
                Limits::default(),
            );
            (engine, user, workspace)
        });
        let folders = Self { runtime, engine, user, workspace, home };
        fs::write(folders.path("root/read.txt"), &text(300, 0)[..FILE_BYTES]).expect("a file");
        folders
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join(name)
    }

    fn call(&self, toolset: &str, tool: &str, args: &serde_json::Value) {
        let call = Call {
            id: CallId::new(),
            correlation: String::new(),
            toolset: toolset.to_owned(),
            tool: tool.to_owned(),
            args: JsonText::of(args).expect("arguments"),
            caller: Caller::person(self.user),
            workspace: self.workspace,
            session: String::new(),
        };
        self.runtime
            .block_on(self.engine.call(&call, &Permission::Ask, |outcome| outcome.json()))
            .expect("the call succeeds");
    }

    fn read_us(&self) -> f64 {
        let args = json!({"path": "read.txt"});
        let mut times: Vec<Duration> = (0..READS).map(|_| timed(|| self.call("file", "file.read", &args))).collect();
        median_of(&mut times) * 1e6
    }

    /// Replaces a file by plain system calls, by a commit on disk, and by a tool, in turns.
    fn edits(&self) -> Edits {
        let body = &text(300, 0)[..FILE_BYTES];
        let content = |round: usize| format!("round {round}\n{body}");
        for name in ["root/edited.txt", "plain/edited.txt"] {
            fs::write(self.path(name), content(0)).expect("a file");
        }
        let root = Root::open(&self.path("plain")).expect("the folder can be opened");
        let (mut plain, mut commits, mut edits) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..EDITS {
            let (old, new) = (content(round), content(round + 1));
            plain.push(timed(|| replace_plainly(&self.path("plain"), new.as_bytes())));
            let change = Change::Write {
                path: "edited.txt".into(),
                bytes: new.into_bytes(),
                expect: Expect::Hash(Hash::of(old.as_bytes())),
                mode: None,
                parents: Parents::Required,
            };
            commits.push(timed(|| {
                root.commit(&[change], &self.path("journals"), &CommitOptions::default()).expect("a commit");
            }));
            let args = json!({
                "filePath": "edited.txt",
                "oldString": format!("round {round}\n"),
                "newString": format!("round {}\n", round + 1),
            });
            edits.push(timed(|| self.call("coding", "edit", &args)));
        }
        let plain = median_of(&mut plain);
        Edits { ratios: [median_of(&mut commits) / plain, median_of(&mut edits) / plain], plain_ms: plain * 1e3 }
    }
}

fn replace_plainly(folder: &Path, bytes: &[u8]) {
    let mut file = File::create(folder.join("temporary")).expect("a temporary file");
    file.write_all(bytes).expect("it is written");
    file.sync_all().expect("it is synced");
    fs::rename(folder.join("temporary"), folder.join("replaced.txt")).expect("it is renamed");
    File::open(folder).and_then(|folder| folder.sync_all()).expect("the folder is synced");
}

/// Applies patches of three hunks in memory, and with `git apply`.
fn patches(effort: Effort, report: &mut Report) {
    let before = text(500, 1);
    let after: String = before
        .lines()
        .enumerate()
        .map(|(line, text)| if line % 200 == 50 { format!("changed {line}\n") } else { format!("{text}\n") })
        .collect::<Vec<_>>()
        .concat();
    let made = diff::unified(b"file.txt", Some(before.as_bytes()), Some(after.as_bytes()), StopFlag::never());
    let folder = temp_folder("patches");
    fs::write(folder.path().join("change.patch"), &made).expect("a patch");
    let (mut ours, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        let apply = || {
            let files = patch::parse(made.as_bytes()).expect("a patch");
            let applied = patch::apply(&files[0], before.as_bytes(), toolrest_edit::Limits::of_bytes(usize::MAX))
                .expect("the patch applies");
            assert_eq!(applied.content.len(), after.len());
        };
        let mut times: Vec<Duration> = (0..PATCHES).map(|_| timed(apply)).collect();
        let our = median_of(&mut times);
        let mut theirs: Vec<Duration> = (0..GIT_RUNS)
            .map(|_| {
                fs::write(folder.path().join("file.txt"), &before).expect("a file");
                timed(|| {
                    let mut git = Command::new("git");
                    git.args(["apply", "change.patch"]).current_dir(folder.path()).stderr(Stdio::inherit());
                    assert!(git.status().expect("git runs").success());
                })
            })
            .collect();
        ours.push(our * 1e3);
        ratios.push(our / median_of(&mut theirs));
    }
    report.section(
        "Patches",
        "A patch of three hunks for a file of 500 lines: parsed and applied in memory, and by the command `git apply`.",
    );
    let case = "parse and apply, p50".to_owned();
    report.add(Figure { case, unit: "ms", rounds: ours, target: Target::AtMost(0.5), notes: String::new() });
    let case = "the same, as a fraction of the time of `git apply`".to_owned();
    report.add(Figure { case, unit: "×", rounds: ratios, target: Target::AtMost(1.0), notes: String::new() });
}
