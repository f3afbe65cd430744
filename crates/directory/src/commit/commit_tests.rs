//! A commit with every kind of step, and a fault at each of its system calls.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use tempfile::TempDir;

use super::*;
use crate::{
    Contents, Expect, Hash, Parents, Replace,
    sys::faults::{Fault, with_faults, with_others},
};

/// The state of each path below a folder: mode, number of links, and the content or the target of a link.
type Snapshot = BTreeMap<PathBuf, (u32, u64, Vec<u8>)>;

struct Fixture {
    entry: TempDir,
    root: Root,
}

impl Fixture {
    fn new() -> Self {
        // In memory if possible, because syncing costs nothing there.
        let entry = TempDir::new_in(Path::new("/dev/shm")).or_else(|_| TempDir::new()).unwrap();
        let path = entry.path().join("root");
        for folder in ["journal", "root/old", "root/tree/below", "root/dir/sub", "root/hollow", "root/remade"] {
            fs::create_dir_all(entry.path().join(folder)).unwrap();
        }
        for file in [
            "update",
            "gone",
            "old/inner",
            "tree/one",
            "tree/below/two",
            "from",
            "taker",
            "taken",
            "dir/file",
            "dir/sub/deep",
            "named",
            "linked",
            "nested",
            "untouched",
        ] {
            fs::write(path.join(file), format!("before: {file}")).unwrap();
        }
        fs::set_permissions(path.join("update"), fs::Permissions::from_mode(0o640)).unwrap();
        fs::hard_link(path.join("linked"), path.join("linked too")).unwrap();
        symlink("named", path.join("link")).unwrap();
        symlink("tree", path.join("folder link")).unwrap();
        let root = Root::open(&path).unwrap();
        Self { entry, root }
    }

    fn commit(&self) -> Result<CommitResult> {
        self.commit_of(&changes())
    }

    fn commit_of(&self, changes: &[Change]) -> Result<CommitResult> {
        let options = CommitOptions { id: b"id".to_vec(), payload: b"payload".to_vec(), ..CommitOptions::default() };
        self.root.commit(changes, &self.journal(), &options)
    }

    fn recover(&self) -> Result<Option<Recovered>> {
        self.root.recover(&self.journal())
    }

    fn journal(&self) -> PathBuf {
        self.entry.path().join("journal")
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new();
        let mut pending = vec![PathBuf::new()];
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(self.root.real_path().join(&folder)).unwrap() {
                let entry = entry.unwrap();
                let path = folder.join(entry.file_name());
                let metadata = entry.metadata().unwrap();
                let bytes = if metadata.is_dir() {
                    pending.push(path.clone());
                    Vec::new()
                } else if metadata.is_symlink() {
                    fs::read_link(entry.path()).unwrap().into_os_string().into_encoded_bytes()
                } else {
                    fs::read(entry.path()).unwrap()
                };
                let links = if metadata.is_dir() { 0 } else { metadata.nlink() };
                snapshot.insert(path, (metadata.mode(), links, bytes));
            }
        }
        snapshot
    }
}

fn write(path: &str, expect: Expect, mode: Option<u32>) -> Change {
    let bytes = format!("after, and longer than before: {path}").into_bytes();
    Change::Write { path: path.into(), bytes, expect, mode, parents: Parents::Make }
}

fn before(path: &str) -> Expect {
    Expect::Hash(Hash::of(format!("before: {path}").as_bytes()))
}

fn moving(from: &str, to: &str, replace: Replace) -> Change {
    Change::Move { from: from.into(), to: to.into(), replace, parents: Parents::Make }
}

fn changes() -> Vec<Change> {
    vec![
        write("update", before("update"), None),
        write("new/deep/file", Expect::Absent, Some(0o755)),
        write("new/other", Expect::Anything, None),
        write("linked", before("linked"), Some(0o600)),
        write("link", before("named"), None),
        Change::Remove { path: "gone".into(), expect: before("gone") },
        Change::Remove { path: "old/inner".into(), expect: Expect::Anything },
        Change::RemoveFolder { path: "old".into(), contents: Contents::Nothing },
        Change::RemoveFolder { path: "tree".into(), contents: Contents::Anything },
        Change::Remove { path: "folder link".into(), expect: Expect::Anything },
        moving("from", "moved/to", Replace::Refuse),
        moving("taker", "taken", Replace::File),
        moving("dir", "elsewhere", Replace::Refuse),
        write("elsewhere/file", before("dir/file"), None),
        write("dir/file", Expect::Absent, None),
        write("gone/is a folder now", Expect::Absent, None),
        Change::MakeFolder { path: "empty".into(), mode: None, parents: Parents::Required },
        moving("hollow", "moved/hollow", Replace::Refuse),
        Change::MakeFolder { path: "hollow".into(), mode: None, parents: Parents::Required },
        Change::RemoveFolder { path: "remade".into(), contents: Contents::Nothing },
        write("remade/file", Expect::Absent, None),
        moving("nested", "aside", Replace::Refuse),
        Change::MakeFolder { path: "nested".into(), mode: None, parents: Parents::Required },
        moving("aside", "nested/nested", Replace::Refuse),
    ]
}

