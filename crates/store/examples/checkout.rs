//! How long it takes to check a workspace out, against copying the same files.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a measurement fails by panicking")]

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use toolrest_core::{
    Access, AllowAll, CallId, CallRecord, Caller, Change, Changeset, CheckoutMode, CheckoutOptions, Content, Engine,
    FileType, Ground, KeepLimits, Limits, Parents, Put, Recorder, Role, Toolsets, WsPath, now,
};
use toolrest_store::{
    AccountStore, CallInfo, FileStore, FolderOptions, NewUser, Place, Scratch, Sqlite, StoredWorkspaces, WorkspaceStore,
};

const FILES: usize = 5_000;
const FILES_PER_FOLDER: usize = 50;
const ROUNDS: usize = 51;

struct NoRecords;

impl Recorder for NoRecords {
    fn record(&self, _: CallRecord) {}
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(Sqlite::open(&place.path().join("test.db"), 64 << 20).unwrap());
    let new = NewUser { email: "user@example.com".into(), password_hash: "none".into(), full_name: None };
    let user = store.create_user(new).await.unwrap().id;
    let workspace = store.create_workspace(user, "measured".into(), Place::Database).await.unwrap().id;
    let put = |number: usize| {
        Change::Put(Put {
            path: WsPath::posix(&format!("/folder-{}/file-{number}.txt", number / FILES_PER_FOLDER)).unwrap(),
            file_type: FileType::Document,
            content: Content::Text(format!("This is file {number}.\n").repeat(40 + number % 80)),
            parents: Parents::Create,
            executable: None,
        })
    };
    let access = Access { workspace, user, need: Role::Editor };
    let call = CallInfo { id: CallId::new(), toolset: "".into(), tool: "".into(), caller: user, started_at: now() };
    let changes = Changeset { changes: (0..FILES).map(put).collect(), ..Changeset::default() };
    store.commit(access, changes, call).await.unwrap();

    // Kept until the end: file systems are slow to make files where others were just removed.
    let mut kept = Vec::new();
    let mut firsts = Vec::new();
    let mut by_copying = Vec::new();
    for round in 0..5 {
        let scratch = Scratch::open(&place.path().join("checkouts")).unwrap();
        let workspaces = StoredWorkspaces::new(Arc::<Sqlite>::clone(&store), FolderOptions::default(), scratch);
        let (policy, recorder) = (Arc::new(AllowAll), Arc::new(NoRecords));
        let engine = Engine::new(Toolsets::default(), Arc::new(workspaces), policy, recorder, Limits::default());
        let cx = engine.outside_tools("measure", workspace, Caller { user }, Role::Editor).await.unwrap();
        let options = CheckoutOptions { mode: CheckoutMode::Aside, keep: KeepLimits::default() };
        let begun = Instant::now();
        let mut checkout = cx.workspace.check_out(options).await.unwrap();
        firsts.push(begun.elapsed());
        let Ground::Folder(folder) = checkout.ground() else { return };
        let begun = Instant::now();
        copy(&folder, &place.path().join(format!("copy-{round}")));
        by_copying.push(begun.elapsed());
        checkout.check_in(&cx).await.unwrap();
        drop(checkout);
        kept.push(engine);
        if round < 4 {
            continue;
        }
        let (mut outs, mut ins) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let mut checkout = cx.workspace.check_out(options).await.unwrap();
            outs.push(begun.elapsed());
            let begun = Instant::now();
            let checked_in = checkout.check_in(&cx).await.unwrap();
            ins.push(begun.elapsed());
            assert_eq!(checked_in.commit, None);
        }
        println!("{FILES} files: next check-out {:?}, check-in of nothing {:?}", median(outs), median(ins));
    }
    let (first, copied) = (median(firsts), median(by_copying));
    let ratio = first.as_secs_f64() / copied.as_secs_f64();
    println!("{FILES} files: first check-out {first:?}, copying {copied:?}, ratio {ratio:.2}");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Copies a tree as `cp -r` does.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}
