use super::*;
use crate::error::ErrorKind;
use crate::patch::parse;

const LIMIT: Limits = Limits::of_bytes(1 << 20);
const FILE: &str = "fn a() {\n    one();\n    two();\n}\n\nfn b() {\n    one();\n    two();\n}\n";

fn applied(file: &str, hunks: &str) -> Result<AppliedPatch, EditError> {
    let patch = format!("--- a/x\n+++ b/x\n{hunks}");
    apply(&parse(patch.as_bytes()).unwrap()[0], file.as_bytes(), LIMIT)
}

fn result(file: &str, hunks: &str) -> String {
    let applied = applied(file, hunks).unwrap_or_else(|error| panic!("{error}"));
    String::from_utf8(applied.content).unwrap()
}

fn level(file: &str, hunks: &str) -> MatchLevel {
    applied(file, hunks).unwrap_or_else(|error| panic!("{error}")).placements[0].level
}

fn refusals(file: &str, hunks: &str) -> Vec<HunkFailure> {
    match applied(file, hunks).unwrap_err() {
        EditError::Hunks { failures, .. } => failures,
        other => panic!("{other}"),
    }
}

fn refusal(file: &str, hunks: &str) -> ErrorKind {
    refusals(file, hunks)[0].error.kind()
}

#[test]
fn a_hunk_is_applied_at_its_line() {
    assert_eq!(result("a\nb\nc\n", "@@ -2 +2 @@\n-b\n+B\n"), "a\nB\nc\n");
    let twice = result(FILE, "@@ -6,3 +6,3 @@\n fn b() {\n-    one();\n+    1();\n     two();\n");
    assert_eq!(twice, FILE.replacen("fn b() {\n    one", "fn b() {\n    1", 1));
}

#[test]
fn a_hunk_is_applied_elsewhere_if_it_matches_only_once() {
    let done = applied("w\nx\na\nb\nc\n", "@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n").unwrap();
    assert_eq!(done.content, b"w\nx\na\nB\nc\n");
    assert_eq!(done.placements, [Placement { hunk: 1, line: 3, header_line: Some(2), level: MatchLevel::Exact }]);
    assert!(done.warnings.is_empty());
}

#[test]
fn a_hunk_that_matches_several_times_is_refused_with_all_lines() {
    let failures = refusals(FILE, "@@\n-    one();\n+    1();\n");
    let EditError::NotUnique { lines, message, .. } = &failures[0].error else { panic!("{:?}", failures[0]) };
    assert_eq!(*lines, [2, 7]);
    assert!(message.contains("line 7 (1 line above: `fn b() {`)"), "{message}");
}

#[test]
fn the_heading_selects_one_of_several_matches() {
    let done = applied(FILE, "@@ fn b() {\n-    one();\n+    1();\n").unwrap();
    assert_eq!(String::from_utf8(done.content).unwrap(), FILE.replacen("fn b() {\n    one", "fn b() {\n    1", 1));
    assert!(
        done.warnings[0].contains("(lines 2, 7); line 7 was chosen because it is under the heading"),
        "{:?}",
        done.warnings
    );
}

#[test]
fn the_order_of_the_hunks_selects_one_of_several_matches() {
    let hunks = "@@\n-fn b() {\n+fn c() {\n@@\n-    one();\n+    1();\n";
    assert!(result(FILE, hunks).ends_with("fn c() {\n    1();\n    two();\n}\n"));
}

#[test]
fn the_offset_of_the_other_hunks_selects_one_of_several_matches() {
    let moved = format!("// new\n{FILE}");
    let hunks = "@@ -1 +1 @@\n-fn a() {\n+fn z() {\n@@ -7 +7 @@\n-    one();\n+    1();\n";
    assert!(result(&moved, hunks).ends_with("fn b() {\n    1();\n    two();\n}\n"));
}

#[test]
fn the_end_of_the_file_selects_one_of_several_matches() {
    let patch = "*** Begin Patch\n*** Update File: x\n@@\n     two();\n-}\n+};\n*** End of File\n*** End Patch\n";
    let done = apply(&parse(patch.as_bytes()).unwrap()[0], FILE.as_bytes(), LIMIT).unwrap();
    assert!(
        done.content.ends_with(b"two();\n};\n") && done.content.starts_with(b"fn a() {\n    one();\n    two();\n}\n\n")
    );
}

