//! What the rules of git leave out.

use std::{
    borrow::Cow,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::Arc,
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use rustix::{
    fs::{OFlags, ResolveFlags},
    io::Errno,
};

use crate::{Kind, Metadata, Root, error::found, sys};

/// Of a longer file of rules only the beginning is read.
const MOST_BYTES: usize = 1 << 20;

/// Of more rules only the first count, and longer ones do not: each takes memory many times its length.
const MOST_RULES: usize = 4096;
const RULE_MOST_BYTES: usize = 1024;

pub(crate) const RULES: &str = ".gitignore";
pub(crate) const GIT: &str = ".git";
const EXCLUDE: &str = ".git/info/exclude";

/// The rules of one `.gitignore` file.
#[derive(Debug, Clone)]
pub struct IgnoreRules(Gitignore);

/// What rules say of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    LeaveOut,
    Take,
    /// No rule is about it.
    None,
}

impl IgnoreRules {
    /// Reads rules as git does: what cannot be understood leaves nothing out.
    pub fn parse(text: &[u8]) -> Self {
        let mut builder = GitignoreBuilder::new("/");
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let rules = lines.filter(|line| !matches!(line, [] | [b'#', ..]) && line.len() <= RULE_MOST_BYTES);
        for rule in rules.take(MOST_RULES).filter_map(|rule| str::from_utf8(rule).ok()) {
            let _ = builder.add_line(None, &without_long_runs(rule));
        }
        Self(builder.build().unwrap_or_else(|_| Gitignore::empty()))
    }

    /// What is said of a path below the folder of the rules, but not because of a folder that it lies in.
    pub fn verdict(&self, below: &str, is_folder: bool) -> Verdict {
        match self.0.matched(below, is_folder) {
            Match::Ignore(_) => Verdict::LeaveOut,
            Match::Whitelist(_) => Verdict::Take,
            Match::None => Verdict::None,
        }
    }
}

/// Three stars or more mean one, and take the memory of all.
fn without_long_runs(rule: &str) -> Cow<'_, str> {
    if !rule.contains("***") {
        return rule.into();
    }
    let mut short = String::with_capacity(rule.len());
    let mut rest = rule;
    while let Some(at) = rest.find("***") {
        short.push_str(&rest[..at]);
        short.push('*');
        rest = rest[at..].trim_start_matches('*');
    }
    short.push_str(rest);
    short.into()
}

/// All rules that hold in a folder, the nearest first.
#[derive(Debug)]
pub(crate) struct Rules {
    own: IgnoreRules,
    /// How much of a path, as it is shown, is not below the folder that the rules stand in.
    skip_bytes: usize,
    /// What leads from the folder that the rules stand in to the top of the walk, where they stand above it.
    lead: String,
    above: Option<Arc<Self>>,
}

/// What a folder has that matters to rules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here {
    pub(crate) has_rules: bool,
    pub(crate) has_git: bool,
}

/// The folders that hold what matters to rules.
pub(crate) struct Layers<'a> {
    /// Those with a `.gitignore`.
    pub(crate) rules: Vec<&'a OwnedFd>,
    /// Those with a `.git`.
    pub(crate) git: Vec<&'a OwnedFd>,
}

pub(crate) struct ReadRules {
    pub(crate) rules: Option<Arc<Rules>>,
    /// Whether there are more that could not be read.
    pub(crate) is_unreadable: bool,
}

