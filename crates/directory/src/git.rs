//! Git repositories: which names lead into one, and what in there git on the host runs or follows.

mod index;
mod object_format;

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path},
};

pub(crate) use object_format::ObjectFormat;

/// Names that say, at the top of a repository, which programs git runs or where it looks for that.
const FIXED: [&str; 7] = ["config", "config.worktree", "commondir", "gitdir", "hooks", "branches", "remotes"];

/// Where else git is told to look for objects.
const ALTERNATES: [&str; 3] = ["objects", "info", "alternates"];

/// Where repositories lie within a repository.
const NESTED: [&str; 2] = ["modules", "worktrees"];

/// Where git keeps what is left to do of a command that it interrupted.
const UNFINISHED: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// The commands of a list of what is left to do that run nothing but git itself.
const TODO_COMMANDS: &str = "pick p revert edit e reword r fixup f squash s label l reset t merge m noop drop d break b \
                             update-ref u";

/// The strategies of merging that are part of git. It runs `git-merge-NAME` for any other, also with slashes in the name.
const STRATEGIES: [&str; 6] = ["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// Whether a name is `.git` on any file system that git knows: where case does not matter, where some characters are
/// ignored (HFS+, and folders of ext4 that fold case), and where names have short forms, endings and streams (NTFS).
pub fn is_git(name: &OsStr) -> bool {
    matches!(&*folded(name), ".git" | "git~1")
}

/// A name as the file systems compare it that take the most names for the same: without endings, streams and ignored
/// characters, and without case.
fn folded(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let stem = name.split([':', '\\']).next().unwrap_or_default();
    let kept: String = stem.chars().filter(|char| !is_ignored(*char)).collect();
    // By capitals first: some letters have the same capital, as the long s and the ordinary one.
    kept.trim_end_matches([' ', '.']).to_uppercase().to_lowercase()
}

/// Whether some file system ignores a character in names: joiners, marks of direction, selectors of variants, fillers.
const fn is_ignored(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether a path leads to a repository or into one.
pub fn leads_into(path: &Path) -> bool {
    path.iter().any(is_git)
}

/// The names that lead on from the nearest repository above a path; none if there is no such.
fn within_repository(path: &Path) -> Option<Vec<&OsStr>> {
    let names: Vec<&OsStr> = path.iter().collect();
    let repository = names.iter().rposition(|name| is_git(name))?;
    Some(names[repository + 1..].to_vec())
}

/// Whether a path lies within a repository.
pub(crate) fn is_within(path: &Path) -> bool {
    within_repository(path).is_some_and(|names| !names.is_empty())
}

/// What becomes of a file in a repository that a program has changed in its view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// It is brought to the folder.
    Free,
    /// It stays as it is in the folder, and is neither made nor removed.
    Fixed,
    /// It is brought to the folder if git runs nothing by it.
    Checked(Check),
}

/// What a file is checked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// A list of what is left to do. It may hold commands to run only if they are in the list that is there already.
    Todo,
    /// Variables of the environment: only the author's.
    AuthorScript,
    /// The name of a strategy that is part of git.
    Strategy,
    /// Options of a command, none of them a strategy.
    Options,
    /// Words for a shell, or options that can lead anywhere: none at all.
    Blank,
    /// The index: `git checkout` writes to its paths without a look at them.
    Index,
}