#[test]
fn trailing_whitespace_and_typographic_characters_are_ignored() {
    assert_eq!(level("a\nb  \nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"), MatchLevel::TrailingWhitespace);
    assert_eq!(result("a  \nb\n", "@@\n a\n-b\n+B\n"), "a  \nB\n", "context keeps the file's bytes");
    assert_eq!(level("“a” – x\nb\n", "@@\n \"a\" - x\n-b\n+B\n"), MatchLevel::Punctuation);
}

#[test]
fn inserted_lines_are_indented_like_the_file() {
    let dedented = "@@\n fn\n-  x();\n+  y();\n+    z();\n";
    assert_eq!(result("    fn\n      x();\n", dedented), "    fn\n      y();\n        z();\n");
    let spaces = "@@\n f {\n-    x();\n+    y();\n+        z();\n";
    assert_eq!(result("f {\n\tx();\n", spaces), "f {\n\ty();\n\t\tz();\n");
}

#[test]
fn a_match_that_the_inserted_lines_do_not_fit_still_makes_the_other_ambiguous() {
    let hunks = "@@\n-  x\n+y\n";
    assert_eq!(refusal("\tx\n--\nx\n", hunks), ErrorKind::NotUnique);
    assert_eq!(refusal("--\nx\n", hunks), ErrorKind::NotFound, "y cannot be moved to the left");
    assert_eq!(result("\tx\n--\n", hunks), "y\n--\n");
}

#[test]
fn context_lines_without_their_leading_space_do_not_change_the_indentation() {
    let hunks = "@@ -1,3 +1,3 @@\n   a {\n-    x\n+    y\n    b\n";
    assert_eq!(
        result("    a {\n    x\n     b\n", hunks.replacen("   a", "    a", 1).as_str()),
        "    a {\n    y\n     b\n"
    );
}

#[test]
fn one_context_line_may_differ_if_the_change_does_not_depend_on_it() {
    let file = "one\ntwo\nthree\nfour\nfive\nsix\n";
    let typo = "@@ -1,5 +1,5 @@\n one\n twoo\n three\n-four\n+FOUR\n five\n";
    assert_eq!(result(file, typo), file.replace("four", "FOUR"));
    assert_eq!(level(file, typo), MatchLevel::FaultyContext);
    let dropped = "@@ -1,4 +1,4 @@\n one\n three\n-four\n+FOUR\n five\n";
    assert_eq!(result(file, dropped), file.replace("four", "FOUR"));
    let invented = "@@ -1,5 +1,5 @@\n one\n two\n and a half\n three\n-four\n+FOUR\n five\n";
    assert_eq!(result(file, invented), file.replace("four", "FOUR"));
    let differs = applied(file, typo).unwrap().warnings;
    assert_eq!(differs, ["hunk 1: its context line `twoo` is `two` in the file, at line 2"]);
    assert_eq!(applied(file, dropped).unwrap().warnings, ["hunk 1: it leaves out line 2 of the file, `two`"]);
    assert_eq!(applied(file, invented).unwrap().warnings, ["hunk 1: its context line `and a half` is not in the file"]);
    let next_to_insertion = "@@ -1,5 +1,6 @@\n one\n two\n three\n+new\n five\n six\n";
    assert_eq!(
        refusal(file, next_to_insertion),
        ErrorKind::NotFound,
        "the position before or after `four` is ambiguous"
    );
    let two_faults = "@@ -1,5 +1,5 @@\n onne\n twoo\n three\n-four\n+FOUR\n five\n";
    assert_eq!(refusal(file, two_faults), ErrorKind::NotFound);
}

#[test]
fn a_deleted_line_must_always_match() {
    let file = "one\ntwo\nthree\nfour\nfive\n";
    let failures = refusals(file, "@@ -1,5 +1,4 @@\n one\n two\n-tree\n four\n five\n");
    let message = failures[0].error.to_string();
    assert!(message.contains("First difference at line 3: column 2: `ree` vs `hree`"), "{message}");
}

