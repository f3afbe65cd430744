use super::*;
use toolrest_core::{Content, FileType};

const LIMIT_BYTES: usize = 1 << 20;

fn path(text: &str) -> WsPath {
    WsPath::relative(text).unwrap()
}

fn stage(files: &[(&str, &str)]) -> Stage {
    let mut stage = Stage::new(LIMIT_BYTES);
    for (name, text) in files {
        let now = Some((FileType::Document, Content::Text((*text).to_owned())));
        let place = Place { before: Some(text.as_bytes().to_vec()), now, refusal: None };
        stage.places.insert(path(name), place);
    }
    stage
}

fn applied(files: &[(&str, &str)], patch: &str) -> Result<Stage> {
    let mut stage = stage(files);
    stage.apply_all(&read(patch)?)?;
    Ok(stage)
}

/// The names and texts of all files after a patch.
fn tree(stage: &Stage) -> Vec<(&str, String)> {
    let text = |held: &Held, path: &WsPath| String::from_utf8(seen(held, path, LIMIT_BYTES).unwrap()).unwrap();
    let held = stage.places.iter().filter_map(|(path, place)| Some((path, place.now.as_ref()?)));
    held.map(|(path, held)| (path.without_slash(), text(held, path))).collect()
}

fn result(files: &[(&str, &str)], patch: &str) -> Vec<(String, String)> {
    let stage = applied(files, patch).unwrap_or_else(|error| panic!("{}", error.message));
    tree(&stage).into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

fn named(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

const CHANGED_A: &str = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n";
const COPIED_TO_B: &str = "diff --git a/a b/b\nsimilarity index 90%\ncopy from a\ncopy to b\n\
                           --- a/a\n+++ b/b\n@@ -2,2 +2,2 @@\n 2\n-3\n+three\n";

#[test]
fn a_copy_is_of_what_was_there_before_the_patch() {
    let files = [("a", "1\n2\n3\n")];
    let after = named(&[("a", "one\n2\n3\n"), ("b", "1\n2\nthree\n")]);
    assert_eq!(result(&files, &format!("{CHANGED_A}{COPIED_TO_B}")), after);
    assert_eq!(result(&files, &format!("{COPIED_TO_B}{CHANGED_A}")), after);
}

#[test]
fn a_copy_in_a_later_mail_is_of_what_the_earlier_one_left() {
    let mail = format!("From {} Mon Sep 17 00:00:00 2001\nSubject: x\n---\n\n", "0".repeat(40));
    let series = format!("{mail}{CHANGED_A}-- \n2.47.3\n\n{mail}{COPIED_TO_B}-- \n2.47.3\n\n");
    let after = named(&[("a", "one\n2\n3\n"), ("b", "one\n2\nthree\n")]);
    assert_eq!(result(&[("a", "1\n2\n3\n")], &series), after);
    let marks = "*** Begin Patch\n*** Update File: a\n-1\n+one\n*** Update File: a\n*** Move to: b\n-3\n+three\n";
    assert_eq!(result(&[("a", "1\n2\n3\n")], marks), named(&[("b", "one\n2\nthree\n")]));
}

fn rename(from: &str, to: &str) -> String {
    format!("diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n")
}

#[test]
fn files_may_change_places() {
    let files = [("a", "A\n"), ("b", "B\n")];
    let swapped = format!("{}{}", rename("b", "a"), rename("a", "b"));
    assert_eq!(result(&files, &swapped), named(&[("a", "B\n"), ("b", "A\n")]));
    let moved_up = format!("{}{}", rename("a", "b"), rename("b", "c"));
    assert_eq!(result(&files, &moved_up), named(&[("b", "A\n"), ("c", "B\n")]));
    let stage = applied(&files, &moved_up).unwrap();
    let removed: Vec<_> =
        stage.changes.changes.iter().filter(|change| matches!(change, Change::Remove { .. })).collect();
    assert!(matches!(removed[..], [Change::Remove { path, .. }] if path.without_slash() == "a"), "{removed:?}");
    let onto_another = applied(&files, &rename("a", "b")).err().unwrap();
    assert_eq!(onto_another.kind, ErrorKind::AlreadyExists);
    let both_onto_one = format!("{}{}{}", rename("a", "c"), rename("b", "c"), rename("c", "d"));
    assert_eq!(
        applied(&[files[0], files[1], ("c", "C\n")], &both_onto_one).err().unwrap().kind,
        ErrorKind::AlreadyExists
    );
}

#[test]
fn a_file_may_be_rewritten_and_its_old_content_renamed() {
    let rewritten = "diff --git a/b b/b\ndissimilarity index 100%\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-B\n+new\n";
    let after = named(&[("b", "new\n"), ("c", "B\n")]);
    assert_eq!(result(&[("b", "B\n")], &format!("{rewritten}{}", rename("b", "c"))), after);
    let renamed = applied(&[("b", "B\n")], &rename("b", "c")).unwrap();
    assert!(renamed.changes.changes.iter().any(|change| matches!(change, Change::Move { .. })), "it keeps its history");
}

#[test]
fn links_are_refused_and_modes_are_set() {
    let link = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n";
    assert_eq!(applied(&[], link).err().unwrap().kind, ErrorKind::WrongType);
    let mode = applied(&[("a", "x\n")], "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n").unwrap();
    assert!(matches!(&mode.changes.changes[..], [Change::Put(put)] if put.executable == Some(true)));
    let plain = "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n";
    let plain = applied(&[], plain).unwrap();
    assert!(matches!(&plain.changes.changes[..], [Change::Put(put)] if put.executable.is_none()));
}

#[test]
fn blanks_around_a_name_are_part_of_it() {
    let patch = |name: &str| format!("--- a/{name}\t\n+++ b/{name}\t\n@@ -1 +1 @@\n-x\n+y\n");
    assert_eq!(applied(&[("a", "x\n")], &patch("a ")).err().unwrap().kind, ErrorKind::NotFound);
    assert_eq!(applied(&[("a", "x\n")], &patch(" a")).err().unwrap().kind, ErrorKind::NotFound);
    assert_eq!(name(Some(b" a")).unwrap(), Some(path("./ a")));
    assert_eq!(name(Some(b" ../a ")).unwrap(), Some(path("./ ../a /")));
    for outside in ["../a ", " /../../a", "/a ", "/ a"] {
        assert_eq!(name(Some(outside.as_bytes())).unwrap_err().kind, ErrorKind::OutsideWorkspace, "{outside:?}");
    }
}

#[test]
fn messages_and_warnings_are_bounded() {
    let long = "\u{7}".repeat(100_000);
    for name in [long.clone(), "x".repeat(100_000), format!("../{long}"), "\\377".repeat(50_000)] {
        let error = name_error(&name);
        assert!(error.len() <= EXPLANATION_BYTES, "{}", error.len());
    }
    let deep = "d".repeat(200) + "/" + &"e".repeat(200);
    let line = |n| format!("{n} {}\n", "x".repeat(100));
    let lines: String = (0..200).map(line).collect();
    let hunk = |line: &str| format!("-{}\n+y\n", line.replace("xx", "xz"));
    let hunks: String = lines.lines().map(hunk).collect();
    let error = applied(&[(&deep, &lines)], &format!("--- a/{deep}\n+++ b/{deep}\n@@ -1,9 +1,9 @@\n{hunks}"));
    let error = error.err().unwrap();
    assert!(
        error.message.len() <= EXPLANATION_BYTES && error.message.ends_with("Nothing was written"),
        "{}",
        error.message
    );
    let indented = |n| format!("@@ -{0} +{0} @@\n-{n}\n+\t{n}\n", n + 1);
    let indented: String = (0..500).map(indented).collect();
    let number = |n| format!("{n}\n");
    let numbers = (0..500).map(number).collect::<String>() + " x\n";
    let done = applied(&[("a", &numbers)], &format!("--- a/a\n+++ b/a\n{indented}")).unwrap();
    assert_eq!((done.warnings.len(), done.warnings[100].as_str()), (101, "and 400 more warnings"));
}

fn name_error(name: &str) -> String {
    let patch = format!("--- \"a/{name}\"\n+++ \"b/{name}\"\n@@ -1 +1 @@\n-x\n+y\n");
    read(&patch).and_then(|files| paths_of(&files)).err().unwrap().message
}