impl Check {
    /// Whether git runs nothing by what a file says; `before` is what stands in its place, `format` that of the repository,
    /// if it is known.
    pub(crate) fn is_harmless(self, text: &[u8], before: Option<&[u8]>, format: Option<ObjectFormat>) -> bool {
        let lines = |text| <[u8]>::split(text, |byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        match self {
            Self::Todo => lines(text).all(|line| {
                let command = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
                let is_blank = line.is_empty() || line.starts_with(b"#");
                is_blank
                    || TODO_COMMANDS.split(' ').any(|known| known.as_bytes() == command)
                    || before.is_some_and(|before| lines(before).any(|known| known == line))
            }),
            Self::AuthorScript => lines(text).all(|line| {
                let names = ["GIT_AUTHOR_NAME='", "GIT_AUTHOR_EMAIL='", "GIT_AUTHOR_DATE='"];
                line.is_empty() || names.iter().any(|name| line.starts_with(name.as_bytes()))
            }),
            Self::Strategy => STRATEGIES.iter().any(|known| known.as_bytes() == text.trim_ascii()),
            Self::Options => lines(text).all(|line| {
                let line = line.to_ascii_lowercase();
                line.starts_with(b"strategy-option") || !line.windows(8).any(|part| part == b"strategy")
            }),
            Self::Blank => text.trim_ascii().is_empty(),
            Self::Index => format.is_some_and(|format| index::is_harmless(text, format)),
        }
    }
}

/// What becomes of what stands at a path. Of repositories within a repository the path does not say where they begin, so
/// that every such name counts there.
pub(crate) fn rule(path: &Path) -> Rule {
    let Some(names) = within_repository(path) else { return Rule::Free };
    let names: Vec<String> = names.into_iter().map(folded).collect();
    let is_one_of = |known: &[&str], name: &String| known.contains(&&**name);
    let [first, ..] = &names[..] else { return Rule::Free };
    let is_nested = is_one_of(&NESTED, first);
    let is_branch = |place: usize| place > 0 && names[place - 1] == "refs" && names[place] == "remotes";
    let is_fixed = |place: usize| is_one_of(&FIXED, &names[place]) && !is_branch(place);
    let leads_to_alternates = |part: &[String]| part.iter().eq(ALTERNATES);
    let alternates = if is_nested { names.len() } else { ALTERNATES.len() };
    if (0..if is_nested { names.len() } else { 1 }).any(is_fixed)
        || names[..alternates.min(names.len())].windows(ALTERNATES.len()).any(leads_to_alternates)
    {
        return Rule::Fixed;
    }
    let (above, name) = match &names[..] {
        [.., above, name] => (Some(above), name),
        [name] => (None, name),
        [] => return Rule::Free,
    };
    let is_at_top = above.is_none() || is_nested;
    let is_unfinished = above.is_some_and(|above| is_one_of(&UNFINISHED, above)) && (names.len() == 2 || is_nested);
    match &**name {
        "todo" if is_unfinished => Rule::Checked(Check::Todo),
        name if is_unfinished && name.starts_with("git-rebase-todo") => Rule::Checked(Check::Todo),
        "author-script" if is_unfinished => Rule::Checked(Check::AuthorScript),
        "strategy" if is_unfinished => Rule::Checked(Check::Strategy),
        "opts" if is_unfinished => Rule::Checked(Check::Options),
        "apply-opt" if is_unfinished => Rule::Checked(Check::Blank),
        "bisect_names" if is_at_top => Rule::Checked(Check::Blank),
        "index" if is_at_top => Rule::Checked(Check::Index),
        name if is_at_top && name.starts_with("sharedindex.") => Rule::Checked(Check::Index),
        _ => Rule::Free,
    }
}

/// Whether a file `.git`, which names a repository elsewhere, leads to one whose configuration no program can write: one
/// within that of a folder above.
pub(crate) fn leads_to_nested(text: &[u8]) -> bool {
    let Some(named) = text.strip_prefix(b"gitdir: ") else { return false };
    let named = named.strip_suffix(b"\n").unwrap_or(named);
    let mut parts = Path::new(OsStr::from_bytes(named)).components().skip_while(|part| *part == Component::ParentDir);
    let is = |part: Option<Component<'_>>, names: &[&str]| {
        part.is_some_and(|part| matches!(part, Component::Normal(name) if names.iter().any(|known| name == *known)))
    };
    is(parts.next(), &[".git"]) && is(parts.next(), &NESTED) && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Whether a file of a worktree leads where it usually does: `commondir` to the repository that it belongs to, `gitdir` to
/// the `.git` of a folder beside that.
pub(crate) fn is_usual_in_worktree(path: &Path, text: &[u8]) -> bool {
    let Some(names) = within_repository(path) else { return false };
    let [worktrees, _, name] = &names[..] else { return false };
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let leads_beside = || {
        let mut parts = Path::new(OsStr::from_bytes(text)).components();
        parts.by_ref().take(3).all(|part| part == Component::ParentDir)
            && parts.clone().all(|part| matches!(part, Component::Normal(_)))
            && parts.next_back() == Some(Component::Normal(OsStr::new(".git")))
    };
    *worktrees == "worktrees" && (*name == "commondir" && text == b"../.." || *name == "gitdir" && leads_beside())
}

#[cfg(test)]
#[path = "git/git_tests.rs"]
mod tests;