#[test]
fn a_hunk_that_is_already_applied_is_refused_as_such() {
    let hunks = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n";
    assert_eq!(refusal("a\nB\nc\n", hunks), ErrorKind::AlreadyApplied);
    assert_eq!(applied("a\nB\nc\n", hunks).unwrap_err().kind(), ErrorKind::AlreadyApplied);
    assert_eq!(
        result("a\nb\nc\na\nB\nc\n", hunks),
        "a\nB\nc\na\nB\nc\n",
        "checked only if the old lines are not found"
    );
    let reindented = "@@ -1,2 +1,2 @@\n a\n-b\n+    b\n";
    assert_eq!(refusal("a\n    b\n", reindented), ErrorKind::AlreadyApplied);
}

#[test]
fn lines_without_words_do_not_show_that_a_hunk_is_already_applied() {
    assert_eq!(refusal("fn other() {\n}\n", "@@ -1 +1 @@\n-fn a() {}\n+}\n"), ErrorKind::NotFound);
    assert_eq!(refusal("x\n{\n}\n", "@@ -1,3 +1,2 @@\n {\n-a\n }\n"), ErrorKind::NotFound);
}

#[test]
fn a_hunk_with_a_missing_newline_is_applied_at_the_end_of_the_file() {
    let mark = "\\ No newline at end of file\n";
    let done = applied("c\nx\nc\n", &format!("@@ -1 +1 @@\n-c\n+Z\n{mark}")).unwrap();
    assert_eq!(done.content, b"c\nx\nZ");
    assert!(done.warnings[0].contains("it ends at the end of the file"), "{:?}", done.warnings);
}

#[test]
fn a_hunk_without_lines_after_its_change_is_applied_at_the_end_of_the_file() {
    let file = "{\n  x\n}\ny\n{\n  x\n}\n";
    let done = applied(file, "@@ -2,2 +2,3 @@\n   x\n }\n+end\n").unwrap();
    assert_eq!(done.content, format!("{file}end\n").into_bytes(), "though it also matches at its line number");
    let in_the_middle = "@@ -1,2 +1,3 @@\n one\n two\n+new\n";
    let unique = applied("one\ntwo\nthree\n", in_the_middle).unwrap();
    assert_eq!(unique.content, b"one\ntwo\nnew\nthree\n");
    assert!(unique.warnings[0].contains("as at the end of a file"), "{:?}", unique.warnings);
    let moved = "@@ -9,2 +9,3 @@\n }\n }\n+new\n";
    assert_eq!(refusal("a {\n{\n}\n}\nb\n", moved), ErrorKind::NotFound, "braces are everywhere");
    let at_header_line = "@@ -1,2 +1,3 @@\n x\n }\n+new\n";
    assert_eq!(refusal("x\n}\nx\n}\nx\n", at_header_line), ErrorKind::NotFound, "git refuses it too");
    assert_eq!(refusal("{\n  x\n{\n  x\n", "@@ -1,2 +1 @@\n {\n-  x\n"), ErrorKind::NotFound, "line 1 or the end?");
}

#[test]
fn a_hunk_at_line_1_is_applied_at_the_start_of_the_file() {
    let hunks = "@@ -1,2 +1,3 @@\n+new\n x\n y\n@@ -6 +7 @@\n-z\n+Z\n";
    let done = applied("x\ny\nmore\nmore\nx\ny\nz\n", hunks).unwrap();
    assert_eq!(done.content, b"new\nx\ny\nmore\nmore\nx\ny\nZ\n");
    let moved = applied("#!/bin/sh\nx\ny\n", "@@ -1,2 +1,3 @@\n+new\n x\n y\n").unwrap();
    assert_eq!(moved.content, b"#!/bin/sh\nnew\nx\ny\n");
    assert!(moved.warnings[0].contains("as at the start of a file"), "{:?}", moved.warnings);
    assert_eq!(refusal("#!/bin/sh\n}\n", "@@ -1 +1,2 @@\n+new\n }\n"), ErrorKind::NotFound);
    // Context on both sides of the change makes no difference, as in git.
    let even = "@@ -1,3 +1,3 @@\n {\n-a\n+b\n }\n";
    assert_eq!(result("{\na\n}\nx\n{\na\n}\n", even), "{\nb\n}\nx\n{\na\n}\n");
    assert_eq!(refusal("x\n{\na\n}\n", even), ErrorKind::NotFound, "git refuses it too");
    let telling = applied("x\na\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n").unwrap();
    assert_eq!(telling.content, b"x\na\nB\nc\n");
    assert!(telling.warnings[0].contains("has line number 1, as at the start of a file"), "{:?}", telling.warnings);
    assert_eq!(result("x\na\n", "@@ -1 +1 @@\n-a\n+A\n"), "x\nA\n", "without context nothing is said");
}