/// Returns the tree before, the tree after, and the number of system calls of an undisturbed commit.
fn undisturbed() -> (Snapshot, Snapshot, usize) {
    let fixture = Fixture::new();
    let before = fixture.snapshot();
    let (applied, calls) = with_faults(&[], || fixture.commit());
    assert_eq!(applied.unwrap().changes.len(), changes().len());
    let after = fixture.snapshot();
    assert!(fixture.recover().unwrap().is_none());
    assert_eq!(fixture.snapshot(), after);
    (before, after, calls)
}

/// Returns which of the two trees is there, and checks that it is one of them.
fn outcome(fixture: &Fixture, before: &Snapshot, after: &Snapshot, what: &str) -> Outcome {
    let now = fixture.snapshot();
    if now == *after {
        return Outcome::Finished;
    }
    for (path, there) in &now {
        assert_eq!(before.get(path), Some(there), "{what}: {}", path.display());
    }
    assert_eq!(now.len(), before.len(), "{what}: something is missing");
    Outcome::RolledBack
}

#[test]
fn a_commit_of_every_kind_of_step_takes_effect() {
    let (_, after, _) = undisturbed();
    let text = |path: &str| String::from_utf8(after[Path::new(path)].2.clone()).unwrap();
    assert_eq!(text("update"), "after, and longer than before: update");
    assert_eq!(after[Path::new("update")].0 & 0o777, 0o640);
    assert_eq!(after[Path::new("new/deep/file")].0 & 0o777, 0o755);
    assert_eq!(text("linked"), text("linked too"));
    assert_eq!(after[Path::new("linked too")].1, 2);
    assert_eq!(text("link"), "named");
    assert_eq!(text("named"), "after, and longer than before: link");
    assert_eq!(text("moved/to"), "before: from");
    assert_eq!(text("taken"), "before: taker");
    assert_eq!(text("elsewhere/file"), "after, and longer than before: elsewhere/file");
    assert_eq!(text("elsewhere/sub/deep"), "before: dir/sub/deep");
    for gone in ["old", "tree", "from", "taker", "folder link", "dir/sub"] {
        assert!(!after.contains_key(Path::new(gone)), "{gone}");
    }
    assert!(after.contains_key(Path::new("gone/is a folder now")));
    assert!(after.contains_key(Path::new("empty")));
}

#[test]
fn a_failing_system_call_changes_nothing() {
    let (before, after, calls) = undisturbed();
    let mut failed = 0;
    for errno in [Errno::IO, Errno::NOSPC] {
        for call in 0..calls {
            let fixture = Fixture::new();
            let (result, _) = with_faults(&[(call, Fault::Fails(errno))], || fixture.commit());
            let what = format!("call {call} of {calls} fails with {errno:?}");
            match result {
                // Failures after the commit is complete affect only the cleanup.
                Ok(_) => {
                    let recovered = fixture.recover().unwrap();
                    assert!(recovered.iter().all(|recovered| recovered.outcome == Outcome::Finished), "{what}");
                    assert_eq!(outcome(&fixture, &before, &after, &what), Outcome::Finished, "{what}");
                }
                Err(error) => {
                    failed += 1;
                    assert!(!matches!(error.kind, ErrorKind::Unfinished), "{what}: {error}");
                    assert_eq!(outcome(&fixture, &before, &after, &what), Outcome::RolledBack, "{what}");
                    assert!(fixture.recover().unwrap().is_none(), "{what}");
                    fixture.commit().unwrap();
                    assert_eq!(outcome(&fixture, &before, &after, &what), Outcome::Finished, "{what}");
                }
            }
        }
    }
    eprintln!("{calls} system calls, {failed} failures");
    assert!(failed > calls);
}

#[test]
fn a_crash_at_any_call_is_recovered_to_all_or_nothing() {
    let (before, after, calls) = undisturbed();
    let mut finished = 0;
    for call in 0..calls {
        let fixture = Fixture::new();
        let (result, _) = with_faults(&[(call, Fault::Dies)], || fixture.commit());
        let what = format!("death at call {call} of {calls}");
        let recovered = fixture.recover().unwrap();
        let tree = outcome(&fixture, &before, &after, &what);
        if let Some(recovered) = &recovered {
            assert_eq!((&recovered.id[..], &recovered.payload[..]), (&b"id"[..], &b"payload"[..]), "{what}");
            assert_eq!((recovered.outcome, &recovered.kept), (tree, &Vec::new()), "{what}");
        }
        assert!(result.is_err() || tree == Outcome::Finished, "{what}: it was acknowledged");
        assert!(tree == Outcome::RolledBack || recovered.is_some() || result.is_ok(), "{what}: the commit was lost");
        finished += usize::from(tree == Outcome::Finished);
        assert!(fixture.recover().unwrap().is_none(), "{what}");
    }
    eprintln!("{calls} deaths, {finished} finished");
    assert!(0 < finished && finished < calls);
}

