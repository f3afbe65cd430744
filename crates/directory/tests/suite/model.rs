//! Random commits, compared with a model in memory.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use toolrest_directory::{Change, Contents, ErrorKind, Expect, Hash, Parents, Replace};

use crate::fixture::{Fixture, Node, Tree};

/// What to do with a generated change that is impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Impossible {
    LeftOut,
    Tried,
}

/// The expectation of a generated change, filled in from the model.
#[derive(Debug, Clone, Copy)]
enum ExpectKind {
    Absent,
    TheRightHash,
    AWrongHash,
    Anything,
}

fn path() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..=3).prop_map(|names| names.iter().collect())
}

fn parents() -> impl Strategy<Value = Parents> {
    prop_oneof![2 => Just(Parents::Make), 1 => Just(Parents::Required)]
}

fn change() -> impl Strategy<Value = (Change, ExpectKind, Impossible)> {
    let expectation = prop_oneof![
        4 => Just(ExpectKind::Anything), 3 => Just(ExpectKind::TheRightHash), 3 => Just(ExpectKind::Absent), 1 => Just(ExpectKind::AWrongHash)
    ];
    let expect = Expect::Anything;
    let kind = prop_oneof![
        4 => (path(), prop::collection::vec(any::<u8>(), 0..20), parents()).prop_map(move |(path, bytes, parents)| {
            Change::Write { path, bytes, expect, mode: None, parents }
        }),
        2 => path().prop_map(move |path| Change::Remove { path, expect }),
        1 => (path(), prop::sample::select(vec![Contents::Nothing, Contents::Anything]))
            .prop_map(|(path, contents)| Change::RemoveFolder { path, contents }),
        1 => path().prop_map(|path| Change::Clear { path }),
        2 => (path(), path(), prop::sample::select(vec![Replace::Refuse, Replace::File]), parents())
            .prop_map(|(from, to, replace, parents)| Change::Move { from, to, replace, parents }),
        1 => (path(), parents()).prop_map(|(path, parents)| Change::MakeFolder { path, mode: None, parents }),
    ];
    let impossible = prop_oneof![19 => Just(Impossible::LeftOut), 1 => Just(Impossible::Tried)];
    (kind, expectation, impossible)
}

/// Applies a change to the model. Returns `None` if it is impossible.
fn apply(tree: &Tree, change: &Change) -> Option<Tree> {
    let mut tree = tree.clone();
    match change {
        Change::Write { path, bytes, expect, parents, .. } => {
            match (tree.get(path), expect) {
                (None, Expect::Hash(_)) | (Some(_), Expect::Absent) => return None,
                (Some(Node::File(old)), Expect::Hash(hash)) if Hash::of(old) != *hash => return None,
                (None | Some(Node::File(_)), _) => {}
                _ => return None,
            }
            make_parents(&mut tree, path, *parents)?;
            tree.insert(path.clone(), Node::File(bytes.clone()));
        }
        Change::Remove { path, expect } => match (tree.remove(path)?, expect) {
            (Node::File(_), Expect::Anything) => {}
            (Node::File(old), Expect::Hash(hash)) if Hash::of(&old) == *hash => {}
            _ => return None,
        },
        Change::RemoveFolder { path, contents } => {
            let below = tree.keys().filter(|other| other.starts_with(path)).count();
            let refused = *contents == Contents::Nothing && below > 1;
            if tree.get(path) != Some(&Node::Folder) || refused {
                return None;
            }
            tree.retain(|other, _| !other.starts_with(path));
        }
        Change::Clear { path } => {
            tree.get(path)?;
            tree.retain(|other, _| !other.starts_with(path));
        }
        Change::Move { from, to, replace, parents } => {
            let moved = tree.get(from)?.clone();
            match tree.get(to) {
                None => {}
                Some(Node::File(_)) if *replace == Replace::File && moved != Node::Folder => {}
                Some(_) => return None,
            }
            if to.starts_with(from) {
                return None;
            }
            make_parents(&mut tree, to, *parents)?;
            let (taken, mut rest): (Tree, Tree) = tree.into_iter().partition(|(path, _)| path.starts_with(from));
            for (path, node) in taken {
                let below = path.strip_prefix(from).unwrap();
                rest.insert(if below == Path::new("") { to.clone() } else { to.join(below) }, node);
            }
            tree = rest;
        }
        Change::MakeFolder { path, parents, .. } => {
            if tree.contains_key(path) {
                return None;
            }
            make_parents(&mut tree, path, *parents)?;
            tree.insert(path.clone(), Node::Folder);
        }
    }
    Some(tree)
}

fn make_parents(tree: &mut Tree, path: &Path, parents: Parents) -> Option<()> {
    for folder in path.ancestors().skip(1).filter(|folder| *folder != Path::new("")) {
        match tree.get(folder) {
            Some(Node::Folder) => {}
            None if parents == Parents::Make => {
                tree.insert(folder.to_owned(), Node::Folder);
            }
            _ => return None,
        }
    }
    Some(())
}

/// Fills in the expectation of a change, like a caller that has read the file.
fn with_expectation(change: Change, expectation: ExpectKind, tree: &Tree) -> Change {
    let wish = |path: &PathBuf| match (expectation, tree.get(path)) {
        (ExpectKind::Absent, _) => Expect::Absent,
        (ExpectKind::Anything, _) => Expect::Anything,
        (ExpectKind::TheRightHash, Some(Node::File(bytes))) => Expect::Hash(Hash::of(bytes)),
        (ExpectKind::AWrongHash | ExpectKind::TheRightHash, _) => Expect::Hash(Hash([0; 32])),
    };
    match change {
        Change::Write { path, bytes, mode, parents, .. } => {
            Change::Write { expect: wish(&path), path, bytes, mode, parents }
        }
        Change::Remove { path, .. } => Change::Remove { expect: wish(&path), path },
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_commit_equals_its_changes_applied_in_sequence(
        commits in prop::collection::vec(prop::collection::vec(change(), 1..25), 1..15)
    ) {
        let fixture = Fixture::new();
        let mut model = Tree::new();
        for commit in commits {
            let mut after = Some(model.clone());
            let mut changes = Vec::new();
            for (change, expectation, impossible) in commit {
                let change = with_expectation(change, expectation, after.as_ref().unwrap_or(&model));
                let next = after.as_ref().and_then(|tree| apply(tree, &change));
                if next.is_some() || impossible == Impossible::Tried {
                    after = next;
                    changes.push(change);
                }
            }
            match (fixture.commit(&changes), after) {
                (Ok(_), Some(after)) => model = after,
                (Err(error), Some(_)) => prop_assert!(matches!(error.kind, ErrorKind::Overlap), "{error}: {changes:?}"),
                (Ok(_), None) => prop_assert!(false, "this cannot be: {changes:?}"),
                (Err(_), None) => {}
            }
            prop_assert_eq!(fixture.tree(), model.clone(), "{:?}", changes);
        }
    }
}
