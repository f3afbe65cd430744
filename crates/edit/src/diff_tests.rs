use super::*;

#[test]
fn a_diff_reads_as_git_writes_it() {
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
fn contents_that_are_no_text_give_one_line() {
    assert_eq!(unified(b"x", Some(b"a\0"), Some(b"b")), "Binary files a/x and b/x differ\n");
    assert_eq!(unified(b"x", None, Some(b"\xff")), "Binary files /dev/null and b/x differ\n");
}

#[test]
fn odd_names_are_quoted() {
    let diff = unified("ü \"x\"".as_bytes(), Some(b"a"), Some(b"b"));
    assert!(diff.starts_with("--- \"a/\\303\\274 \\\"x\\\"\"\n"), "{diff}");
    assert!(unified(b"a b", Some(b"a"), Some(b"b")).starts_with("--- a/a b\t\n+++ b/a b\t\n"));
}

#[test]
fn a_long_diff_is_cut_and_says_so() {
    let old: String = (0..1000).map(|n| n.to_string() + "\n").collect();
    let new: String = (0..1000).map(|n| if n % 100 == 50 { format!("{n}!\n") } else { format!("{n}\n") }).collect();
    let diff = unified_within(b"x", Some(old.as_bytes()), Some(new.as_bytes()), 300);
    assert!(diff.len() < 400, "{diff}");
    assert!(diff.ends_with("# the diff is cut: 6 more hunks of 54 lines are left out\n"), "{diff}");
}

#[test]
fn a_hundred_thousand_changed_lines_are_no_trouble() {
    let old: String = (0..100_000).map(|n| n.to_string() + "\n").collect();
    let new: String = (0..100_000).map(|n| (n * 7919 % 100_003).to_string() + "\n").collect();
    let diff = unified(b"x", Some(old.as_bytes()), Some(new.as_bytes()));
    assert!(diff.len() < LIMIT_BYTES + 200);
}
