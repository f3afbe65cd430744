//! Git repositories: which paths are in one, and which of its files can make git on the host execute programs or use
//! other folders.

mod index;
mod object_format;

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path},
};

pub(crate) use object_format::ObjectFormat;

/// Entries at the top of a repository that name programs for git to run, or where to find them.
const FIXED: [&str; 7] = ["config", "config.worktree", "commondir", "gitdir", "hooks", "branches", "remotes"];

/// The file that names further object folders.
const ALTERNATES: [&str; 3] = ["objects", "info", "alternates"];

/// Folders of a repository that contain other repositories.
const NESTED: [&str; 2] = ["modules", "worktrees"];

/// Folders with the state of an interrupted git command.
const UNFINISHED: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// Commands of a rebase todo list that run nothing but git itself.
const TODO_COMMANDS: &str = "pick p revert edit e reword r fixup f squash s label l reset t merge m noop drop d break b \
                             update-ref u";

/// Merge strategies that are part of git. For any other name git runs `git-merge-NAME`, even with slashes in the name.
const STRATEGIES: [&str; 6] = ["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// Whether a name means `.git` on any file system that git supports: in upper or lower case, with ignorable code points
/// (HFS+, case-folding ext4), and on NTFS as an 8.3 name, with trailing dots and spaces, or with an alternate data
/// stream.
pub fn is_git(name: &OsStr) -> bool {
    matches!(&*folded(name), ".git" | "git~1")
}

/// Normalises a name as the most lenient file systems compare it: without case, ignorable code points, trailing dots
/// and spaces, and everything after a colon (alternate data stream) or backslash.
fn folded(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let stem = name.split([':', '\\']).next().unwrap_or_default();
    let kept: String = stem.chars().filter(|char| !is_ignored(*char)).collect();
    // First to upper case, because some letters share an upper-case letter, such as the long s and the ordinary one.
    kept.trim_end_matches([' ', '.']).to_uppercase().to_lowercase()
}

/// Whether some file system ignores a character in names: joiners, direction marks, variation selectors, fillers.
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

/// Whether a component of a path is `.git`: the path is a repository or is inside one.
pub fn leads_into(path: &Path) -> bool {
    path.iter().any(is_git)
}

/// Returns the components after the last `.git` of a path, or `None` if it has none.
fn within_repository(path: &Path) -> Option<Vec<&OsStr>> {
    let names: Vec<&OsStr> = path.iter().collect();
    let repository = names.iter().rposition(|name| is_git(name))?;
    Some(names[repository + 1..].to_vec())
}

/// Whether a path is inside a `.git`. The `.git` itself does not count.
pub(crate) fn is_within(path: &Path) -> bool {
    within_repository(path).is_some_and(|names| !names.is_empty())
}

/// What happens to a file in a repository that a program has changed in its view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// It is transferred to the folder.
    Free,
    /// It stays unchanged in the folder, and is neither created nor removed.
    Fixed,
    /// It is transferred if git executes nothing because of it.
    Checked(Check),
}

/// What a file is checked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// A todo list. Commands that run programs are allowed only if the existing list contains them.
    Todo,
    /// Environment variables: only those of the author.
    AuthorScript,
    /// The name of a strategy that is part of git.
    Strategy,
    /// Options of a command, but no strategy.
    Options,
    /// Shell words or arbitrary options: must be empty.
    Blank,
    /// The index: `git checkout` writes to its paths without checking them.
    Index,
}

impl Check {
    /// Whether git executes nothing because of this content. `before` is the existing content, and `format` the
    /// repository's object format (hash algorithm), if known.
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

/// Returns the rule for a path. Below `modules` and `worktrees` the path does not show which component is the nested
/// repository, so all components are matched.
pub(crate) fn rule(path: &Path) -> Rule {
    let Some(names) = within_repository(path) else { return Rule::Free };
    let names: Vec<String> = names.into_iter().map(folded).collect();
    let is_one_of = |known: &[&str], name: &String| known.contains(&&**name);
    let [first, ..] = &names[..] else { return Rule::Free };
    let is_nested = is_one_of(&NESTED, first);
    let is_branch = |index: usize| index > 0 && names[index - 1] == "refs" && names[index] == "remotes";
    let is_fixed = |index: usize| is_one_of(&FIXED, &names[index]) && !is_branch(index);
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

/// Whether a `.git` file points into `modules` or `worktrees` of an enclosing repository, where programs cannot change
/// the configuration.
pub(crate) fn leads_to_nested(text: &[u8]) -> bool {
    let Some(named) = text.strip_prefix(b"gitdir: ") else { return false };
    let named = named.strip_suffix(b"\n").unwrap_or(named);
    let mut parts = Path::new(OsStr::from_bytes(named)).components().skip_while(|part| *part == Component::ParentDir);
    let is = |part: Option<Component<'_>>, names: &[&str]| {
        part.is_some_and(|part| matches!(part, Component::Normal(name) if names.iter().any(|known| name == *known)))
    };
    is(parts.next(), &[".git"]) && is(parts.next(), &NESTED) && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Whether `commondir` or `gitdir` of a worktree has the expected content: `commondir` is `../..`, and `gitdir` is a
/// relative path to a `.git` below the folder that contains the repository.
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
