//! Processes that are killed during commits.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write as _},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    thread,
    time::{Duration, SystemTime},
};

use tempfile::TempDir;
use toolrest_directory::{Change, CommitOptions, Contents, ErrorKind, Expect, Outcome, Parents, Record, Replace, Root};

use crate::fixture::{Fixture, Node, Tree, hash, links_of, moving, remove, tree, write, write_deep};

/// Set for the child process that commits until it is killed. Contains its folder.
const COMMITTING_CHILD: &str = "TOOLREST_DIRECTORY_VICTIM";
/// How many processes are killed.
const KILLS: &str = "TOOLREST_DIRECTORY_KILLS";

fn text(name: &str, generation: u64) -> String {
    // The lengths differ, so that a mix of two generations is detected.
    format!("{generation} {name} {}", "x".repeat(usize::try_from(generation % 97).unwrap() * 50))
}

/// Returns the tree after a number of commits.
fn expected(generation: u64) -> Tree {
    let mut expected = Tree::new();
    let file = |name: &str, generation| Node::File(text(name, generation).into_bytes());
    let mut add = |path: String, node: Node| expected.insert(PathBuf::from(path), node);
    for n in 0..7 {
        add(format!("updated {n}"), file("updated", generation));
    }
    for n in 0..4 {
        add(format!("moved {n} {generation}"), file("moved", 0));
        add(format!("folder {generation}/added {n}"), file("added", generation));
    }
    add(format!("folder {generation}"), Node::Folder);
    add(format!("carried {generation}"), Node::Folder);
    add(format!("carried {generation}/inside"), file("inside", generation));
    add(format!("carried {generation}/untouched"), file("untouched", 0));
    add("linked".to_owned(), file("linked", generation));
    add("linked too".to_owned(), file("linked", generation));
    add("link".to_owned(), Node::Link("updated 0".into()));
    add("replaced".to_owned(), file("replacing", generation));
    add(format!("replacing {generation}"), file("replacing", generation + 1));
    expected
}

/// Returns the commit from one generation to the next: adds, updates, removes, moves, a rewrite in place and a
/// replacement.
fn changes(old: u64) -> Vec<Change> {
    let new = old + 1;
    let mut changes = Vec::new();
    for n in 0..7 {
        // The first is written through a link.
        let path = if n == 0 { "link".to_owned() } else { format!("updated {n}") };
        changes.push(write(path, &text("updated", new), hash(&text("updated", old))));
    }
    for n in 0..4 {
        changes.push(remove(format!("folder {old}/added {n}"), hash(&text("added", old))));
        changes.push(moving(format!("moved {n} {old}"), format!("moved {n} {new}")));
        changes.push(write_deep(format!("folder {new}/added {n}"), &text("added", new), Expect::Absent));
    }
    changes.push(Change::RemoveFolder { path: format!("folder {old}").into(), contents: Contents::Nothing });
    changes.push(moving(format!("carried {old}"), format!("carried {new}")));
    changes.push(write(format!("carried {new}/inside"), &text("inside", new), hash(&text("inside", old))));
    changes.push(write("linked", &text("linked", new), hash(&text("linked", old))));
    changes.push(Change::Move {
        from: format!("replacing {old}").into(),
        to: "replaced".into(),
        replace: Replace::File,
        parents: Parents::Required,
    });
    changes.push(write(format!("replacing {new}"), &text("replacing", new + 1), Expect::Absent));
    changes
}

fn build(fixture: &Fixture) {
    for (path, node) in expected(0) {
        let path = fixture.path(path);
        match node {
            Node::Folder => fs::create_dir_all(path).unwrap(),
            Node::Link(named) => symlink(named, path).unwrap(),
            Node::File(_) if path.ends_with("linked too") => fs::hard_link(fixture.path("linked"), path).unwrap(),
            Node::File(bytes) => fs::write(path, bytes).unwrap(),
            Node::Other => unreachable!(),
        }
    }
}