impl Rules {
    /// Reads the rules that stand above the top of a walk, up to the root.
    pub(super) fn above(root: &Root, top: &Path, shown_as: &str) -> Option<Arc<Self>> {
        let mut rules = None;
        for folder in top.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            let Ok(opened) = root.open_real_folder(folder, OFlags::PATH) else { continue };
            let has = |name: &str| matches!(found(sys::stat_name(&opened, name.as_ref())), Ok(Some(_)));
            let here = Here { has_rules: has(RULES), has_git: has(GIT) };
            let lead = top.strip_prefix(folder).unwrap_or(top).to_string_lossy();
            rules = Self::read(&opened, here, rules, shown_as.len() + 1, &format!("{lead}/")).rules;
        }
        rules
    }

    /// Adds the rules of a folder whose path, as it is shown and with a slash at the end, has so many bytes.
    pub(crate) fn of_folder(folder: &OwnedFd, here: Here, above: Option<Arc<Self>>, path_bytes: usize) -> ReadRules {
        Self::read(folder, here, above, path_bytes, "")
    }

    /// Adds the rules of a folder that lies in several places, of which the first that has a file counts.
    pub(crate) fn of_layers(layers: &Layers<'_>, above: Option<Arc<Self>>, path_bytes: usize) -> Option<Arc<Self>> {
        Self::read_layers(layers, above, path_bytes, "").rules
    }

    fn read(folder: &OwnedFd, here: Here, rules: Option<Arc<Self>>, skip_bytes: usize, lead: &str) -> ReadRules {
        let has = |it: bool| if it { vec![folder] } else { Vec::new() };
        let layers = Layers { rules: has(here.has_rules), git: has(here.has_git) };
        Self::read_layers(&layers, rules, skip_bytes, lead)
    }

    fn read_layers(layers: &Layers<'_>, mut rules: Option<Arc<Self>>, skip_bytes: usize, lead: &str) -> ReadRules {
        let mut is_unreadable = false;
        let mut add = |folders: &[&OwnedFd], name: &str, above: Option<Arc<Self>>| match read_first(folders, name) {
            Ok(Some(text)) => {
                let own = IgnoreRules::parse(&text);
                if own.0.is_empty() {
                    above
                } else {
                    Some(Arc::new(Self { own, skip_bytes, lead: lead.to_owned(), above }))
                }
            }
            Ok(None) => above,
            Err(_) => {
                is_unreadable = true;
                above
            }
        };
        if !layers.git.is_empty() {
            // A repository begins: no rule from above reaches into it.
            rules = add(&layers.git, EXCLUDE, None);
        }
        if !layers.rules.is_empty() {
            rules = add(&layers.rules, RULES, rules);
        }
        ReadRules { rules, is_unreadable }
    }

    /// Whether something is left out. The rules that are nearest decide.
    pub(crate) fn leave_out(&self, path: &str, is_folder: bool) -> bool {
        let mut next = Some(self);
        while let Some(rules) = next {
            let below = &path[rules.skip_bytes..];
            let verdict = if rules.lead.is_empty() {
                rules.own.verdict(below, is_folder)
            } else {
                rules.own.verdict(&[&rules.lead, below].concat(), is_folder)
            };
            match verdict {
                Verdict::LeaveOut => return true,
                Verdict::Take => return false,
                Verdict::None => next = rules.above.as_deref(),
            }
        }
        false
    }
}

/// Reads a file of rules from the first folder that has it.
fn read_first(folders: &[&OwnedFd], name: &str) -> rustix::io::Result<Option<Vec<u8>>> {
    for folder in folders {
        if let Some(text) = read(folder, name)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// Reads a file of rules. As git does, it follows no symbolic link to one.
fn read(folder: impl AsFd, name: &str) -> rustix::io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let Some(file) = found(sys::open_beneath(folder, Path::new(name), flags, ResolveFlags::NO_SYMLINKS))? else {
        return Ok(None);
    };
    let metadata = Metadata::from(sys::stat(&file)?);
    if metadata.kind != Kind::File {
        return Ok(None);
    }
    let size = usize::try_from(metadata.size_bytes).map_err(|_| Errno::FBIG)?;
    let mut text = vec![0; size.min(MOST_BYTES)];
    let length = sys::read_at(&file, &mut text, 0)?;
    text.truncate(length);
    if length == MOST_BYTES {
        // A rule that was cut would mean something else.
        let end = text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        text.truncate(end);
    }
    Ok(Some(text))
}
