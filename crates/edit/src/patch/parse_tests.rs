use super::*;
use crate::error::ErrorKind;
use crate::patch::{Blanks, Change, Content, Counts, EndConstraint, Hunk, LineKind, Newline};

fn one(patch: &str) -> FilePatch<'_> {
    let mut files = parse(patch.as_bytes()).unwrap();
    assert_eq!(files.len(), 1);
    files.remove(0)
}

fn hunks<'a>(file: &FilePatch<'a>) -> Vec<Hunk<'a>> {
    match &file.content {
        Content::Text(hunks) => hunks.clone(),
        Content::Binary(_) => panic!("the patch is binary"),
    }
}

fn shown(hunk: &Hunk) -> String {
    let mut shown = String::new();
    for line in &hunk.lines {
        shown.push(match line.kind {
            LineKind::Context => ' ',
            LineKind::Delete => '-',
            LineKind::Insert => '+',
        });
        shown.push_str(&String::from_utf8_lossy(line.text));
        shown.push('\n');
    }
    shown
}

fn syntax_line(patch: &str) -> usize {
    match parse(patch.as_bytes()).unwrap_err() {
        EditError::Syntax { line, .. } => line,
        other => panic!("{other}"),
    }
}

const BODY: &str = " a\n-b\n+c\n";

#[test]
fn a_plain_diff_is_parsed() {
    let file = one("--- a/x.rs\t2024-01-01\n+++ b/x.rs\t2024-01-02\n@@ -1,2 +1,2 @@ fn f() {\n a\n-b\n+c\n");
    assert_eq!(file.change, Change::Modify(b"x.rs".to_vec()));
    let hunk = &hunks(&file)[0];
    assert_eq!((shown(hunk).as_str(), hunk.patch_line), (BODY, 3));
    assert_eq!(hunk.headings, [b"fn f() {"]);
    assert_eq!(hunk.header_position.unwrap().counts, Counts::Right);
}