fn generation(root: &Path) -> u64 {
    let text = fs::read_to_string(root.join("updated 1")).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Commits until it is killed, and prints each generation it has reached. Does nothing in a normal run.
#[test]
fn committing_child() {
    let Some(home) = env::var_os(COMMITTING_CHILD).map(PathBuf::from) else { return };
    let (path, journal) = (home.join("root"), home.join("journal"));
    let root = Root::open(&path).unwrap();
    // In one write, because the process may be killed between two.
    let say = |generation: u64| std::io::stderr().write_all(format!("reached {generation}\n").as_bytes()).unwrap();
    loop {
        let old = generation(&path);
        let options =
            CommitOptions { id: (old + 1).to_le_bytes().to_vec(), payload: vec![7; 1000], ..CommitOptions::default() };
        let committed = root.commit_and_record(&changes(old), &journal, &options, |_| {
            say(old + 1);
            Record::Kept
        });
        match committed {
            Err(error) if matches!(error.kind, ErrorKind::Unfinished) => {
                // Printed before the journal is closed, because the process may be killed in between.
                let settled = root.lock(&journal).unwrap().recover(|recovered| {
                    if recovered.outcome == Outcome::Finished {
                        say(u64::from_le_bytes(recovered.id[..].try_into().unwrap()));
                    }
                    Record::Kept
                });
                settled.unwrap();
            }
            // Another process may have been faster.
            Ok(_) | Err(_) => {}
        }
    }
}

struct CommittingChild {
    process: Child,
    lines: BufReader<ChildStderr>,
}

impl CommittingChild {
    #[allow(clippy::disallowed_methods, reason = "the test kills processes of its own")]
    fn start(home: &Path) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "crash::committing_child", "--nocapture", "--test-threads=1"])
            .env(COMMITTING_CHILD, home)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap());
        Self { process, lines }
    }

    fn reached(&mut self) -> Option<u64> {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            if let Some(number) = line.strip_prefix("reached ") {
                return Some(number.trim().parse().unwrap());
            }
            line.clear();
        }
        None
    }

    /// Kills the process, and returns the last generation it has reached.
    fn kill(mut self, mut last: u64) -> u64 {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        while let Some(reached) = self.reached() {
            last = last.max(reached);
        }
        last
    }
}

/// Pseudo-random numbers, different in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn a_commit_of_a_killed_process_is_atomic() {
    let kills: u64 = env::var(KILLS).ok().map_or(200, |kills| kills.parse().unwrap());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let mut random = Random(u64::from(now.subsec_nanos()));
    let in_memory = Fixture::new();
    // On a disk, the timing differs.
    let on_disk = Fixture::on(TempDir::new().unwrap());
    build(&in_memory);
    build(&on_disk);
    let (mut finished, mut rolled_back) = (0, 0);
    for round in 0..kills {
        let fixture = if round % 4 == 3 { &on_disk } else { &in_memory };
        let mut victims = vec![CommittingChild::start(fixture.home.path())];
        if round % 5 == 4 {
            victims.push(CommittingChild::start(fixture.home.path()));
        }
        let mut acknowledged = victims[0].reached().unwrap();
        for committing_child in victims {
            wait_a_moment(Duration::from_micros(random.below(4000)));
            acknowledged = committing_child.kill(acknowledged);
        }

        let recovered = fixture.recover();
        let reached = generation(&fixture.path(""));
        assert_eq!(fixture.tree(), expected(reached), "kill {round}");
        assert_eq!(links_of(&fixture.path("linked too")), 2);
        assert!(reached == acknowledged || reached == acknowledged + 1, "{reached} after {acknowledged}");
        if let Some(recovered) = &recovered {
            let id = u64::from_le_bytes(recovered.id[..].try_into().unwrap());
            assert_eq!(recovered.payload, vec![7; 1000]);
            assert!(recovered.kept.is_empty(), "{recovered:?}");
            match recovered.outcome {
                Outcome::Finished => assert_eq!(id, reached),
                Outcome::RolledBack => assert_eq!(id, reached + 1),
            }
            *if recovered.outcome == Outcome::Finished { &mut finished } else { &mut rolled_back } += 1;
        }
        assert!(reached == acknowledged || recovered.is_some(), "kill {round}: the commit was lost");
        assert!(fixture.recover().is_none());
    }
    let journals = tree(&in_memory.journal()).len();
    assert_eq!(journals, 1, "one journal for one root");
    println!("{kills} rounds: {finished} commits finished, {rolled_back} rolled back");
    assert!(finished + rolled_back > 0);
}

#[allow(clippy::disallowed_methods, reason = "the moment of the kill is meant to be any")]
fn wait_a_moment(time: Duration) {
    thread::sleep(time);
}
