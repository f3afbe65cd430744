//! Whatever a program and others do to a workspace at once, both keep what they did.

use crate::checkout_scene::Scene;
use crate::folders::Random;
use crate::programs::{runnable, tree};
use crate::test_workspace::{TestWorkspace, put};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use toolrest_core::{Change, CheckedIn, Destination, Removal};

const ROUNDS: usize = 60;

/// The files and folders of a workspace: texts by path, those that can be run, folders with a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tree {
    files: BTreeMap<String, String>,
    runnable: Vec<String>,
}

impl Tree {
    fn of(folder: &Path) -> Self {
        Self { files: tree(folder), runnable: runnable(folder) }
    }

    /// What a folder shows that is made anew.
    async fn stored(room: &TestWorkspace) -> Self {
        let shown = Self::of(&Scene::of(room).check_out().await.folder);
        let paths: BTreeSet<String> = shown.files.keys().map(|name| name.trim_end_matches('/').to_owned()).collect();
        let listed: BTreeSet<String> = room.paths().await.iter().map(|path| path[1..].to_owned()).collect();
        assert_eq!(paths, listed);
        shown
    }

    fn texts(&self) -> BTreeSet<&str> {
        self.files.values().map(String::as_str).filter(|text| !text.is_empty()).collect()
    }

    /// Where a text is, if it is in one place only.
    fn only_place(&self, text: &str) -> Option<&str> {
        let mut places = self.files.iter().filter(|(_, other)| *other == text).map(|(path, _)| path.as_str());
        places.next().filter(|_| places.next().is_none())
    }
}

/// Something that a program may try. No text is ever written twice.
fn attempt(random: &mut Random, folder: &Path, number: &mut u64) -> String {
    let (one, other) = (random.path(), random.path());
    let (one, other) = (one.without_slash().to_owned(), other.without_slash().to_owned());
    let (at, to) = (folder.join(&one), folder.join(&other));
    *number += 1;
    let clear = |at: &Path| if at.is_dir() { fs::remove_dir_all(at) } else { fs::remove_file(at) };
    match random.below(12) {
        0..=2 => {
            let _ = fs::create_dir_all(at.parent().unwrap());
            let _ = fs::write(&at, format!("program {number}"));
            format!("write {one} {number}")
        }
        3 => {
            let _ = clear(&at);
            format!("clear {one}")
        }
        4..=6 => {
            let done = fs::rename(&at, &to);
            format!("mv {one} {other} {}", done.is_ok())
        }
        7 => {
            let _ = clear(&at);
            let _ = fs::create_dir_all(&at);
            format!("anew {one}")
        }
        8 => {
            if at.is_file() {
                let now = fs::metadata(&at).unwrap().permissions().mode();
                fs::set_permissions(&at, Permissions::from_mode(now ^ 0o111)).unwrap();
            }
            format!("chmod {one}")
        }
        9 => {
            if at.is_file() {
                let _ = fs::copy(&at, &to);
            }
            format!("cp {one} {other}")
        }
        10 => {
            // In place, and as large as it was.
            if let Ok(text) = fs::read_to_string(&at) {
                let same = format!("program {number}");
                let _ = fs::write(&at, format!("{same:<width$}", width = text.len()));
            }
            format!("rewrite {one}")
        }
        _ => {
            let between = folder.join("between");
            if fs::rename(&at, &between).is_ok() {
                let _ = fs::rename(&to, &at);
                let _ = fs::create_dir_all(to.parent().unwrap());
                if fs::rename(&between, &to).is_err() {
                    let _ = fs::rename(&between, &at);
                }
                let _ = clear(&between);
            }
            format!("swap {one} {other}")
        }
    }
}

async fn other_does(random: &mut Random, room: &TestWorkspace, number: &mut u64) -> String {
    let (one, other) = (random.path(), random.path());
    *number += 1;
    let change = match random.below(8) {
        0..=2 => put(one.as_str(), &format!("other {number}")),
        3 => Change::MakeDir(one),
        4..=5 => Change::Move { from: one, to: Destination::Exactly(other) },
        6 => Change::Remove { path: one, removal: Removal::File },
        _ => Change::Remove { path: one, removal: Removal::Single },
    };
    let done = room.all(vec![change.clone()]).await;
    let what = match change {
        Change::Put(put) => format!("put {} {number}", put.path),
        Change::MakeDir(path) => format!("mkdir {path}"),
        Change::Move { from, to } => format!("mv {from} {to:?}"),
        Change::Remove { path, .. } => format!("rm {path}"),
        _ => String::new(),
    };
    format!("others: {what} {}", done.is_ok())
}

