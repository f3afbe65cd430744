//! What git's rules leave out, against git itself and against ripgrep.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use toolrest_directory::{Files, Heed, PassedOver, Paths, Visitor, WalkOptions};

use crate::scene::Scene;

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

    fn passed_over(&self, _: &str, passed_over: PassedOver, kept: &mut Kept) {
        kept.ignored += passed_over.ignored;
    }
}

/// The files below a folder that no rule leaves out, seen from the root, and how much the rules left out.
fn walk(scene: &Scene, folder: &str) -> (BTreeSet<String>, u64) {
    let shown_as = if folder.is_empty() { String::new() } else { format!("/{folder}") };
    let options = WalkOptions {
        shown_as: &shown_as,
        depth: usize::MAX,
        rules: Heed::Rules,
        files_at_a_time: 100,
        longest_path_bytes: 2048,
        threads: 2,
    };
    let (mut found, mut ignored) = (BTreeSet::new(), 0);
    for kept in scene.root.walk(Path::new(folder), options, &All).unwrap() {
        ignored += kept.ignored;
        for files in &kept.files {
            found.extend(files.names().map(|name| [&files.folder()[1..], name].concat()));
        }
    }
    (found, ignored)
}

/// What a program says, line by line, or nothing where it is not installed.
#[allow(clippy::disallowed_methods, reason = "what is compared with has to be started")]
fn said(scene: &Scene, program: &str, arguments: &[&str]) -> Option<BTreeSet<String>> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(scene.path(""))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", scene.outside())
        .output()
        .ok()?;
    // With 1 ripgrep says that it found nothing.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{program} {arguments:?}: {output:?}");
    Some(String::from_utf8(output.stdout).unwrap().split_terminator('\0').map(str::to_owned).collect())
}

fn by_git(scene: &Scene) -> Option<BTreeSet<String>> {
    said(scene, "git", &["-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"])
}

fn by_ripgrep(scene: &Scene) -> Option<BTreeSet<String>> {
    let only_git = ["--no-ignore-dot", "--no-ignore-global", "--no-ignore-parent", "--glob=!.git"];
    said(scene, "rg", &[&["--no-config", "--files", "--hidden", "--null"][..], &only_git].concat())
}

fn repository(files: &[(&str, &str)]) -> Option<Scene> {
    let scene = Scene::with(files);
    said(&scene, "git", &["init", "--quiet", "."])?;
    Some(scene)
}

#[track_caller]
fn agree(scene: &Scene) -> BTreeSet<String> {
    let (ours, _) = walk(scene, "");
    if let Some(theirs) = by_git(scene) {
        assert_eq!(ours, theirs, "git's answer is on the right");
    }
    if let Some(theirs) = by_ripgrep(scene) {
        assert_eq!(ours, theirs, "ripgrep's answer is on the right");
    }
    ours
}

#[test]
fn rules_of_every_kind_mean_what_they_mean_to_git() {
    let rules = "# a comment\n\n*.log\n!keep.log\nbuild/\n/anchored\nsub/inner.txt\n**/deep/x\nabc/**\na/**/b\n\\#hash\n\
                 \\!bang\ntrailing \n??.tmp\n[a-c].cls\n*.o\n!important.o\nnode_modules\nfoo/*\n!foo/bar.txt\n";
    let Some(scene) = repository(&[
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
    let found = agree(&scene);
    assert!(found.contains("keep.log") && found.contains("two/build") && found.contains("foo/bar.txt"), "{found:?}");
    assert!(!found.contains("node_modules/important.o"), "nothing is brought back from a folder that is left out");
}

#[test]
fn the_nearest_rules_decide() {
    let Some(scene) = repository(&[
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
    agree(&scene);
    fs::create_dir_all(scene.path(".git/info")).unwrap();
    fs::write(scene.path(".git/info/exclude"), "*.bin\nx.md\n").unwrap();
    scene.put("x.md", "");
    scene.put("one/x.md", "");
    scene.put("keep/.gitignore", "!x.md\n");
    scene.put("keep/x.md", "");
    let found = agree(&scene);
    assert!(found.contains("keep/x.md") && !found.contains("x.md"));
}

#[test]
fn what_is_left_out_is_counted_once_for_a_whole_folder() {
    let scene = Scene::with(&[(".gitignore", "target/\n*.log\n"), ("a.log", ""), ("a.rs", "")]);
    scene.put("target/one/file", "");
    scene.put("target/two/file", "");
    scene.put("src/b.log", "");
    let (found, ignored) = walk(&scene, "");
    assert_eq!(found, [".gitignore", "a.rs"].map(str::to_owned).into());
    assert_eq!(ignored, 3);
}

#[test]
fn a_folder_that_is_named_is_looked_into_whatever_the_rules_say() {
    let scene = Scene::with(&[
        (".gitignore", "target/\n/src/gen/*.c\n*.log\n"),
        ("target/one/file", ""),
        ("target/one/x.log", ""),
        ("src/gen/a.c", ""),
        ("src/gen/a.h", ""),
        ("src/.gitignore", "x\n"),
        ("src/gen/x", ""),
    ]);
    assert_eq!(walk(&scene, "target").0, ["target/one/file".to_owned()].into());
    assert_eq!(walk(&scene, "target/one").0, ["target/one/file".to_owned()].into());
    assert_eq!(walk(&scene, "src/gen").0, ["src/gen/a.h".to_owned()].into());
    // The rules that hold are those of the place that a link leads to.
    std::os::unix::fs::symlink("src/gen", scene.path("link")).unwrap();
    assert_eq!(walk(&scene, "link").0, ["link/a.h".to_owned()].into());
}

#[test]
fn rules_with_odd_ends_are_understood() {
    let Some(scene) = repository(&[
        (".gitignore", "\u{feff}first\r\nsecond\r\n[broken\r\nthird"),
        ("first", ""),
        ("second", ""),
        ("third", ""),
        ("fourth", ""),
    ]) else {
        return;
    };
    let (ours, _) = walk(&scene, "");
    assert_eq!(ours, [".gitignore", "fourth"].map(str::to_owned).into());
    assert_eq!(by_git(&scene).unwrap(), ours);
}

#[test]
fn no_rule_reaches_into_another_repository() {
    let Some(scene) = repository(&[(".gitignore", "*.txt\n"), ("a.txt", ""), ("inner/a.txt", ""), ("inner/a.md", "")])
    else {
        return;
    };
    said(&scene, "git", &["init", "--quiet", "inner"]);
    scene.put("inner/.gitignore", "*.md\n");
    let (ours, _) = walk(&scene, "");
    assert_eq!(ours, [".gitignore", "inner/.gitignore", "inner/a.txt"].map(str::to_owned).into());
    if let Some(theirs) = by_ripgrep(&scene) {
        assert_eq!(ours, theirs);
    }
}

#[test]
fn a_link_or_pipe_in_the_place_of_rules_is_not_read() {
    let scene = Scene::with(&[("a.txt", ""), ("below/a.txt", "")]);
    fs::write(scene.outside().join("rules"), "*.txt\n").unwrap();
    std::os::unix::fs::symlink(scene.outside().join("rules"), scene.path(".gitignore")).unwrap();
    let pipe = scene.path("below/.gitignore");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(walk(&scene, "").0.len(), 2);
}

mod chance {
    use super::{agree, repository};
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
            if let Some(scene) = repository(&files) {
                agree(&scene);
            }
        }
    }
}