#[test]
fn a_crash_during_recovery_is_recovered_too() {
    let (before, after, calls) = undisturbed();
    let mut deaths = 0;
    for call in 0..calls {
        // Each crash of the commit is combined with some crashes of the recovery, so that all of them occur.
        for second in (call % 17..).step_by(17) {
            let fixture = Fixture::new();
            let _ = with_faults(&[(call, Fault::Dies)], || fixture.commit());
            let (first, made) = with_faults(&[(second, Fault::Dies)], || fixture.recover());
            let what = format!("deaths at call {call} of {calls} and {second} of the recovery");
            fixture.recover().unwrap();
            outcome(&fixture, &before, &after, &what);
            deaths += 1;
            if first.is_ok() && made <= second {
                break;
            }
        }
    }
    eprintln!("{deaths} deaths during recovery");
}

#[test]
fn a_crash_while_rolling_back_is_recovered() {
    let (before, after, calls) = undisturbed();
    let mut deaths = 0;
    for call in 0..calls {
        for second in (call + 1 + call % 23..).step_by(23) {
            let fixture = Fixture::new();
            let faults = [(call, Fault::Fails(Errno::IO)), (second, Fault::Dies)];
            let (_, made) = with_faults(&faults, || fixture.commit());
            fixture.recover().unwrap();
            outcome(&fixture, &before, &after, &format!("failure at call {call} of {calls}, death at {second}"));
            deaths += 1;
            if made <= second {
                break;
            }
        }
    }
    eprintln!("{deaths} deaths while rolling back");
}

#[test]
fn a_single_write_is_safe_without_a_durable_mark() {
    for change in [
        write("update", before("update"), Some(0o600)),
        write("untouched", Expect::Anything, None),
        write("new", Expect::Absent, None),
        write("linked", Expect::Anything, None),
    ] {
        let change = [change];
        let whole = Fixture::new();
        let before = whole.snapshot();
        let (result, calls) = with_faults(&[], || whole.commit_of(&change));
        result.unwrap();
        let after = whole.snapshot();
        for call in 0..calls {
            for fault in [Fault::Fails(Errno::IO), Fault::Dies] {
                let fixture = Fixture::new();
                let (result, _) = with_faults(&[(call, fault)], || fixture.commit_of(&change));
                let what = format!("{fault:?} at call {call} of {calls} of {change:?}");
                if matches!(fault, Fault::Fails(_)) && result.is_err() {
                    assert_eq!(outcome(&fixture, &before, &after, &what), Outcome::RolledBack, "{what}");
                }
                let recovered = fixture.recover().unwrap();
                let tree = outcome(&fixture, &before, &after, &what);
                assert!(recovered.iter().all(|recovered| recovered.outcome == tree), "{what}");
                assert!(result.is_err() || tree == Outcome::Finished, "{what}: it was acknowledged");
            }
            // A failure, and a crash during its rollback.
            for second in call + 1..call + 40 {
                let fixture = Fixture::new();
                let faults = [(call, Fault::Fails(Errno::IO)), (second, Fault::Dies)];
                let _ = with_faults(&faults, || fixture.commit_of(&change));
                let recovered = fixture.recover().unwrap();
                let tree = outcome(&fixture, &before, &after, &format!("{faults:?} of {change:?}"));
                assert!(recovered.iter().all(|recovered| recovered.outcome == tree), "{faults:?} of {change:?}");
            }
        }
    }
}

#[test]
fn changes_of_others_since_a_crash_are_kept() {
    let (_, _, calls) = undisturbed();
    let mut met = 0;
    for call in 0..calls {
        let fixture = Fixture::new();
        let _ = with_faults(&[(call, Fault::Dies)], || fixture.commit());
        let theirs = ["update", "gone", "taken", "named", "new/deep/file", "elsewhere/file"];
        let written: Vec<_> =
            theirs.iter().filter(|path| fs::write(fixture.root.real_path().join(path), "theirs").is_ok()).collect();
        let recovered = fixture.recover().unwrap();
        let tree = fixture.snapshot();
        // The others' content is there, under its name or under the name it had before.
        let found = tree.values().filter(|(_, _, bytes)| bytes == b"theirs").count();
        assert!(found >= written.len(), "death at call {call}: {found} of {written:?}, {recovered:?}");
        assert!(tree.keys().all(|path| !path.components().any(|part| crate::is_temporary(part.as_os_str()))));
        met += recovered.iter().map(|recovered| recovered.kept.len()).sum::<usize>();
    }
    assert!(met > 0);
}

