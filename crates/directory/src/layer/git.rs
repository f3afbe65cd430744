//! What git would run on the host, if a program could write it.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path},
};

/// What says, anywhere in a repository, which programs are run or where that is said.
const TELLING: [&str; 4] = ["config", "config.worktree", "commondir", "hooks"];

/// Where repositories lie within a repository.
const NESTED: [&str; 2] = ["modules", "worktrees"];

/// Whether a name is the one of a repository. On some file systems case does not matter.
pub(super) fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// The names that lead on from the nearest repository above a path; none if there is no such.
fn within_repository(path: &Path) -> Option<Vec<&OsStr>> {
    let names: Vec<&OsStr> = path.iter().collect();
    let repository = names.iter().rposition(|name| is_git(name))?;
    Some(names[repository + 1..].to_vec())
}

/// Whether a path lies within a repository.
pub(super) fn is_within(path: &Path) -> bool {
    within_repository(path).is_some_and(|names| !names.is_empty())
}

/// Whether what stands at a path tells git what to run. Of repositories within a repository the path does not say where
/// they begin, so that every such name counts there.
pub(super) fn is_telling(path: &Path) -> bool {
    let is_one_of = |known: &[&str], name: &OsStr| known.iter().any(|known| name.eq_ignore_ascii_case(known));
    let Some(names) = within_repository(path) else { return false };
    match &names[..] {
        [] => false,
        [first, rest @ ..] if is_one_of(&NESTED, first) => rest.iter().any(|name| is_one_of(&TELLING, name)),
        [first, ..] => is_one_of(&TELLING, first),
    }
}

/// Whether a file `.git`, which names a repository elsewhere, leads to one whose configuration no program can write: one
/// within that of a folder above.
pub(super) fn leads_to_nested(text: &[u8]) -> bool {
    let Some(named) = text.strip_prefix(b"gitdir: ") else { return false };
    let named = named.strip_suffix(b"\n").unwrap_or(named);
    let mut parts = Path::new(OsStr::from_bytes(named)).components().skip_while(|part| *part == Component::ParentDir);
    let is = |part: Option<Component<'_>>, names: &[&str]| {
        part.is_some_and(|part| matches!(part, Component::Normal(name) if names.iter().any(|known| name == *known)))
    };
    is(parts.next(), &[".git"]) && is(parts.next(), &NESTED) && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Whether a file `commondir` of a worktree leads to the repository that it belongs to.
pub(super) fn is_usual_commondir(path: &Path, text: &[u8]) -> bool {
    let Some(names) = within_repository(path) else { return false };
    matches!(&names[..], [worktrees, _, name] if *worktrees == "worktrees" && *name == "commondir")
        && text.strip_suffix(b"\n").unwrap_or(text) == b"../.."
}

#[cfg(test)]
#[path = "git_tests.rs"]
mod tests;
