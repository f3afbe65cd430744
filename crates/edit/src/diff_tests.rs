use super::*;

fn unified(path: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    super::unified(path, old, new, StopFlag::never())
}

fn change<'a>(path: &'a [u8], old: &'a [u8], new: &'a [u8]) -> FileChange<'a> {
    let side = |content| Some(Side { path, content, mode: None });
    FileChange { old: side(old), new: side(new), origin: Origin::Renamed }
}

#[test]
fn a_diff_has_the_form_of_gits() {
    let diff = unified(b"src/x.rs", Some(b"a\nb\nc\nd\ne\n"), Some(b"a\nb\nc\nD\ne\n"));
    assert_eq!(diff, "--- a/src/x.rs\n+++ b/src/x.rs\n@@ -1,5 +1,5 @@\n a\n b\n c\n-d\n+D\n e\n");
}

#[test]
fn equal_contents_have_no_diff() {
    assert_eq!(unified(b"x", Some(b"a\n"), Some(b"a\n")), "");
    assert_eq!(unified(b"x", None, None), "");
}

#[test]
fn creation_and_deletion_name_dev_null() {
    assert_eq!(unified(b"x", None, Some(b"a\n")), "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n");
    assert_eq!(
        unified(b"x", Some(b"a"), None),
        "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n"
    );
    assert_eq!(unified(b"x", None, Some(b"")), "--- /dev/null\n+++ b/x\n");
}

#[test]
fn endings_and_missing_newlines_are_kept() {
    let diff = unified(b"x", Some(b"a\r\nb"), Some(b"a\r\nb\n"));
    assert_eq!(diff, "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\r\n-b\n\\ No newline at end of file\n+b\n");
}

#[test]
fn binary_contents_give_one_line() {
    assert_eq!(unified(b"x", Some(b"a\0"), Some(b"b")), "Binary files a/x and b/x differ\n");
    assert_eq!(unified(b"x", None, Some(b"\xff")), "Binary files /dev/null and b/x differ\n");
}

#[test]
fn names_with_special_characters_are_quoted() {
    let diff = unified("ü \"x\"".as_bytes(), Some(b"a"), Some(b"b"));
    assert!(diff.starts_with("--- \"a/\\303\\274 \\\"x\\\"\"\n"), "{diff}");
    assert!(unified(b"a b", Some(b"a"), Some(b"b")).starts_with("--- a/a b\t\n+++ b/a b\t\n"));
}

#[test]
fn a_long_diff_is_truncated_and_says_so() {
    let old: String = (0..1000).map(|n| n.to_string() + "\n").collect();
    let new: String = (0..1000).map(|n| if n % 100 == 50 { format!("{n}!\n") } else { format!("{n}\n") }).collect();
    let diff = change(b"x", old.as_bytes(), new.as_bytes()).unified(300, StopFlag::never());
    assert!(diff.len() < 400, "{diff}");
    assert!(diff.ends_with("# the diff is cut: 6 more hunks of 54 lines are left out\n"), "{diff}");
}

#[test]
fn a_diff_of_a_hundred_thousand_changed_lines_stays_within_its_limit() {
    let old: String = (0..100_000).map(|n| n.to_string() + "\n").collect();
    let new: String = (0..100_000).map(|n| (n * 7919 % 100_003).to_string() + "\n").collect();
    let diff = unified(b"x", Some(old.as_bytes()), Some(new.as_bytes()));
    assert!(diff.len() < LIMIT_BYTES + 200);
}

#[test]
fn a_change_late_in_a_long_text_has_the_right_line_numbers() {
    let old: String = (0..50_000).map(|n| n.to_string() + "\n").collect();
    let new = old.replace("\n40000\n", "\nforty\nthousand\n").replace("\n40004\n", "\n");
    let diff = unified(b"x", Some(old.as_bytes()), Some(new.as_bytes()));
    assert!(diff.contains("@@ -39998,11 +39998,11 @@\n 39997\n"), "{diff}");
    assert!(diff.ends_with(" 40007\n"), "{diff}");
    let grown = unified(b"x", Some(b"a\na\n"), Some(b"a\na\na\n"));
    assert_eq!(grown, "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n a\n+a\n");
    let closed = unified(b"x", Some(b"a\nb\nc\nd\ne\nf"), Some(b"a\nb\nc\nd\ne\nf\n"));
    assert!(closed.ends_with(" e\n-f\n\\ No newline at end of file\n+f\n"), "{closed}");
}

#[test]
fn changed_names_and_modes_are_in_gits_extended_header() {
    let side = |path, content, mode| Some(Side { path, content, mode });
    let unified = |old, new, origin| FileChange { old, new, origin }.unified(LIMIT_BYTES, StopFlag::never());
    let (regular, executable) = (Some(0o100_644), Some(0o100_755));
    assert_eq!(
        unified(side(b"x", b"a", regular), side(b"x", b"a", executable), Origin::Renamed),
        "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
    );
    assert_eq!(
        unified(side(b"x", b"a\n", None), side(b"d/y z", b"b\n", None), Origin::Renamed),
        "diff --git a/x b/d/y z\nrename from x\nrename to d/y z\n--- a/x\n+++ b/d/y z\t\n@@ -1 +1 @@\n-a\n+b\n"
    );
    let copy = unified(side(b"x", b"a\n", None), side(b"y", b"a\n", None), Origin::Copied);
    assert_eq!(copy, "diff --git a/x b/y\ncopy from x\ncopy to y\n");
    assert_eq!(
        unified(None, side(b"x", b"a\n", executable), Origin::Renamed),
        "diff --git a/x b/x\nnew file mode 100755\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"
    );
}

#[test]
fn a_stopped_diff_ends_at_once() {
    let old: String = (0..300_000).map(|n| n.to_string() + "\n").collect();
    let new: String = (0..300_000_u64).map(|n| (n * 7_919 % 300_007).to_string() + "\n").collect();
    let stopped = std::sync::atomic::AtomicBool::new(true);
    let started = Instant::now();
    super::unified(b"x", Some(old.as_bytes()), Some(new.as_bytes()), StopFlag::new(&stopped));
    assert!(started.elapsed() < MAX_DIFF_TIME, "{:?}", started.elapsed());
}