#[test]
fn a_single_write_is_atomic_even_if_the_journal_is_lost() {
    for change in [write("update", before("update"), None), write("new", Expect::Absent, None)] {
        let change = [change];
        let whole = Fixture::new();
        let before = whole.snapshot();
        let (_, calls) = with_faults(&[], || whole.commit_of(&change).unwrap());
        let after = whole.snapshot();
        for call in 0..calls {
            let fixture = Fixture::new();
            let _ = with_faults(&[(call, Fault::Dies)], || fixture.commit_of(&change));
            lose_journal(&fixture, call % 2 == 0);
            fixture.recover().unwrap();
            outcome(&fixture, &before, &after, &format!("power loss at call {call} of {calls} of {change:?}"));
        }
    }
}

#[test]
fn a_folder_moved_by_others_during_a_commit_loses_nothing() {
    let changes = [
        write("dir/file", before("dir/file"), None),
        write("dir/new", Expect::Absent, None),
        write("dir/linked", before("linked"), None),
        Change::Remove { path: "dir/sub/deep".into(), expect: before("dir/sub/deep") },
        moving("taker", "dir/taken", Replace::File),
        write("update", before("update"), None),
    ];
    let (mut failed, mut call) = (0, 0);
    loop {
        let fixture = Fixture::new();
        let path = fixture.root.real_path().to_owned();
        fs::rename(path.join("taken"), path.join("dir/taken")).unwrap();
        fs::hard_link(path.join("linked"), path.join("dir/linked")).unwrap();
        let contents = |snapshot: Snapshot| snapshot.into_values().map(|(_, _, bytes)| bytes).collect::<Vec<_>>();
        let before = contents(fixture.snapshot());
        let others = move || fs::rename(path.join("dir"), path.join("away")).unwrap();
        let (result, is_reached) = with_others(call, others, || fixture.commit_of(&changes));
        if !is_reached {
            break;
        }
        let recovered = fixture.recover().unwrap();
        assert!(recovered.is_none(), "call {call}: {recovered:?}");
        let tree = fixture.snapshot();
        let is_temporary = |path: &&PathBuf| path.iter().any(crate::is_temporary);
        assert_eq!(tree.keys().find(is_temporary), None, "call {call}: {result:?}");
        if result.is_err() {
            failed += 1;
            let after = contents(tree);
            for bytes in &before {
                let text = String::from_utf8_lossy(bytes);
                assert!(after.contains(bytes), "call {call}: {text} is lost, {result:?}");
            }
        }
        call += 1;
    }
    eprintln!("{failed} of {call} commits failed");
    assert!(failed > 0);
}

#[test]
fn a_folder_moved_by_others_after_a_crash_loses_nothing() {
    let (_, _, calls) = undisturbed();
    for call in 0..calls {
        let fixture = Fixture::new();
        let path = fixture.root.real_path();
        let changes = [
            write("dir/file", before("dir/file"), None),
            Change::Remove { path: "dir/sub/deep".into(), expect: before("dir/sub/deep") },
        ];
        let (_, made) = with_faults(&[(call, Fault::Dies)], || fixture.commit_of(&changes));
        fs::rename(path.join("dir"), path.join("away")).unwrap();
        let recovered = fixture.recover().unwrap();
        let tree = fixture.snapshot();
        assert!(tree.keys().all(|path| !path.iter().any(crate::is_temporary)), "call {call}: {recovered:?}");
        let is_done = recovered.is_some_and(|recovered| recovered.outcome == Outcome::Finished) || made <= call;
        let text = |path: &str| tree.get(Path::new(path)).map(|(_, _, bytes)| String::from_utf8_lossy(bytes));
        let expected = if is_done { "after, and longer than before: dir/file" } else { "before: dir/file" };
        assert_eq!(text("away/file").as_deref(), Some(expected), "call {call}");
        assert_eq!(text("away/sub/deep").is_none(), is_done, "call {call}");
        if made <= call {
            break;
        }
    }
}

/// Makes a journal look like after a power failure: empty, or written in an earlier boot.
fn lose_journal(fixture: &Fixture, empty: bool) {
    let mut journal = Journal::open(&fixture.root, &fixture.journal()).unwrap();
    let earlier = Intent { id: vec![], payload: vec![], steps: vec![], boot: b"earlier".to_vec() };
    journal.begin(&earlier).unwrap();
    journal.mark_closed().unwrap();
    if empty {
        let path = journal.unfinished().path;
        let size = fs::read(&path).unwrap().len();
        fs::write(path, vec![0; size]).unwrap();
    }
}