#[test]
fn a_byte_order_mark_is_ignored_and_kept() {
    let file = "\u{FEFF}one\ntwo\n";
    assert_eq!(result(file, "@@ -1,2 +1,2 @@\n-one\n+1\n two\n"), "\u{FEFF}1\ntwo\n");
    assert_eq!(result(file, "@@ -1,2 +1,3 @@\n+zero\n one\n two\n"), "\u{FEFF}zero\none\ntwo\n");
    assert_eq!(result(file, "@@ -1,2 +1,2 @@\n-\u{FEFF}one\n+\u{FEFF}1\n two\n"), "\u{FEFF}1\ntwo\n");
    assert_eq!(result(file, "@@ -1,2 +1,2 @@\n-\u{FEFF}one\n+one\n two\n"), "one\ntwo\n", "it may go");
    assert_eq!(result("one\n", "@@ -1 +1 @@\n-one\n+\u{FEFF}one\n"), "\u{FEFF}one\n", "and come");
    let deleted = "--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n";
    assert_eq!(apply(&parse(deleted.as_bytes()).unwrap()[0], file.as_bytes(), LIMIT).unwrap().content, b"");
    assert_eq!(parse(format!("\u{FEFF}{deleted}").as_bytes()).unwrap().len(), 1, "the patch may have one too");
}

#[test]
fn a_stopped_call_ends_at_once() {
    let line = |n| format!("line {}\n", n % 1_000);
    let file: String = (0..200_000).map(line).collect();
    let hunk = |n| format!("@@ -{0},2 +{0},2 @@\n {1}-gone\n+x\n", n + 1, line(n));
    let hunks: String = (0..10_000).map(hunk).collect();
    let patch = format!("--- a/x\n+++ b/x\n{hunks}");
    let (patch, flag) = (parse(patch.as_bytes()).unwrap(), std::sync::atomic::AtomicBool::new(false));
    let stop = StopFlag::new(&flag);
    std::thread::scope(|scope| {
        let (sender, started) = std::sync::mpsc::channel();
        let work = scope.spawn(move || {
            sender.send(()).unwrap();
            let result = apply(&patch[0], file.as_bytes(), Limits { bytes: 1 << 24, stop });
            (result.map(|_| ()), std::time::Instant::now())
        });
        started.recv().unwrap();
        flag.store(true, std::sync::atomic::Ordering::Relaxed);
        let stopped = std::time::Instant::now();
        let (result, ended) = work.join().unwrap();
        assert_eq!(result, Err(EditError::Stopped));
        assert!(ended - stopped < std::time::Duration::from_millis(500), "{:?}", ended - stopped);
    });
}

#[test]
fn a_hunk_is_applied_outside_its_section_only_with_a_warning() {
    let file = "class A\n  def f\n    x\nclass B\n  def f\n    y\n";
    let hunk = |headings: &str| format!("{headings}-    y\n+    z\n");
    let with_warning = applied(file, &hunk("@@ class A\n")).unwrap();
    assert!(
        with_warning.warnings[0].contains("line 6, which does not seem to be in the section `class A`"),
        "{with_warning:?}"
    );
    let above = "@@ class B\n-    x\n+    z\n";
    assert_eq!(refusal(file, above), ErrorKind::NotFound);
    for fitting in ["@@ class B\n", "@@ class C\n", "@@ def f\n", "@@\n", "@@ -1,1 +1,1 @@ class A\n"] {
        let done = applied(file, &hunk(fitting)).unwrap();
        assert_eq!((done.content, done.warnings.len()), (file.replace('y', "z").into_bytes(), 0), "{fitting}");
    }
    assert_eq!(
        result(file, "@@ class B\n   def f\n     x\n class B\n-  def f\n+  def g\n").matches("def g").count(),
        1
    );
}

