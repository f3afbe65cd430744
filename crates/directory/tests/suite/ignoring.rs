//! Ignore rules, compared with git and ripgrep.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use toolrest_directory::{Files, IgnoreMode, Paths, SkipCounts, Visitor, WalkOptions};

use crate::fixture::Fixture;

struct All;

#[derive(Default)]
struct Kept {
    files: Vec<Paths>,
    ignored: u64,
}

impl Visitor for All {
    type Thread = Kept;

    fn enters(&self, folder: &str) -> bool {
        !folder.ends_with("/.git")
    }

    fn accepts(&self, _: &str) -> bool {
        true
    }

    fn is_over(&self, _: &str) -> bool {
        false
    }

    fn visit(&self, files: &mut Files<'_>, kept: &mut Kept) {
        kept.files.push(files.paths());
    }

    fn skipped(&self, _: &str, skipped: SkipCounts, kept: &mut Kept) {
        kept.ignored += skipped.ignored;
    }
}

/// Returns the files below a folder that are not ignored, relative to the root, and the number of ignored entries.
fn walk(fixture: &Fixture, folder: &str) -> (BTreeSet<String>, u64) {
    let shown_as = if folder.is_empty() { String::new() } else { format!("/{folder}") };
    let options = WalkOptions {
        shown_as: &shown_as,
        depth: usize::MAX,
        rules: IgnoreMode::Respect,
        max_files_per_visit: 100,
        max_path_bytes: 2048,
        threads: 2,
    };
    let (mut found, mut ignored) = (BTreeSet::new(), 0);
    for kept in fixture.root.walk(Path::new(folder), options, &All).unwrap() {
        ignored += kept.ignored;
        for files in &kept.files {
            found.extend(files.names().map(|name| [&files.folder()[1..], name].concat()));
        }
    }
    (found, ignored)
}

/// Returns the output lines of a program, or `None` if it is not installed.
#[allow(clippy::disallowed_methods, reason = "what is compared with has to be started")]
fn program_output(fixture: &Fixture, program: &str, arguments: &[&str]) -> Option<BTreeSet<String>> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(fixture.path(""))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", fixture.outside())
        .output()
        .ok()?;
    // ripgrep exits with 1 if it found nothing.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{program} {arguments:?}: {output:?}");
    Some(String::from_utf8(output.stdout).unwrap().split_terminator('\0').map(str::to_owned).collect())
}

fn listed_by_git(fixture: &Fixture) -> Option<BTreeSet<String>> {
    program_output(fixture, "git", &["-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"])
}

fn listed_by_ripgrep(fixture: &Fixture) -> Option<BTreeSet<String>> {
    let only_git = ["--no-ignore-dot", "--no-ignore-global", "--no-ignore-parent", "--glob=!.git"];
    program_output(fixture, "rg", &[&["--no-config", "--files", "--hidden", "--null"][..], &only_git].concat())
}

fn repository(files: &[(&str, &str)]) -> Option<Fixture> {
    let fixture = Fixture::with(files);
    program_output(&fixture, "git", &["init", "--quiet", "."])?;
    Some(fixture)
}

#[track_caller]
fn assert_all_agree(fixture: &Fixture) -> BTreeSet<String> {
    let (ours, _) = walk(fixture, "");
    if let Some(theirs) = listed_by_git(fixture) {
        assert_eq!(ours, theirs, "git's answer is on the right");
    }
    if let Some(theirs) = listed_by_ripgrep(fixture) {
        assert_eq!(ours, theirs, "ripgrep's answer is on the right");
    }
    ours
}

#[test]
fn all_kinds_of_rules_match_like_in_git() {
    let rules = "# a comment\n\n*.log\n!keep.log\nbuild/\n/anchored\nsub/inner.txt\n**/deep/x\nabc/**\na/**/b\n\\#hash\n\
                 \\!bang\ntrailing \n??.tmp\n[a-c].cls\n*.o\n!important.o\nnode_modules\nfoo/*\n!foo/bar.txt\n";
    let Some(fixture) = repository(&[
        (".gitignore", rules),
        ("x.log", ""),
        ("keep.log", ""),
        ("one/y.log", ""),
        ("one/keep.log", ""),
        ("build/made", ""),
        ("one/build/made", ""),
        ("two/build", "a file of the name"),
        ("anchored", ""),
        ("one/anchored", ""),
        ("sub/inner.txt", ""),
        ("one/sub/inner.txt", ""),
        ("deep/x", ""),
        ("one/two/deep/x", ""),
        ("one/two/deep/y", ""),
        ("abc/below/file", ""),
        ("a/b", ""),
        ("a/x/b", ""),
        ("a/x/y/b", ""),
        ("a/x/y/c", ""),
        ("#hash", ""),
        ("!bang", ""),
        ("trailing", ""),
        ("ab.tmp", ""),
        ("abc.tmp", ""),
        ("b.cls", ""),
        ("d.cls", ""),
        ("lib.o", ""),
        ("important.o", ""),
        ("node_modules/important.o", ""),
        ("one/node_modules/p/q.js", ""),
        ("foo/bar.txt", ""),
        ("foo/baz.txt", ""),
        (".hidden/file", ""),
    ]) else {
        return;
    };
    let found = assert_all_agree(&fixture);
    assert!(found.contains("keep.log") && found.contains("two/build") && found.contains("foo/bar.txt"), "{found:?}");
    assert!(!found.contains("node_modules/important.o"), "nothing is brought back from a folder that is left out");
}

