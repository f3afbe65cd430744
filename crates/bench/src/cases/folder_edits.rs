//! Reading, editing and patching in a folder: by the engine, in the process, against what a person would do by hand.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;
use toolrest_core::{
    AllowAll, Call, CallId, CallRecord, Caller, Engine, JsonText, Limits, Recorder, UserId, WorkspaceId,
};
use toolrest_directory::{Change, CommitOptions, Expect, Hash, Parents, Root};
use toolrest_edit::{StopFlag, diff, patch};
use toolrest_store::{
    AllowedRoot, FolderOptions, HistoryLimits, NewUser, Place, Scratch, Sqlite, Store, StoredWorkspaces,
};

use super::Effort;
use crate::process::Folder;
use crate::report::{Figure, Report, Target, median, number};

const FILE_BYTES: usize = 10_000;
const READS: usize = 2000;
const EDITS: usize = 200;
const PATCHES: usize = 500;
const GIT_RUNS: usize = 20;

pub fn git_version() -> String {
    let output = Command::new("git").arg("--version").output().expect("git is installed (Debian: apt-get install git)");
    String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("git version ").to_owned()
}

pub fn run(effort: Effort, report: &mut Report) {
    eprintln!("reading, editing and patching in a folder");
    let room = Room::new();
    report.section(
        "Reading and editing in a folder",
        "In the process: calls of tools through the engine, with rights checked and history kept in SQLite on the same \
         disk. By hand: the new file written, synced and renamed over the old one, and the folder synced, in turns with \
         ours.",
    );
    let mut reads = Vec::new();
    let mut ratios = [Vec::new(), Vec::new()];
    let mut by_hand_ms = Vec::new();
    for _ in 0..effort.rounds {
        reads.push(room.read_us());
        let measured = room.edits();
        for (all, ratio) in ratios.iter_mut().zip(measured.ratios) {
            all.push(ratio);
        }
        by_hand_ms.push(measured.by_hand_ms);
    }
    report.add(Figure {
        case: format!("read of {FILE_BYTES} bytes (`file.read`)"),
        unit: "µs",
        rounds: reads,
        target: Target::AtMost(30.0),
        beside: "median of a round".to_owned(),
    });
    let [commit, edit] = ratios;
    let beside = format!("times the work by hand, which took {} ms", number(median(&by_hand_ms)));
    let case = "one-file commit on disk, without history".to_owned();
    report.add(Figure { case, unit: "×", rounds: commit, target: Target::AtMost(1.3), beside: beside.clone() });
    let case = "one-file edit (`edit` of coding), history kept durably".to_owned();
    report.add(Figure { case, unit: "×", rounds: edit, target: Target::AtMost(1.3), beside });
    patches(effort, report);
}

fn text(lines: usize, salt: usize) -> String {
    (0..lines).map(|line| format!("line {line} of {salt}, as long as lines are\n")).collect::<Vec<_>>().concat()
}