#[test]
fn an_insertion_without_context_moves_with_the_neighbouring_hunks() {
    let hunks = "@@ -1 +1 @@\n-a\n+A\n@@ -2,0 +3 @@\n+new\n";
    let moved = applied("x\nx\na\nb\nc\n", hunks).unwrap();
    assert_eq!(moved.content, b"x\nx\nA\nb\nnew\nc\n");
    assert_eq!(moved.warnings, ["hunk 2: it has no context; it was put after line 4"]);
    let between = format!("{hunks}@@ -3 +4 @@\n-c\n+C\n");
    let failures = refusals("x\nx\na\nb\nb\nc\n", &between);
    assert_eq!((failures.len(), failures[0].hunk, failures[0].error.kind()), (1, 2, ErrorKind::NotFound));
}

#[test]
fn hunks_that_overlap_are_refused() {
    let hunks = "@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -2,2 +2,2 @@\n b\n-c\n+C\n";
    let failures = refusals("a\nb\nc\n", hunks);
    assert_eq!(failures[0].error, EditError::Overlap { first: 1, second: 2, line: 2 });
}

#[test]
fn all_hunks_that_fail_are_reported_at_once() {
    let hunks = "@@ -1 +1 @@\n-x\n+X\n@@ -2 +2 @@\n-b\n+B\n@@ -3 +3 @@\n-y\n+Y\n";
    let failures: Vec<_> =
        refusals("a\nb\nc\n", hunks).iter().map(|failure| (failure.hunk, failure.patch_line)).collect();
    assert_eq!(failures, [(1, 3), (3, 9)]);
}

#[test]
fn inserted_lines_get_the_ending_of_the_file() {
    assert_eq!(result("a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B\n+new\n c\n"), "a\r\nB\r\nnew\r\nc\r\n");
    assert_eq!(result("a\nb\n", "@@ -1,2 +1,3 @@\n a\r\n+new\r\n b\r\n"), "a\nnew\nb\n");
    assert_eq!(
        result("a\r\nb\nc\r\n", "@@\n a\n-b\n+B\n c\n"),
        "a\r\nB\nc\r\n",
        "each the ending of the line it replaces"
    );
}

#[test]
fn a_patch_that_changes_endings_is_applied() {
    assert_eq!(result("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n"), "a\nb\r\n");
}

#[test]
fn the_final_newline_is_as_in_the_patch_or_unchanged() {
    let mark = "\\ No newline at end of file\n";
    assert_eq!(result("a\nb", &format!("@@ -2 +2 @@\n-b\n{mark}+B\n")), "a\nB\n");
    assert_eq!(result("a\nb\n", &format!("@@ -2 +2 @@\n-b\n+B\n{mark}")), "a\nB");
    assert_eq!(result("a\nb", &format!("@@ -2 +2 @@\n-b\n{mark}+B\n{mark}")), "a\nB");
    assert_eq!(result("a\nb", "@@ -2 +2 @@\n-b\n+B\n"), "a\nB", "the patch does not mention it");
    assert_eq!(result("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n"), "a\nb\nc");
}

#[test]
fn lines_without_context_are_inserted_at_their_line_number_with_a_warning() {
    let done = applied("a\nb\n", "@@ -1,0 +2 @@\n+new\n").unwrap();
    assert_eq!(done.content, b"a\nnew\nb\n");
    assert_eq!(done.warnings, ["hunk 1: it has no context; it was put after line 1"]);
    assert_eq!(refusal("a\nb\n", "@@ ... @@\n+new\n"), ErrorKind::NotFound);
    assert_eq!(result("", "@@\n+new\n"), "new\n");
    assert_eq!(result("x\nfn f() {\n}\n", "@@ fn f() {\n+    new\n"), "x\nfn f() {\n    new\n}\n");
}

#[test]
fn bytes_that_are_not_utf8_are_kept() {
    let patch = b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n \xe9\n-\xff\n+\xfe\n";
    let done = apply(&parse(patch).unwrap()[0], b"\xe9\n\xff\n", LIMIT).unwrap();
    assert_eq!(done.content, b"\xe9\n\xfe\n");
}