#[test]
fn gits_extended_headers_are_parsed() {
    let created = one("diff --git a/n b/n\nnew file mode 100755\nindex 0000000..e69de29\n");
    assert_eq!((created.change, created.new_mode), (Change::Create(b"n".to_vec()), Some(0o100_755)));
    let deleted = one("diff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    assert_eq!((deleted.change, deleted.old_mode), (Change::Delete(b"d".to_vec()), Some(0o100_644)));
    let moved = one("diff --git a/x y b/z\nsimilarity index 90%\nrename from x y\nrename to z\n");
    assert_eq!(moved.change, Change::Rename { from: b"x y".to_vec(), to: b"z".to_vec() });
    let copied = one("diff --git a/x b/z\nsimilarity index 90%\ncopy from x\ncopy to z\n");
    assert_eq!(copied.change, Change::Copy { from: b"x".to_vec(), to: b"z".to_vec() });
    let mode = one("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n");
    assert_eq!(
        (mode.change, mode.old_mode, mode.new_mode),
        (Change::Modify(b"x".to_vec()), Some(0o100_644), Some(0o100_755))
    );
    let quoted = one(
        "diff --git \"a/\\303\\274\" \"b/\\303\\274\"\n--- \"a/\\303\\274\"\n+++ \"b/\\303\\274\"\n@@ -1 +1 @@\n-a\n+b\n",
    );
    assert_eq!(quoted.change, Change::Modify("ü".as_bytes().to_vec()));
}

#[test]
fn a_patch_can_have_many_files() {
    let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n\
                 diff --git a/z b/z\nindex 1..2 100644\n--- a/z\n+++ b/z\n@@ -1 +1 @@\n-a\n+b\n";
    let files = parse(patch.as_bytes()).unwrap();
    let names: Vec<_> = files.iter().filter_map(FilePatch::source).collect();
    assert_eq!(names, [b"x", b"y", b"z"]);
    assert!(files.iter().all(|file| hunks(file).len() == 1));
}

#[test]
fn prose_and_code_fences_are_not_part_of_the_patch() {
    let patch = format!("I changed:\n- this\n\n```diff\n--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n{BODY}```\n- and that\n");
    assert_eq!(shown(&hunks(&one(&patch))[0]), BODY);
    let mail = format!("From x\n---\n x | 2 +-\n\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n{BODY}-- \n2.47.3\n\n");
    assert_eq!(shown(&hunks(&one(&mail))[0]), BODY);
    let followed = format!("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n{BODY}\nThat is all.\n");
    assert_eq!(shown(&hunks(&one(&followed))[0]), BODY);
}

#[test]
fn every_prefix_that_git_can_write_is_removed() {
    let hunk = "@@ -0,0 +1 @@\n+a\n";
    for (line, name) in
        [("i/n w/n", "w/n"), ("c/n i/n", "i/n"), ("old/n new/n", "new/n"), ("n n", "n"), ("a/n b/n", "b/n")]
    {
        let created = format!("diff --git {line}\nnew file mode 100644\n--- /dev/null\n+++ {name}\n{hunk}");
        assert_eq!(one(&created).change, Change::Create(b"n".to_vec()), "{created}");
    }
    let in_folder_b = format!("diff --git b/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n{hunk}");
    assert_eq!(one(&in_folder_b).change, Change::Create(b"b/n".to_vec()), "it was written without prefixes");
    let mode = one("diff --git old/x new/x\nold mode 100644\nnew mode 100755\n");
    assert_eq!(mode.change, Change::Modify(b"x".to_vec()));
}

#[test]
fn folders_compared_by_diff_are_not_part_of_the_names() {
    let (then, now) = ("2024-01-01 10:00:00.000000000 +0000", "2024-01-02 10:00:00.000000000 +0000");
    let epoch = "1970-01-01 01:00:00.000000000 +0100";
    let header = |old, new| format!("diff -ruN p-1/s/x p-2/s/x\n--- p-1/s/x\t{old}\n+++ p-2/s/x\t{new}\n");
    let change = |header: &str, hunk: &str| one(&format!("{header}{hunk}")).change;
    let (modify, insert, delete) = (format!("@@ -1,2 +1,2 @@\n{BODY}"), "@@ -0,0 +1 @@\n+a\n", "@@ -1 +0,0 @@\n-a\n");
    assert_eq!(change(&header(then, now), &modify), Change::Modify(b"s/x".to_vec()));
    assert_eq!(change(&header(epoch, now), insert), Change::Create(b"s/x".to_vec()));
    assert_eq!(change(&header(then, epoch), delete), Change::Delete(b"s/x".to_vec()));
    assert_eq!(
        change(&header(then, now), delete),
        Change::Modify(b"s/x".to_vec()),
        "an empty file is left, because the time is not the epoch"
    );
    let moved = Change::Rename { from: b"old/x".to_vec(), to: b"new/x".to_vec() };
    assert_eq!(change("--- old/x\n+++ new/x\n", &modify), moved, "different names without other evidence are a rename");
    assert_eq!(change("--- a/x \t\n+++ b/x \t\n", &modify), Change::Modify(b"x ".to_vec()));
}

#[test]
fn text_between_diffs_is_not_part_of_a_hunk() {
    for between in [
        "\nFrom 1234567 Mon Sep 17 00:00:00 2001\nSubject: two\n\n- a bullet\n---\n x | 2 +-\n\n",
        "-- \nBest regards\n\nFrom 1234567 Mon Sep 17 00:00:00 2001\n---\n",
        "\nProperty changes on: x\n___\nAdded: svn:executable\n## -0,0 +1 ##\n+*\n",
        "Index: y\n===\n",
        "Only in new: z\n- \n",
    ] {
        let patch =
            format!("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n{BODY}{between}--- a/y\n+++ b/y\n@@ -1,2 +1,2 @@\n{BODY}");
        let files = parse(patch.as_bytes()).unwrap();
        assert_eq!(files.iter().map(|file| shown(&hunks(file)[0])).collect::<Vec<_>>(), [BODY; 2], "{between}");
    }
}

#[test]
fn half_of_a_file_header_is_refused() {
    for half in ["+++ b/y", "--- a/y"] {
        for header in ["@@ -1,2 +1,2 @@\n", "@@ ... @@\n", ""] {
            let patch = format!("--- a/x\n+++ b/x\n{header}{BODY}{half}\n@@ -1 +1 @@\n-a\n+b\n");
            let line = patch.lines().position(|line| line == half).unwrap() + 1;
            assert_eq!(syntax_line(&patch), line, "{patch}");
            let cut_off: String = patch.split_inclusive('\n').take(line).collect();
            assert_eq!(syntax_line(&cut_off), line, "{cut_off}");
        }
    }
}

#[test]
fn wrong_counts_are_corrected_by_the_prefixes_of_the_lines() {
    for counts in ["-1,1 +1,1", "-1,2 +1,1", "-1,0 +1,2"] {
        let file = format!("--- a/x\n+++ b/x\n@@ {counts} @@\n{BODY}@@ -9,2 +9,2 @@\n{BODY}\n");
        let file = one(&file);
        let hunks = hunks(&file);
        assert_eq!(hunks.len(), 2, "{counts}");
        assert_eq!(shown(&hunks[0]), BODY, "{counts}");
        assert_eq!(hunks[0].header_position.unwrap().counts, Counts::Wrong);
        assert_eq!(hunks[1].header_position.unwrap().counts, Counts::Right);
    }
}

#[test]
fn hunks_need_no_line_numbers_and_the_first_hunk_no_header() {
    let patch = format!("--- a/x\n+++ b/x\n{BODY}@@ ... @@\n{BODY}@@\n{BODY}");
    let file = one(&patch);
    assert_eq!(hunks(&file).iter().map(shown).collect::<Vec<_>>(), [BODY; 3]);
    assert!(hunks(&file).iter().all(|hunk| hunk.header_position.is_none()));
}

#[test]
fn lines_that_look_like_headers_are_content_within_the_counts() {
    let file = one("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n--- b\n+++ c\n");
    assert_eq!(shown(&hunks(&file)[0]), " a\n--- b\n+++ c\n");
}

#[test]
fn context_lines_may_lack_their_leading_space() {
    let file = one("--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\na\n\n-b\n+c\n d\n");
    assert_eq!(shown(&hunks(&file)[0]), " a\n \n-b\n+c\n d\n");
}

#[test]
fn a_missing_newline_is_marked() {
    let file = one("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n");
    let newlines: Vec<_> = hunks(&file)[0].lines.iter().map(|line| line.newline).collect();
    assert_eq!(newlines, [Newline::Missing, Newline::Present]);
}

#[test]
fn carriage_returns_are_removed_from_a_patch_converted_to_crlf() {
    let translated = one("--- a/x\r\n+++ b/x\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n");
    assert_eq!(shown(&hunks(&translated)[0]), BODY);
    let genuine = one("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n");
    assert_eq!(shown(&hunks(&genuine)[0]), " a\r\n-b\r\n+c\r\n");
}

#[test]
fn the_begin_patch_format_is_parsed() {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+a\n\n+b\n\n*** Update File: x.py\n*** Move to: y.py\n@@ class A\n\
                 @@ def f\n a\n-b\n+c\n*** End of File\n*** Delete File: z\n*** End Patch\n";
    let files = parse(patch.as_bytes()).unwrap();
    assert_eq!(files[0].change, Change::Create(b"new.txt".to_vec()));
    assert_eq!(shown(&hunks(&files[0])[0]), "+a\n+\n+b\n");
    assert_eq!(files[1].change, Change::Rename { from: b"x.py".to_vec(), to: b"y.py".to_vec() });
    let hunk = &hunks(&files[1])[0];
    assert_eq!((shown(hunk).as_str(), hunk.end_constraint), (BODY, EndConstraint::EndOfFile));
    assert_eq!(hunk.headings, [&b"class A"[..], b"def f"]);
    assert_eq!(files[2].change, Change::Delete(b"z".to_vec()));
}

#[test]
fn the_old_file_may_be_a_backup_of_the_new_one() {
    assert_eq!(one("--- x.c.orig\n+++ x.c\n@@ -1 +1 @@\n-a\n+b\n").change, Change::Modify(b"x.c".to_vec()));
}

#[test]
fn markers_after_a_space_are_text_of_the_file() {
    let file =
        one("*** Begin Patch\n*** Update File: x\n@@\n *** End Patch\n-a\n+b\n *** Delete File: y\n*** End Patch\n");
    assert_eq!(shown(&hunks(&file)[0]), " *** End Patch\n-a\n+b\n *** Delete File: y\n");
    assert_eq!(
        syntax_line("*** Begin Patch\n*** Update File: x\n@@\n a\n*** End Patch\n"),
        2,
        "a section without changes is refused"
    );
}

#[test]
fn a_hunk_with_fewer_lines_than_it_announces_is_refused() {
    for counts in ["-1,9 +1,9", "-1,3 +1,2", "-1,2 +1,3", "-1,3 +1,3"] {
        let diff = format!("--- a/x\n+++ b/x\n@@ {counts} @@\n{BODY}");
        for after in ["", "diff --git a/y b/y\n", "*** Begin Patch\n*** Delete File: y\n*** End Patch\n"] {
            assert_eq!(syntax_line(&format!("{diff}{after}")), 3, "{counts} {after:?}");
        }
        let block = format!("*** Begin Patch\n*** Update File: x\n@@ {counts} @@\n{BODY}*** End Patch\n");
        assert_eq!(syntax_line(&block), 3, "{counts}");
    }
    assert_eq!(syntax_line("--- /dev/null\n+++ b/x\n@@ -0,0 +1,3 @@\n+a\n+b\n"), 3);
}

#[test]
fn a_block_without_its_end_is_refused() {
    let block = "*** Begin Patch\n*** Add File: x\n+a\n";
    assert_eq!(syntax_line(block), 3);
    assert_eq!(syntax_line("*** Update File: x\n-a\n+b\n"), 3);
    assert_eq!(syntax_line(&format!("{block}*** Begin Patch\n*** Add File: y\n+a\n*** End Patch\n")), 4);
    assert_eq!(syntax_line(&format!("{block}*** End Patch\n{block}")), 7);
}

#[test]
fn only_another_patch_may_follow_a_block() {
    let block = |name: &str| format!("*** Begin Patch\n*** Add File: {name}\n+a\n*** End Patch\n");
    let diff = |name: &str| format!("--- a/{name}\n+++ b/{name}\n@@ -1,2 +1,2 @@\n{BODY}");
    let names = |patch: &str| -> Vec<String> {
        let files = parse(patch.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{patch}"));
        files.iter().map(|file| String::from_utf8_lossy(file.target().unwrap()).into_owned()).collect()
    };
    let git = |name: &str| format!("diff --git a/{name} b/{name}\nindex 1..2 100644\n{}", diff(name));
    for between in ["", "\n", "\n\n"] {
        assert_eq!(names(&format!("{}{between}{}", block("x"), block("y"))), ["x", "y"]);
        assert_eq!(names(&format!("{}{between}{}", block("x"), diff("y"))), ["x", "y"]);
        assert_eq!(names(&format!("{}{between}{}", block("x"), git("y"))), ["x", "y"]);
        assert_eq!(names(&format!("{}{between}{}", diff("x"), block("y"))), ["x", "y"]);
        assert_eq!(names(&format!("{}{between}{}{}", git("x"), block("y"), diff("z"))), ["x", "y", "z"]);
    }
    let steps: Vec<usize> = parse(format!("{}{}{}", block("x"), git("y"), block("z")).as_bytes())
        .unwrap()
        .iter()
        .map(|file| file.step)
        .collect();
    assert_eq!(steps, [0, 1, 2]);
    let miscounted = diff("x").replace("-1,2 +1,2", "-1,1 +1,1");
    assert_eq!(names(&format!("{miscounted}{}", block("y"))), ["x", "y"]);
    assert_eq!(names(&format!("```\n{}```\n", block("x"))), ["x"]);
    assert_eq!(names(&format!("apply_patch <<'EOF'\n{}EOF\n", block("x"))), ["x"]);
    assert_eq!(syntax_line(&format!("{}That is all.\n", block("x"))), 5);
    assert_eq!(syntax_line(&format!("{}+b\n", block("x"))), 5);
    assert_eq!(syntax_line(&format!("{}\n@@ -1 +1 @@\n-a\n+b\n", block("x"))), 6);
    for line in ["From me", "diff of nothing", "Index: x", "Only in a: x", "-- "] {
        assert_eq!(syntax_line(&format!("{}\n{line}\n", block("x"))), 6, "{line}");
        assert_eq!(syntax_line(&format!("{}{line}\n{}", block("x"), block("y"))), 5, "{line}");
        assert_eq!(names(&format!("{}{line}\n{}", block("x"), diff("y"))), ["x", "y"], "{line}");
    }
}

#[test]
fn blanks_around_a_name_are_kept_for_the_file_that_has_them() {
    for (header, expected) in [
        ("--- a/x \n+++ b/x \n", (Change::Modify(b"x ".to_vec()), Blanks::MaybePadding)),
        ("---  x\n+++  x\n", (Change::Modify(b" x".to_vec()), Blanks::MaybePadding)),
        ("--- a/x \n+++ /dev/null \n", (Change::Delete(b"x ".to_vec()), Blanks::MaybePadding)),
        ("--- a/x \n+++ b/x\n", (Change::Modify(b"x".to_vec()), Blanks::PartOfName)),
        ("---  a/x\n+++  b/x\n", (Change::Modify(b"x".to_vec()), Blanks::PartOfName)),
        ("--- a/x \t\n+++ b/x \t\n", (Change::Modify(b"x ".to_vec()), Blanks::PartOfName)),
        ("--- \"a/x \"\n+++ \"b/x \"\n", (Change::Modify(b"x ".to_vec()), Blanks::PartOfName)),
    ] {
        let patch = format!("{header}@@ -1,2 +1,2 @@\n{BODY}");
        let file = one(&patch);
        assert_eq!((file.change, file.blanks), expected, "{header}");
    }
    let moved = one("*** Begin Patch\n*** Update File:  x \n*** Move to: y \t\n@@\n-a\n+b\n*** End Patch\n");
    assert_eq!(moved.change, Change::Rename { from: b" x ".to_vec(), to: b"y \t".to_vec() });
    assert_eq!(syntax_line("*** Begin Patch\n*** Update File: x\n*** Move to:  \n@@\n-a\n+b\n*** End Patch\n"), 3);
}

#[test]
fn a_change_that_is_named_but_not_given_is_refused_by_its_line() {
    let diff = format!("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n{BODY}");
    for line in [
        "Submodule s 1234567..89abcde:\n  > a commit",
        "Submodule path of s 1234567...89abcde (rewind):",
        "Submodule s 0000000...89abcde (new submodule)",
        "Submodule s contains modified content",
        "Binary files a/y and b/y differ",
    ] {
        assert_eq!(syntax_line(&format!("{diff}{line}\n")), 7, "{line}");
        assert_eq!(syntax_line(&format!("{line}\n{diff}")), 1, "{line}");
    }
    let message = parse(format!("{diff}Submodule s 1234567..89abcde:\n").as_bytes()).unwrap_err().to_string();
    assert!(message.contains("`Submodule s 1234567..89abcde:`"), "{message}");
    assert_eq!(
        parse(format!("Submodule s is changed below\n{diff}").as_bytes()).unwrap().len(),
        1,
        "that line is prose"
    );
}

#[test]
fn markers_with_whitespace_around_them_are_accepted() {
    let patch = " *** Begin Patch\n  *** Update File: x \n\t*** Move to: y\n@@\n-a\n+b\n *** Update File: z\n@@\n-a\n+b\n\
                 *** Delete File: d\n *** Add File: n\n+a\n *** End Patch \n\n";
    let files = parse(patch.as_bytes()).unwrap();
    let names: Vec<_> = files.iter().map(|file| (file.source(), file.target())).collect();
    let name = |name: &'static str| Some(name.as_bytes());
    assert_eq!(names, [(name("x "), name("y")), (name("z"), name("z")), (name("d"), None), (None, name("n"))]);
    assert!(files.iter().all(|file| file.blanks == Blanks::MaybePadding));
    let last = one("*** Begin Patch\n*** Update File: x\n@@\n-a\n+b\n *** End Patch\n");
    assert_eq!(shown(&hunks(&last)[0]), "-a\n+b\n");
}

#[test]
fn the_mode_of_a_submodule_is_read_from_its_index_line() {
    let file = one(
        "diff --git a/s b/s\nindex 1234567..89abcde 160000\n--- a/s\n+++ b/s\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n",
    );
    assert_eq!((file.old_mode, file.new_mode), (Some(0o160_000), Some(0o160_000)));
}

#[test]
fn a_long_line_of_spaces_is_parsed_in_linear_time() {
    let begun = std::time::Instant::now();
    let patch = format!("diff --git {}\n", " ".repeat(1_000_000));
    assert!(parse(patch.as_bytes()).is_err());
    assert!(begun.elapsed() < std::time::Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
fn an_invalid_line_is_refused_with_its_number() {
    assert_eq!(syntax_line("hello\n"), 1);
    assert_eq!(syntax_line("hello\n@@ -1 +1 @@\n-a\n+b\n"), 2);
    assert_eq!(syntax_line("--- a/x\n+++ b/x\n"), 3);
    assert_eq!(syntax_line("--- a/x\n+++ b/x\n@@ -1 +1 @@\n"), 3);
    assert_eq!(syntax_line("diff --git a/x b/x\nindex 1..2\nBinary files a/x and b/x differ\n"), 3);
    assert_eq!(syntax_line("diff --cc x\n@@@ -1,2 -1,2 +1,2 @@@\n"), 2);
    assert_eq!(syntax_line("*** Begin Patch\nhello\n"), 2);
    assert_eq!(syntax_line("*** Begin Patch\n*** Add File: x\nhello\n"), 3);
    assert_eq!(syntax_line("*** Begin Patch\n*** Update File: x\n*** End Patch\n"), 2);
    assert_eq!(syntax_line("*** Begin Patch\n*** Delete File: x\n-a\n"), 3);
    assert_eq!(parse(b"").unwrap_err().kind(), ErrorKind::Syntax);
}