#[test]
fn the_nearest_rules_decide() {
    let Some(fixture) = repository(&[
        (".gitignore", "*.txt\n*.bin\nlocked/\n"),
        ("one/.gitignore", "!*.txt\n/own.bin\n!own.bin\n"),
        ("one/two/.gitignore", "secret.txt\n"),
        ("locked/.gitignore", "!*\n"),
        ("a.txt", ""),
        ("one/a.txt", ""),
        ("one/own.bin", ""),
        ("one/x.bin", ""),
        ("one/two/a.txt", ""),
        ("one/two/secret.txt", ""),
        ("one/two/three/secret.txt", ""),
        ("locked/file", ""),
    ]) else {
        return;
    };
    assert_all_agree(&fixture);
    fs::create_dir_all(fixture.path(".git/info")).unwrap();
    fs::write(fixture.path(".git/info/exclude"), "*.bin\nx.md\n").unwrap();
    fixture.put("x.md", "");
    fixture.put("one/x.md", "");
    fixture.put("keep/.gitignore", "!x.md\n");
    fixture.put("keep/x.md", "");
    let found = assert_all_agree(&fixture);
    assert!(found.contains("keep/x.md") && !found.contains("x.md"));
}

#[test]
fn an_ignored_folder_is_counted_once() {
    let fixture = Fixture::with(&[(".gitignore", "target/\n*.log\n"), ("a.log", ""), ("a.rs", "")]);
    fixture.put("target/one/file", "");
    fixture.put("target/two/file", "");
    fixture.put("src/b.log", "");
    let (found, ignored) = walk(&fixture, "");
    assert_eq!(found, [".gitignore", "a.rs"].map(str::to_owned).into());
    assert_eq!(ignored, 3);
}

#[test]
fn a_folder_named_by_the_caller_is_read_even_if_ignored() {
    let fixture = Fixture::with(&[
        (".gitignore", "target/\n/src/gen/*.c\n*.log\n"),
        ("target/one/file", ""),
        ("target/one/x.log", ""),
        ("src/gen/a.c", ""),
        ("src/gen/a.h", ""),
        ("src/.gitignore", "x\n"),
        ("src/gen/x", ""),
    ]);
    assert_eq!(walk(&fixture, "target").0, ["target/one/file".to_owned()].into());
    assert_eq!(walk(&fixture, "target/one").0, ["target/one/file".to_owned()].into());
    assert_eq!(walk(&fixture, "src/gen").0, ["src/gen/a.h".to_owned()].into());
    // The rules of the link's target apply.
    std::os::unix::fs::symlink("src/gen", fixture.path("link")).unwrap();
    assert_eq!(walk(&fixture, "link").0, ["link/a.h".to_owned()].into());
}

#[test]
fn unusual_line_endings_of_rules_are_supported() {
    let Some(fixture) = repository(&[
        (".gitignore", "\u{feff}first\r\nsecond\r\n[broken\r\nthird"),
        ("first", ""),
        ("second", ""),
        ("third", ""),
        ("fourth", ""),
    ]) else {
        return;
    };
    let (ours, _) = walk(&fixture, "");
    assert_eq!(ours, [".gitignore", "fourth"].map(str::to_owned).into());
    assert_eq!(listed_by_git(&fixture).unwrap(), ours);
}

#[test]
fn rules_do_not_apply_in_nested_repositories() {
    let Some(fixture) =
        repository(&[(".gitignore", "*.txt\n"), ("a.txt", ""), ("inner/a.txt", ""), ("inner/a.md", "")])
    else {
        return;
    };
    program_output(&fixture, "git", &["init", "--quiet", "inner"]);
    fixture.put("inner/.gitignore", "*.md\n");
    let (ours, _) = walk(&fixture, "");
    assert_eq!(ours, [".gitignore", "inner/.gitignore", "inner/a.txt"].map(str::to_owned).into());
    if let Some(theirs) = listed_by_ripgrep(&fixture) {
        assert_eq!(ours, theirs);
    }
}

#[test]
fn rule_files_that_are_links_or_pipes_are_not_read() {
    let fixture = Fixture::with(&[("a.txt", ""), ("below/a.txt", "")]);
    fs::write(fixture.outside().join("rules"), "*.txt\n").unwrap();
    std::os::unix::fs::symlink(fixture.outside().join("rules"), fixture.path(".gitignore")).unwrap();
    let pipe = fixture.path("below/.gitignore");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(walk(&fixture, "").0.len(), 2);
}

mod chance {
    use super::{assert_all_agree, repository};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        #[test]
        fn any_rules_mean_what_they_mean_to_git(
            top in "((!|/)?([ab]|\\*|[ab]\\*|\\*\\*)(/([ab]|\\*|\\*\\*)){0,2}/?\n){0,4}",
            below in "((!|/)?([ab]|\\*|\\*[ab])(/[ab])?/?\n){0,3}",
        ) {
            let paths = ["a", "b/a", "b/b/a", "b/b/b", "ab", "ba/a", "ba/b/a", "bb/ab/a", "bb/ab/b", "c/a", "c/c/b"];
            let mut files: Vec<(&str, &str)> = paths.map(|path| (path, "")).to_vec();
            files.extend([(".gitignore", &*top), ("b/.gitignore", &*below), ("bb/ab/.gitignore", &*below)]);
            if let Some(fixture) = repository(&files) {
                assert_all_agree(&fixture);
            }
        }
    }
}
