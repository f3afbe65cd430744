use super::*;

#[test]
fn files_that_git_executes_are_recognised_in_all_repositories() {
    for path in [
        ".git/config",
        ".git/hooks",
        ".git/hooks/pre-commit",
        "a/b/.git/config.worktree",
        ".GIT/Config",
        ".git/commondir",
        ".git/remotes/origin",
        ".git/objects/info/alternates",
        ".git/modules/a/config",
        ".git/modules/a/b/hooks/post-checkout",
        ".git/modules/refs/config",
        ".git/modules/a/objects/info/alternates",
        ".git/worktrees/w/config.worktree",
        ".git/worktrees/w/gitdir",
        "node_modules/x/.git/config",
        "git~1/config",
        ".git/con\u{200c}fig",
        ".git/CONFIG.",
        ".git/hoo\u{212a}s/x",
        ".git/hook\u{17f}/pre-commit",
        ".git/commondir::$DATA",
        ".git/objects/inf\u{ad}o/alternate\u{17f}",
        ".git/modules/a/hook\u{17f}/x",
        ".git/Worktree\u{17f}/w/config.worktree",
    ] {
        assert_eq!(rule(Path::new(path)), Rule::Fixed, "{path}");
    }
}

#[test]
fn branch_names_are_not_restricted() {
    for path in [
        ".git/refs/heads/config",
        ".git/logs/refs/heads/hooks/x",
        ".git/refs/heads/index",
        ".git/refs/remotes/origin/HEAD",
        ".git/modules/a/refs/remotes/origin/main",
        ".git/objects/info/commit-graph",
        ".git/rebase-merge/done",
        ".git/todo",
        ".git",
        "config",
        "hooks/x",
        ".git/HEAD",
        "git-rebase-todo",
    ] {
        assert_eq!(rule(Path::new(path)), Rule::Free, "{path}");
    }
}

#[test]
fn files_of_a_rebase_cannot_add_commands() {
    assert_eq!(rule(Path::new(".git/rebase-merge/git-rebase-todo")), Rule::Checked(Check::Todo));
    assert_eq!(rule(Path::new("a/.git/worktrees/w/rebase-merge/git-rebase-todo")), Rule::Checked(Check::Todo));
    assert_eq!(rule(Path::new(".git/sequencer/todo")), Rule::Checked(Check::Todo));
    assert_eq!(rule(Path::new(".git/index")), Rule::Checked(Check::Index));
    assert_eq!(rule(Path::new(".git/modules/m/index")), Rule::Checked(Check::Index));
    assert_eq!(rule(Path::new(".git/in\u{200d}dex")), Rule::Checked(Check::Index));
    assert_eq!(rule(Path::new(".git/\u{17f}equencer/todo ")), Rule::Checked(Check::Todo));
    let todo =
        |text: &str, before: Option<&str>| Check::Todo.is_harmless(text.as_bytes(), before.map(str::as_bytes), None);
    assert!(todo(
        "pick 0123 subject\n\tfixup -C 45 x\n# Rebase exec\n\nmerge -C 1 two # it\nupdate-ref refs/heads/x\n",
        None
    ));
    for text in ["exec touch /tmp/x", "pick 1 a\n  x touch y\n", "\texec\ty", "execute", "pick 1\n\rexec y"] {
        assert!(!todo(text, None), "{text:?}");
    }
    assert!(todo("exec make test\npick 2", Some("pick 1\nexec make test\npick 2\n")));
    assert!(!todo("exec make tests", Some("exec make test\n")));
    let is_harmless = |check: Check, text: &str| check.is_harmless(text.as_bytes(), None, None);
    assert!(is_harmless(
        Check::AuthorScript,
        "GIT_AUTHOR_NAME='A'\\''B'\nGIT_AUTHOR_EMAIL='a@b'\nGIT_AUTHOR_DATE='@1 +0'\n"
    ));
    assert!(!is_harmless(Check::AuthorScript, "GIT_AUTHOR_NAME='A'\nLD_PRELOAD='x.so'\n"));
    assert!(is_harmless(Check::Strategy, "ort\n") && !is_harmless(Check::Strategy, "../../x"));
    assert!(is_harmless(Check::Options, "[options]\n\tedit = true\n\tstrategy-option = theirs\n"));
    assert!(!is_harmless(Check::Options, "[options]\n\tstrategy = ../x\n"));
    assert!(!is_harmless(Check::Options, "[options] Strategy=../x\n"));
    assert!(is_harmless(Check::Blank, "\n") && !is_harmless(Check::Blank, "--unsafe-paths"));
}

#[test]
fn all_spellings_of_git_are_recognised() {
    for name in [".git", ".GIT", ".Git ", ".git.", ".git. .", "git~1", "GIT~1", ".git::$INDEX_ALLOCATION", ".git\\x"] {
        assert!(is_git(OsStr::new(name)), "{name}");
    }
    for name in [".g\u{200c}it", "\u{feff}.git", ".gi\u{206a}T", ".git\u{202e}", ".gi\u{ad}t", "\u{e0001}.git"] {
        assert!(is_git(OsStr::new(name)), "{name}");
    }
    for name in ["git", ".gitignore", ".github", ".gitmodules", "x.git", "git~10", "..git", ".git-x", ".g\u{e9}it"] {
        assert!(!is_git(OsStr::new(name)), "{name}");
    }
}

#[test]
fn git_files_may_point_only_to_nested_repositories() {
    assert!(leads_to_nested(b"gitdir: ../.git/modules/a/b\n"));
    assert!(leads_to_nested(b"gitdir: .git/worktrees/w"));
    for text in
        ["gitdir: ../evil", "gitdir: /x/.git/modules/a", "gitdir: ../.git/modules/../../evil", "evil", "gitdir: .git"]
    {
        assert!(!leads_to_nested(text.as_bytes()), "{text}");
    }
}

#[test]
fn a_worktree_may_point_only_to_its_own_repository() {
    assert!(is_usual_in_worktree(Path::new(".git/worktrees/w/commondir"), b"../..\n"));
    assert!(!is_usual_in_worktree(Path::new(".git/worktrees/w/commondir"), b"../../../evil\n"));
    assert!(!is_usual_in_worktree(Path::new(".git/commondir"), b"../..\n"));
    assert!(is_usual_in_worktree(Path::new(".git/worktrees/w/gitdir"), b"../../../w/.git\n"));
    for text in ["/home/x/.git", "../../../../x/.git", "../../../x", "../../../x/../.git"] {
        assert!(!is_usual_in_worktree(Path::new(".git/worktrees/w/gitdir"), text.as_bytes()), "{text}");
    }
}