#[test]
fn a_deletion_must_delete_all_lines() {
    let patch = parse(b"--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n").unwrap().remove(0);
    assert_eq!(apply(&patch, b"a\n", LIMIT).unwrap().content, b"");
    assert_eq!(apply(&patch, b"a\nb\n", LIMIT).unwrap_err().kind(), ErrorKind::BaseMismatch);
    let empty = parse(b"diff --git a/x b/x\ndeleted file mode 100644\nindex e69de29..0000000\n").unwrap().remove(0);
    assert_eq!(apply(&empty, b"", LIMIT).unwrap().content, b"");
    assert_eq!(apply(&empty, b"a\n", LIMIT).unwrap_err().kind(), ErrorKind::BaseMismatch);
    let whole = parse(b"*** Begin Patch\n*** Delete File: x\n*** End Patch\n").unwrap().remove(0);
    assert_eq!(apply(&whole, b"a\n", LIMIT).unwrap().content, b"");
}

#[test]
fn a_result_that_would_be_too_large_is_refused() {
    let patch = parse(b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+bbbbbbbbbb\n").unwrap().remove(0);
    assert_eq!(apply(&patch, b"a\n", Limits::of_bytes(8)).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn matches_that_are_not_kept_are_counted() {
    let failures = refusals(&"a\n".repeat(5_000), "@@\n-a\n+b\n");
    let EditError::NotUnique { count, lines, .. } = &failures[0].error else { panic!("{:?}", failures[0]) };
    assert_eq!((*count, lines.len()), (5_000, 10));
}

#[test]
fn hunks_that_match_everywhere_are_given_up() {
    let file = "a\n".repeat(200_000);
    let everywhere = |n| format!("@@ -{n},1 +{n},1 @@\n-a\n+b\n");
    let hunks: String = (300_000..301_000).map(everywhere).collect();
    let failures = refusals(&file, &hunks);
    assert!(matches!(failures[0].error, EditError::NotUnique { count: 200_000, .. }));
    let last = failures.last().map(|failure| failure.error.to_string()).unwrap_or_default();
    assert!(last.contains("not searched for"), "{last}");
    let long = format!("@@ -300000 +1 @@\n{}-a\n+b\n", " a\n".repeat(100_000));
    assert!(matches!(refusals(&file, &long)[0].error, EditError::NotUnique { count: 100_000, .. }));
}

#[test]
fn many_hunks_with_errors_or_warnings_take_linear_time() {
    let file: String = (0..50_000).map(|n| format!("x{n}\n")).chain([" y\n".to_owned()]).collect();
    let hunk = |n: usize, old: &str| format!("@@ -{0},1 +{0},1 @@\n-{old}{1}\n+\ty\n", n + 1, n);
    let with_warnings = applied(&file, &(0..25_000).map(|n| hunk(n, "x")).collect::<String>()).unwrap();
    assert_eq!(with_warnings.warnings.len(), 25_000);
    assert_eq!(refusals(&file, &(0..25_000).map(|n| hunk(n, "z")).collect::<String>()).len(), 25_000);
}

#[test]
fn a_thousand_hunks_are_applied_to_a_hundred_thousand_lines() {
    let line = |n: usize| if n.is_multiple_of(3) { "}\n".to_owned() } else { format!("line {n}\n") };
    let file: String = (0..100_000).map(line).collect();
    let mut hunks = String::new();
    for n in (1..100_000).step_by(99) {
        let (kept, deleted) = (line(n), line(n + 1));
        _ = write!(hunks, "@@ -{},3 +1,3 @@ fn missing() {{\n {kept}-{deleted}+changed {n}\n }}\n", n + 7);
    }
    let moved = applied(&file, &hunks).unwrap();
    assert_eq!(moved.placements.len(), 1011);
    let damaged = hunks.replace("-line", "-lime");
    assert!(applied(&file, &damaged).unwrap_err().to_string().contains("1011 hunks cannot be applied"));
    let mut everywhere = String::new();
    for n in (4..3_000).step_by(3) {
        _ = write!(everywhere, "@@ -{n},1 +{n},1 @@\n-}}\n+]\n");
    }
    let broken = format!("{everywhere}@@ -1 +1 @@\n-nowhere\n+x\n");
    assert_eq!(applied(&file, &broken).unwrap_err().kind(), ErrorKind::NotFound);
}
