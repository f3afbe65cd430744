//! Concurrent writers that record what was acknowledged, and a check that all of it is stored.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use toolrest_testkit::{Reply, Workspace, sha256_hex};

/// The deadline of a call.
const CALL_LIMIT: Duration = Duration::from_secs(30);
const STORM_LIMIT: Duration = Duration::from_secs(60);

/// What a writer does when its call was not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The server is expected to be killed: a broken connection ends the writer.
    End,
    /// The database is expected to stop: calls are answered with 503, and the writer continues.
    Continue,
}

/// The texts that a file may have: the last acknowledged one, or one whose call failed.
#[derive(Clone, Default)]
struct PossibleTexts {
    acknowledged: Option<String>,
    unsure: Vec<String>,
}

/// The number of calls so far.
#[derive(Clone, Copy, Default)]
pub struct Progress {
    pub acknowledged: usize,
    pub unavailable: usize,
}

/// Concurrent writers in one folder.
pub struct Storm {
    folder: String,
    files: Arc<Mutex<BTreeMap<String, PossibleTexts>>>,
    progress: watch::Receiver<Progress>,
    is_over: Arc<AtomicBool>,
    writers: JoinSet<()>,
}

impl Storm {
    /// Starts writers: each creates files in `folder` and updates its own.
    pub fn begin(workspace: &Workspace, folder: &str, writers: usize, on_failure: OnFailure) -> Self {
        let (sender, progress) = watch::channel(Progress::default());
        let sender = Arc::new(sender);
        let mut storm = Self {
            folder: folder.to_owned(),
            files: Arc::default(),
            progress,
            is_over: Arc::default(),
            writers: JoinSet::new(),
        };
        for number in 0..writers {
            let writer = Writer {
                workspace: workspace.clone(),
                folder: format!("{folder}/{number}"),
                files: storm.files.clone(),
                progress: sender.clone(),
                is_over: storm.is_over.clone(),
                on_failure,
            };
            storm.writers.spawn(writer.run());
        }
        storm
    }

    pub fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// Waits until the storm has come far enough.
    pub async fn wait_until(&mut self, is_far_enough: impl Fn(Progress) -> bool) {
        let mut progress = self.progress.clone();
        let waiting = progress.wait_for(|progress| is_far_enough(*progress));
        tokio::select! {
            reached = tokio::time::timeout(STORM_LIMIT, waiting) => {
                reached.expect("the storm makes no progress").expect("the writers write");
            }
            Some(ended) = self.writers.join_next() => {
                ended.unwrap();
                panic!("a writer ended before the storm was over");
            }
        }
    }

    /// Ends the storm and gives the account of it.
    pub async fn end(mut self) -> Account {
        self.is_over.store(true, Ordering::Relaxed);
        while let Some(writer) = self.writers.join_next().await {
            writer.unwrap();
        }
        Account { folder: self.folder, files: self.files.lock().unwrap().clone() }
    }
}

/// What must be there after a storm.
pub struct Account {
    folder: String,
    files: BTreeMap<String, PossibleTexts>,
}

impl Account {
    /// Asserts that everything acknowledged is there and that nothing is half there.
    pub async fn check(&self, workspace: &Workspace) {
        let listing = json!({"path": self.folder, "recursive": true});
        let reply = workspace.call("ls", &listing).await;
        let was_anything_acknowledged = self.files.values().any(|f| f.acknowledged.is_some());
        if reply.status == 404 && !was_anything_acknowledged {
            return;
        }
        let listing = reply.result();
        let mut listed = BTreeMap::new();
        for entry in listing["entries"].as_array().unwrap() {
            let path = entry["path"].as_str().unwrap();
            if entry["file_type"] != "Folder" {
                listed.insert(path.to_owned(), workspace.read(path).await);
            }
        }
        for (path, read) in &listed {
            let text = read["content"].as_str().unwrap();
            assert_eq!(read["hash"], sha256_hex(text), "{path}");
            let label = text.lines().next().unwrap_or_default();
            assert!(text == content(label), "{path} is not whole: {label:?}");
            let texts = self.files.get(path);
            let texts = texts.unwrap_or_else(|| panic!("nobody wrote {path}"));
            assert!(
                texts.acknowledged.as_deref() == Some(label) || texts.unsure.iter().any(|unsure| unsure == label),
                "{path} holds {label:?}, acknowledged was {:?}, unsure {:?}",
                texts.acknowledged,
                texts.unsure
            );
        }
        for (path, texts) in &self.files {
            assert!(texts.acknowledged.is_none() || listed.contains_key(path), "{path} was acknowledged and is gone");
        }
    }
}

struct Writer {
    workspace: Workspace,
    folder: String,
    files: Arc<Mutex<BTreeMap<String, PossibleTexts>>>,
    progress: Arc<watch::Sender<Progress>>,
    is_over: Arc<AtomicBool>,
    on_failure: OnFailure,
}

impl Writer {
    async fn run(self) {
        let mut files = 0;
        for step in 0.. {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let file = if step % 3 == 0 {
                files += 1;
                files - 1
            } else {
                step * 7 % files
            };
            let path = format!("{}/{file}.txt", self.folder);
            let label = format!("{path} step {step}");
            self.texts(&path, |texts| texts.unsure.push(label.clone()));
            let args = json!({"path": path, "content": content(&label)});
            let begun = Instant::now();
            let reply = self.workspace.try_call("write", &args).await;
            assert!(begun.elapsed() < CALL_LIMIT, "{path} hung");
            match (reply, self.on_failure) {
                (Ok(reply), _) if reply.status == 200 => {
                    self.texts(&path, |texts| {
                        texts.acknowledged = Some(label.clone());
                        texts.unsure.clear();
                    });
                    self.progress.send_modify(|so_far| so_far.acknowledged += 1);
                }
                (Err(_), OnFailure::End) => return,
                (Ok(reply), OnFailure::Continue) => {
                    is_unavailable(&reply);
                    self.progress.send_modify(|so_far| so_far.unavailable += 1);
                    // Not to wait for anything: only so as not to ask without a pause.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                (Ok(reply), OnFailure::End) => panic!("{reply}"),
                (Err(error), OnFailure::Continue) => panic!("the server broke a connection: {error}"),
            }
        }
    }

    fn texts(&self, path: &str, change: impl FnOnce(&mut PossibleTexts)) {
        change(self.files.lock().unwrap().entry(path.to_owned()).or_default());
    }
}

/// Asserts the answer of a server whose database is away.
#[track_caller]
pub fn is_unavailable(reply: &Reply) {
    reply.refused(503, "UNAVAILABLE");
}

/// Makes a text from its label, mostly short and sometimes of many pages, of which a part shows as a part.
fn content(label: &str) -> String {
    let hash = sha256_hex(label);
    let lines = if hash.starts_with(['0', '1']) { 2000 } else { 3 };
    let mut text = format!("{label}\n");
    for line in 0..lines {
        let _ = writeln!(text, "{line} {hash}");
    }
    text + "end of " + label
}
