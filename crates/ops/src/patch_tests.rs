use super::stage::PathState;
use super::*;
use crate::write_text::{TypedContent, visible_bytes};
use toolrest_core::{Content, Destination, FileType};

const LIMIT_BYTES: usize = 1 << 20;

fn path(text: &str) -> WsPath {
    WsPath::relative(text).unwrap()
}

/// Returns the names of a patch as paths of a workspace in a database.
fn located(parts: &[FilePatch<'_>]) -> Result<Names> {
    let path = |name: String| file_path(WsPath::within(&name)).map(|path| (name.into_bytes(), path));
    names_in(parts)?.into_keys().map(path).collect()
}

/// Applies a patch to texts.
struct Done {
    stage: StagedPatch,
}

fn applied(files: &[(&str, &str)], patch: &str) -> Result<Done> {
    let parts = read(patch)?;
    let mut stage = StagedPatch::new(Arc::new(located(&parts)?), LIMIT_BYTES);
    for (name, text) in files {
        stage.paths.insert(path(name), PathState::of((FileType::Document, Content::Text((*text).to_owned()))));
    }
    stage.apply_all(&parts, Limits::of_bytes(LIMIT_BYTES))?;
    Ok(Done { stage })
}

fn outcome(files: &[(&str, &str)], patch: &str) -> Outcome {
    let done = applied(files, patch).unwrap_or_else(|error| panic!("{}", error.message));
    done.stage.outcome(StopFlag::never()).unwrap()
}

/// Describes the changes as text.
fn changed(files: &[(&str, &str)], patch: &str) -> Vec<String> {
    let aside = |at: &WsPath| {
        let name = at.without_slash();
        name.find(".renaming-").map_or(name.to_owned(), |end| format!("{}~", &name[..end]))
    };
    let shown = |change: &Change| match change {
        Change::Put(put) => format!("put {}", put.path.without_slash()),
        Change::MakeDir(at) => format!("make {}", at.without_slash()),
        Change::Move { from, to: Destination::Exactly(to) } => format!("{} to {}", aside(from), aside(to)),
        Change::Remove { path: at, removal: Removal::FolderIfEmpty } => format!("tidy {}", at.without_slash()),
        Change::Remove { path: at, .. } => format!("remove {}", at.without_slash()),
        other => format!("{other:?}"),
    };
    outcome(files, patch).changes.changes.iter().map(shown).collect()
}

/// Returns the reported files and what happened to them.
fn changed_files(files: &[(&str, &str)], patch: &str) -> Vec<(String, PatchAction)> {
    let files = outcome(files, patch).patched.files;
    files.into_iter().map(|file| (file.path.without_slash().to_owned(), file.action)).collect()
}

/// Returns the names and texts of all files after a patch.
fn tree(stage: &StagedPatch) -> Vec<(&str, String)> {
    let text = |held: &TypedContent, path: &WsPath| {
        String::from_utf8(visible_bytes(held, path, LIMIT_BYTES).unwrap().into_owned()).unwrap()
    };
    let held = stage.paths.iter().filter_map(|(path, state)| Some((path, state.now.as_ref()?)));
    held.map(|(path, now)| (path.without_slash(), text(&now.held, path))).collect()
}

fn result(files: &[(&str, &str)], patch: &str) -> Vec<(String, String)> {
    let done = applied(files, patch).unwrap_or_else(|error| panic!("{}", error.message));
    tree(&done.stage).into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

fn named(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

const CHANGED_A: &str = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n";
const COPIED_TO_B: &str = "diff --git a/a b/b\nsimilarity index 90%\ncopy from a\ncopy to b\n\
                           --- a/a\n+++ b/b\n@@ -2,2 +2,2 @@\n 2\n-3\n+three\n";

#[test]
fn a_copy_has_the_content_before_the_patch() {
    let files = [("a", "1\n2\n3\n")];
    let after = named(&[("a", "one\n2\n3\n"), ("b", "1\n2\nthree\n")]);
    assert_eq!(result(&files, &format!("{CHANGED_A}{COPIED_TO_B}")), after);
    assert_eq!(result(&files, &format!("{COPIED_TO_B}{CHANGED_A}")), after);
}

#[test]
fn a_copy_in_a_later_patch_of_a_series_has_the_content_after_the_earlier_ones() {
    let mail = format!("From {} Mon Sep 17 00:00:00 2001\nSubject: x\n---\n\n", "0".repeat(40));
    let series = format!("{mail}{CHANGED_A}-- \n2.47.3\n\n{mail}{COPIED_TO_B}-- \n2.47.3\n\n");
    let after = named(&[("a", "one\n2\n3\n"), ("b", "one\n2\nthree\n")]);
    assert_eq!(result(&[("a", "1\n2\n3\n")], &series), after);
    let marks = "*** Begin Patch\n*** Update File: a\n-1\n+one\n*** Update File: a\n*** Move to: b\n-3\n+three\n*** End Patch\n";
    assert_eq!(changed_files(&[("a", "1\n2\n3\n")], marks), [("b".to_owned(), PatchAction::Move)], "it is one file");
    assert_eq!(result(&[("a", "1\n2\n3\n")], marks), named(&[("b", "one\n2\nthree\n")]));
}

fn rename(from: &str, to: &str) -> String {
    format!("diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n")
}

#[test]
fn files_may_swap_names() {
    let files = [("a", "A\n"), ("b", "B\n")];
    let swapped = format!("{}{}", rename("b", "a"), rename("a", "b"));
    assert_eq!(result(&files, &swapped), named(&[("a", "B\n"), ("b", "A\n")]));
    let moved_up = format!("{}{}", rename("a", "b"), rename("b", "c"));
    assert_eq!(result(&files, &moved_up), named(&[("b", "A\n"), ("c", "B\n")]));
    assert_eq!(changed(&files, &swapped), ["a to ~", "b to ~", "~ to b", "~ to a"]);
    assert_eq!(changed(&files, &moved_up), ["a to ~", "b to c", "~ to b"]);
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
    assert_eq!(changed(&[("b", "B\n")], &rename("b", "c")), ["b to c"], "it keeps its history");
}

#[test]
fn links_are_refused_and_modes_are_set() {
    let link = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n";
    assert_eq!(applied(&[], link).err().unwrap().kind, ErrorKind::WrongType);
    let submodule = "diff --git a/s b/s\nindex 1234567..89abcde 160000\n--- a/s\n+++ b/s\n@@ -1 +1 @@\n\
                     -Subproject commit 1\n+Subproject commit 2\n";
    let refusal = applied(&[], submodule).err().unwrap();
    assert!(refusal.message.contains("/s is a submodule in the patch"), "{}", refusal.message);
    let executable = |files: &[(&str, &str)], patch: &str| {
        let Outcome { changes, patched, .. } = outcome(files, patch);
        let Some(Change::Put(put)) = changes.changes.into_iter().next() else { panic!("nothing is written") };
        (put.executable, patched)
    };
    let mode_only = "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n";
    let (set, patched) = executable(&[("a", "x\n")], mode_only);
    assert_eq!((set, patched.diff.as_str(), patched.files.len()), (Some(true), mode_only, 1));
    let plain = "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n";
    let (set, patched) = executable(&[], plain);
    assert_eq!((set, patched.diff.as_str()), (None, "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n"));
}

#[test]
fn a_renamed_file_is_reported_with_both_names_and_its_changes() {
    let line = |n| format!("line {n}\n");
    let text: String = (0..1_500).map(line).collect();
    let renamed = outcome(&[("a", &text)], &rename("a", "d/b")).patched;
    assert_eq!(renamed.diff, "diff --git a/a b/d/b\nrename from a\nrename to d/b\n");
    assert_eq!(
        renamed.files.iter().map(|file| (&file.path, file.action)).collect::<Vec<_>>(),
        [(&path("d/b"), PatchAction::Move)]
    );
    let hunk = "--- a/a\n+++ b/d/b\n@@ -1,2 +1,2 @@\n-line 0\n+zero\n line 1\n";
    let changed = outcome(&[("a", &text)], &format!("{}{hunk}", rename("a", "d/b"))).patched.diff;
    assert!(changed.contains("-line 0\n+zero\n line 1\n") && changed.lines().count() < 15, "{changed}");
    let copied = outcome(&[("a", &text)], &rename("a", "d/b").replace("rename", "copy")).patched;
    assert_eq!(copied.diff, "diff --git a/a b/d/b\ncopy from a\ncopy to d/b\n");
    assert_eq!(
        copied.files.iter().map(|file| (&file.path, file.action)).collect::<Vec<_>>(),
        [(&path("d/b"), PatchAction::Add)]
    );
}

#[test]
fn a_file_may_move_below_its_own_name_and_back() {
    assert_eq!(changed(&[("bs", "x\n")], &rename("bs", "bs/bs")), ["bs to ~", "make bs", "~ to bs/bs"]);
    let folder = |files: &[(&str, &str)], patch: &str| {
        let parts = read(patch).unwrap();
        let mut stage = StagedPatch::new(Arc::new(located(&parts).unwrap()), LIMIT_BYTES);
        for (name, text) in files {
            stage.paths.insert(path(name), PathState::of((FileType::Document, Content::Text((*text).to_owned()))));
        }
        stage.paths.insert(path("bs"), PathState::folder(&path("bs")));
        stage.apply_all(&parts, Limits::of_bytes(LIMIT_BYTES)).map(|()| stage)
    };
    folder(&[("bs/bs", "x\n")], &rename("bs/bs", "bs")).unwrap();
    assert_eq!(folder(&[("a", "x\n")], &rename("a", "bs")).err().unwrap().kind, ErrorKind::AlreadyExists);
    // A folder can take the name of a deleted file, in any order.
    let (deleted, created) = (
        "diff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        "diff --git a/d/e b/d/e\nnew file mode 100644\n--- /dev/null\n+++ b/d/e\n@@ -0,0 +1 @@\n+y\n",
    );
    for patch in [format!("{deleted}{created}"), format!("{created}{deleted}")] {
        assert_eq!(changed(&[("d", "x\n")], &patch), ["remove d", "put d/e"]);
    }
}

#[test]
fn folders_that_become_empty_are_removed() {
    let deleted = "*** Begin Patch\n*** Delete File: a/b/c\n*** Delete File: a/d\n*** End Patch\n";
    let files = [("a/b/c", "x\n"), ("a/d", "x\n")];
    assert_eq!(changed(&files, deleted), ["remove a/b/c", "remove a/d", "tidy a/b", "tidy a"]);
    assert_eq!(changed(&[("a/x", "x\n")], &rename("a/x", "b/x")), ["make b", "a/x to b/x", "tidy a"]);
}

#[test]
fn files_are_counted_once_and_only_if_they_change() {
    let parts = "*** Begin Patch\n*** Update File: a\n-1\n+one\n*** Update File: a\n-2\n+two\n\
                 *** Add File: n\n+x\n*** Delete File: n\n*** End Patch\n";
    assert_eq!(changed_files(&[("a", "1\n2\n")], parts), [("a".to_owned(), PatchAction::Update)]);
    let back = "*** Begin Patch\n*** Update File: a\n-1\n+one\n*** Update File: a\n-one\n+1\n*** End Patch\n";
    assert_eq!(changed_files(&[("a", "1\n2\n")], back), []);
}

#[test]
fn binary_patches_apply_to_bytes() {
    // Created by git from the Latin-1 texts `caf\xe9\n` and `caf\xe8\n`, declared binary.
    let patch = "diff --git a/x b/x\nindex 1111111..2222222 100644\nGIT binary patch\nliteral 5\nMcmYdJOnbov00x8t9RL6T\n\n\
                 literal 5\nMcmYdJOnb=%00xEv9smFU\n\n";
    let parts = read(patch).unwrap();
    let mut stage = StagedPatch::new(Arc::new(located(&parts).unwrap()), LIMIT_BYTES);
    stage.paths.insert(path("x"), PathState::of((FileType::Document, Content::of_bytes(b"caf\xe9\n".to_vec()))));
    stage.apply_all(&parts, Limits::of_bytes(LIMIT_BYTES)).unwrap_or_else(|error| panic!("{}", error.message));
    assert_eq!(stage.paths[&path("x")].now.as_ref().unwrap().held.1, Content::of_bytes(b"caf\xe8\n".to_vec()));
}

#[test]
fn white_space_around_a_name_is_a_part_of_it() {
    let patch = |name: &str| format!("--- a/{name}\t\n+++ b/{name}\t\n@@ -1 +1 @@\n-x\n+y\n");
    assert_eq!(applied(&[("a", "x\n")], &patch("a ")).err().unwrap().kind, ErrorKind::NotFound);
    assert_eq!(applied(&[("a", "x\n")], &patch(" a")).err().unwrap().kind, ErrorKind::NotFound);
    let outside = applied(&[("a", "x\n")], &patch("../a")).err().unwrap();
    assert_eq!(outside.kind, ErrorKind::OutsideWorkspace);
    assert_eq!(result(&[("b/c", "x\n")], &patch("/b/c")), named(&[("b/c", "y\n")]), "as other arguments are read");
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
    let error = applied(&[(&deep, &lines)], &format!("--- a/{deep}\n+++ b/{deep}\n@@ -1,1 +1,1 @@\n{hunks}"));
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
    assert_eq!((done.stage.warnings.len(), done.stage.warnings[100].as_str()), (101, "and 400 more warnings"));
}

fn name_error(name: &str) -> String {
    let patch = format!("--- \"a/{name}\"\n+++ \"b/{name}\"\n@@ -1 +1 @@\n-x\n+y\n");
    read(&patch).and_then(|files| located(&files)).err().unwrap().message
}