/// What must be true of a workspace after a check-in.
fn check(before: &Tree, program: &Tree, others: &Tree, after: &Tree, done: &CheckedIn) -> Result<(), String> {
    if before == others {
        if !done.conflicts.is_empty() || after != program {
            return Err("not what the program made of it".into());
        }
        return Ok(());
    }
    if before == program && (after != others || *done != CheckedIn::default()) {
        return Err("a program that did nothing changed something".into());
    }
    let (was, ran, there, now) = (before.texts(), program.texts(), others.texts(), after.texts());
    let is_reported = |place: &str| {
        done.conflicts.iter().any(|conflict| {
            let reported = conflict.path.without_slash();
            reported == place || place.starts_with(&format!("{reported}/"))
        })
    };
    if let Some(lost) = ran.iter().find(|text| !was.contains(*text) && !now.contains(*text)) {
        return Err(format!("lost what the program wrote: {lost}"));
    }
    if let Some(lost) = there.iter().find(|text| !was.contains(*text) && !now.contains(*text)) {
        return Err(format!("lost what others wrote: {lost}"));
    }
    if let Some(lost) = was.iter().find(|text| {
        before.only_place(text).is_some() && ran.contains(*text) && there.contains(*text) && !now.contains(*text)
    }) {
        return Err(format!("lost what nobody touched: {lost}"));
    }
    for text in &was {
        let Some(place) = before.only_place(text) else { continue };
        let is_here = |tree: &Tree| tree.only_place(text) == Some(place);
        if !ran.contains(text) && is_here(others) && now.contains(text) && !is_reported(place) {
            return Err(format!("{place} was removed by the program and is there: {text}"));
        }
        let same_bits =
            before.runnable.iter().any(|name| name == place) == program.runnable.iter().any(|name| name == place);
        if !there.contains(text) && is_here(program) && now.contains(text) && same_bits {
            return Err(format!("{place} was removed by others and is there: {text}"));
        }
    }
    for conflict in &done.conflicts {
        if let Some(kept) = &conflict.kept_as {
            let name = kept.without_slash();
            if !after.files.contains_key(name) && !after.files.contains_key(&format!("{name}/")) {
                return Err(format!("{kept} is not there"));
            }
        }
    }
    Ok(())
}

async fn any_program(seed: u64) {
    let room = TestWorkspace::on_sqlite().await;
    let scenes = [Scene::of(&room), Scene::of(&room)];
    let (mut random, mut number, mut undone) = (Random(seed), 0, 0);
    for round in 0..ROUNDS {
        let mut running = scenes[usize::try_from(random.below(2)).unwrap()].check_out().await;
        let mut before = Tree::of(&running.folder);
        assert_eq!(before, Tree::stored(&room).await, "round {round}: a folder that stayed");
        let mut attempts = Vec::new();
        for _ in 0..=random.below(3) {
            for _ in 0..random.below(7) {
                attempts.push(attempt(&mut random, &running.folder, &mut number));
            }
            let program = Tree::of(&running.folder);
            for _ in 0..random.below(2) * (1 + random.below(5)) {
                attempts.push(other_does(&mut random, &room, &mut number).await);
            }
            let others = Tree::stored(&room).await;
            let done = running.checkout.check_in(&running.cx).await;
            let scene = format!("round {round}: {attempts:#?}\nof {before:?}\nand {others:?}");
            let done = done.unwrap_or_else(|error| panic!("{error:?}\n{scene}"));
            let after = Tree::stored(&room).await;
            if let Err(why) = check(&before, &program, &others, &after, &done) {
                panic!("{why}\n{scene}\nbecame {after:?}\n{done:?}");
            }
            before = Tree::of(&running.folder);
            assert_eq!(before, after, "what the program sees after {scene}\n{done:?}");
            if done.commit.is_some() && random.below(3) == 0 {
                room.undo().await.unwrap_or_else(|error| panic!("{error:?}\n{scene}\n{done:?}"));
                assert_eq!(Tree::stored(&room).await, others, "undone: {scene}\n{done:?}");
                attempts.push("undo".to_owned());
                undone += 1;
            }
        }
        match random.below(3) {
            0 => drop(running.checkout.finish(&running.cx).await.unwrap()),
            1 => attempts.push(attempt(&mut random, &running.folder, &mut number)),
            _ => {}
        }
    }
    assert!(undone > 5, "{undone}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_and_others_both_keep_what_they_did() {
    any_program(1).await;
}
