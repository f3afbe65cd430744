use std::fs;

use tempfile::TempDir;

use super::*;
use crate::Identity;

fn intent() -> Intent {
    let path = |name: &str| PathBuf::from(name);
    Intent {
        id: b"the id".to_vec(),
        payload: vec![0, 255, 7],
        steps: vec![
            Step::MakeFolder { path: path("a"), before: None },
            Step::MakeFolder { path: path("a"), before: Some(Identity { device: 3, inode: 4 }) },
            Step::Remove { path: path("b"), aside: path("c") },
            Step::Move {
                from: path("d"),
                to: path("e"),
                identity: Identity { device: 1, inode: u64::MAX },
                aside: None,
            },
            Step::Move {
                from: path("d"),
                to: path("e"),
                identity: Identity { device: 1, inode: 2 },
                aside: Some(path("f")),
            },
            Step::Add { path: path("line\nbreak"), staged: path("g"), hash: Hash([1; 32]) },
            Step::Replace { path: path("h"), staged: path("i"), aside: path("j"), hash: Hash([2; 32]) },
            Step::Rewrite { path: path("k"), aside: path("l"), old: Hash([3; 32]), mode: 0o644 },
        ],
        boot: b"boot".to_vec(),
    }
}

struct Fixture {
    entry: TempDir,
    root: Root,
}

impl Fixture {
    fn new() -> Self {
        let entry = TempDir::new().unwrap();
        let root = Root::open(entry.path()).unwrap();
        Self { entry, root }
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.root, self.entry.path()).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.journal().path.clone()
    }
}

#[test]
fn an_intent_is_pending_until_it_is_closed() {
    let fixture = Fixture::new();
    assert_eq!(fixture.journal().read().unwrap(), State::Empty);
    let mut journal = fixture.journal();
    journal.begin(&intent()).unwrap();
    drop(journal);

    let pending = |outcome| State::Pending { intent: intent(), outcome };
    let mut journal = fixture.journal();
    assert_eq!(journal.read().unwrap(), pending(Outcome::RolledBack));
    journal.mark_committed(&intent()).unwrap();
    assert_eq!(journal.read().unwrap(), pending(Outcome::Finished));
    journal.clear_committed().unwrap();
    assert_eq!(journal.read().unwrap(), pending(Outcome::RolledBack));
    journal.mark_committed(&intent()).unwrap();
    journal.mark_finished().unwrap();
    assert_eq!(journal.read().unwrap(), State::Closed { intent: intent() });
}

#[test]
fn marks_of_an_intent_are_not_valid_for_an_equal_one() {
    let fixture = Fixture::new();
    let mut journal = fixture.journal();
    journal.begin(&intent()).unwrap();
    journal.mark_committed(&intent()).unwrap();
    journal.mark_closed().unwrap();
    journal.begin(&intent()).unwrap();
    assert_eq!(journal.read().unwrap(), State::Pending { intent: intent(), outcome: Outcome::RolledBack });
}

#[test]
fn an_intent_longer_than_the_initial_size_is_read_completely() {
    let fixture = Fixture::new();
    let long = Intent { payload: vec![42; 3 * FIRST_SIZE_BYTES], ..intent() };
    fixture.journal().begin(&long).unwrap();
    assert_eq!(fixture.journal().read().unwrap(), State::Pending { intent: long, outcome: Outcome::RolledBack });
}

#[test]
fn an_incomplete_intent_means_that_nothing_was_changed() {
    let fixture = Fixture::new();
    fixture.journal().begin(&intent()).unwrap();
    let whole = fs::read(fixture.path()).unwrap();
    let start = usize::try_from(INTENT_AT).unwrap();
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap();
    for at in start..end {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        fs::write(fixture.path(), flipped).unwrap();
        assert_eq!(fixture.journal().read().unwrap(), State::Lost, "byte {at}");

        let mut torn = whole.clone();
        torn[at..].fill(0);
        fs::write(fixture.path(), torn).unwrap();
        assert_eq!(fixture.journal().read().unwrap(), State::Lost, "zeros from byte {at}");

        fs::write(fixture.path(), &whole[..at]).unwrap();
        assert_eq!(fixture.journal().read().unwrap(), State::Lost, "ends at byte {at}");
    }
}

#[test]
fn a_journal_of_another_version_is_refused() {
    let fixture = Fixture::new();
    let mut journal = fixture.journal();
    journal.begin(&intent()).unwrap();
    let mut out = Encoder(MAGIC.to_vec());
    out.number(VERSION + 1);
    out.number(3);
    out.0.extend_from_slice(&digest_of(VERSION + 1, b"new").0);
    out.0.extend_from_slice(b"new");
    journal.write(&out.0, INTENT_AT).unwrap();
    assert!(matches!(journal.read().unwrap_err().kind, ErrorKind::Unsupported(_)));
}
