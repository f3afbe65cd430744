use super::*;

#[test]
fn what_tells_git_what_to_run_is_known_wherever_a_repository_lies() {
    for path in [
        ".git/config",
        ".git/hooks",
        ".git/hooks/pre-commit",
        "a/b/.git/config.worktree",
        ".GIT/Config",
        ".git/commondir",
        ".git/modules/a/config",
        ".git/modules/a/b/hooks/post-checkout",
        ".git/modules/refs/config",
        ".git/worktrees/w/config.worktree",
        "node_modules/x/.git/config",
    ] {
        assert!(is_telling(Path::new(path)), "{path}");
    }
}

#[test]
fn branches_may_have_any_name() {
    for path in [".git/refs/heads/config", ".git/logs/refs/heads/hooks/x", ".git", "config", "hooks/x", ".git/HEAD"] {
        assert!(!is_telling(Path::new(path)), "{path}");
    }
}

#[test]
fn only_repositories_within_one_above_are_led_to() {
    assert!(leads_to_nested(b"gitdir: ../.git/modules/a/b\n"));
    assert!(leads_to_nested(b"gitdir: .git/worktrees/w"));
    for text in
        ["gitdir: ../evil", "gitdir: /x/.git/modules/a", "gitdir: ../.git/modules/../../evil", "evil", "gitdir: .git"]
    {
        assert!(!leads_to_nested(text.as_bytes()), "{text}");
    }
}

#[test]
fn a_worktree_may_lead_to_its_own_repository_alone() {
    assert!(is_usual_commondir(Path::new(".git/worktrees/w/commondir"), b"../..\n"));
    assert!(!is_usual_commondir(Path::new(".git/worktrees/w/commondir"), b"../../../evil\n"));
    assert!(!is_usual_commondir(Path::new(".git/commondir"), b"../..\n"));
}