fn median_of(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

struct NoRecords;

impl Recorder for NoRecords {
    fn record(&self, _: CallRecord) {}
}

/// A folder that is a workspace, and one that is not.
struct Room {
    runtime: Runtime,
    engine: Engine,
    user: UserId,
    workspace: WorkspaceId,
    folder: Folder,
}

struct Edits {
    /// Of a commit on disk, and of a whole edit.
    ratios: [f64; 2],
    by_hand_ms: f64,
}

impl Room {
    fn new() -> Self {
        let folder = Folder::new("folder");
        for name in ["root", "plain", "journals"] {
            fs::create_dir_all(folder.path().join(name)).expect("a new folder");
        }
        let runtime = Runtime::new().expect("a runtime");
        let (engine, user, workspace) = runtime.block_on(async {
            let store: Arc<dyn Store> =
                Arc::new(Sqlite::open(&folder.path().join("toolrest.db"), 0).expect("a database"));
            let new = NewUser { email: "bench@example.com".into(), password_hash: "none".into(), full_name: None };
            let user = store.create_user(new).await.expect("a user").id;
            let root = folder.path().join("root").canonicalize().expect("the folder is there");
            let options = FolderOptions {
                allowed_roots: vec![AllowedRoot::for_all(root.clone())],
                journal_dir: folder.path().join("journals"),
                guarded: Vec::new(),
                history: HistoryLimits::default(),
                ..FolderOptions::default()
            };
            let scratch = Scratch::open(&folder.path().join("checkouts")).expect("a folder for checkouts");
            let workspaces = StoredWorkspaces::new(Arc::clone(&store), options, scratch);
            let place =
                Place::Directory { root: workspaces.allowed_root(&root, "anyone").await.expect("it is allowed") };
            let workspace = store.create_workspace(user, "bench".into(), place).await.expect("a workspace").id;
            let engine = Engine::new(
                toolrest_toolsets::all(&toolrest_toolsets::Services::none()),
                Arc::new(workspaces),
                Arc::new(AllowAll),
                Arc::new(NoRecords),
                Limits::default(),
            );
            (engine, user, workspace)
        });
        let room = Self { runtime, engine, user, workspace, folder };
        fs::write(room.path("root/read.txt"), &text(300, 0)[..FILE_BYTES]).expect("a file");
        room
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn call(&self, toolset: &str, tool: &str, args: &serde_json::Value) {
        let call = Call {
            id: CallId::new(),
            correlation: String::new(),
            toolset: toolset.to_owned(),
            tool: tool.to_owned(),
            args: JsonText::of(args).expect("arguments"),
            caller: Caller { user: self.user },
            workspace: self.workspace,
        };
        let reply = self.runtime.block_on(self.engine.call(call)).expect("the toolset is there");
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    }

    fn read_us(&self) -> f64 {
        let args = json!({"path": "read.txt"});
        let mut times: Vec<Duration> = (0..READS).map(|_| timed(|| self.call("file", "file.read", &args))).collect();
        median_of(&mut times) * 1e6
    }

    /// Edits of a file by hand, by a commit on disk, and by a tool, in turns.
    fn edits(&self) -> Edits {
        let body = &text(300, 0)[..FILE_BYTES];
        let content = |round: usize| format!("round {round}\n{body}");
        for name in ["root/edited.txt", "plain/edited.txt"] {
            fs::write(self.path(name), content(0)).expect("a file");
        }
        let root = Root::open(&self.path("plain")).expect("the folder can be opened");
        let (mut by_hand, mut commits, mut edits) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..EDITS {
            let (old, new) = (content(round), content(round + 1));
            by_hand.push(timed(|| replace_by_hand(&self.path("plain"), new.as_bytes())));
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
        let hand = median_of(&mut by_hand);
        Edits { ratios: [median_of(&mut commits) / hand, median_of(&mut edits) / hand], by_hand_ms: hand * 1e3 }
    }
}

fn replace_by_hand(folder: &Path, bytes: &[u8]) {
    let mut file = File::create(folder.join("temporary")).expect("a temporary file");
    file.write_all(bytes).expect("it is written");
    file.sync_all().expect("it is synced");
    fs::rename(folder.join("temporary"), folder.join("by-hand.txt")).expect("it is renamed");
    File::open(folder).and_then(|folder| folder.sync_all()).expect("the folder is synced");
}

/// Patches of three hunks, in memory, and by `git apply`.
fn patches(effort: Effort, report: &mut Report) {
    let before = text(500, 1);
    let after: String = before
        .lines()
        .enumerate()
        .map(|(line, text)| if line % 200 == 50 { format!("changed {line}\n") } else { format!("{text}\n") })
        .collect::<Vec<_>>()
        .concat();
    let made = diff::unified(b"file.txt", Some(before.as_bytes()), Some(after.as_bytes()), StopFlag::never());
    let folder = Folder::new("folder");
    fs::create_dir_all(folder.path()).expect("a new folder");
    fs::write(folder.path().join("change.patch"), &made).expect("a patch");
    let (mut ours, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        let apply = || {
            let files = patch::parse(made.as_bytes()).expect("a patch");
            let applied = patch::apply(&files[0], before.as_bytes(), toolrest_edit::Limits::of_bytes(usize::MAX))
                .expect("it fits");
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
        "A patch of three hunks for a file of 500 lines: parsed and applied in memory, and by `git apply` as a command.",
    );
    let case = "parse and apply, p50".to_owned();
    report.add(Figure { case, unit: "ms", rounds: ours, target: Target::AtMost(0.5), beside: String::new() });
    let case = "the same, as a part of the time of `git apply`".to_owned();
    report.add(Figure { case, unit: "×", rounds: ratios, target: Target::AtMost(1.0), beside: String::new() });
}
