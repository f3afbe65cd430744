//! The rules of `.gitignore` files.

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

use crate::{Kind, Metadata, Root, error::if_exists, sys};

/// Only the beginning of a longer rule file is read.
const MAX_FILE_BYTES: usize = 1 << 20;

/// Maximum number of rules of one file, because each needs many times its length in memory. Further rules are not
/// applied.
pub const MAX_RULES: usize = 4096;
/// Maximum length of a rule. Longer rules are not applied.
const MAX_RULE_BYTES: usize = 1024;

pub(crate) const RULES: &str = ".gitignore";
pub(crate) const GIT: &str = ".git";
const EXCLUDE: &str = ".git/info/exclude";

/// The rules of one `.gitignore` file.
#[derive(Debug, Clone)]
pub struct IgnoreRules {
    rules: Gitignore,
    is_complete: bool,
}

/// The result of matching a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Ignore,
    Include,
    /// No rule matches.
    None,
}

impl IgnoreRules {
    /// Parses rules like git. Rules that cannot be parsed ignore nothing.
    pub fn parse(text: &[u8]) -> Self {
        let mut builder = GitignoreBuilder::new("/");
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let mut is_complete = true;
        let rules = lines.filter(|line| !matches!(line, [] | [b'#', ..]));
        let mut fitting = rules.filter(|rule| {
            let fits = rule.len() <= MAX_RULE_BYTES;
            is_complete &= fits;
            fits
        });
        for rule in fitting.by_ref().take(MAX_RULES).filter_map(|rule| str::from_utf8(rule).ok()) {
            let _ = builder.add_line(None, &without_long_runs(rule));
        }
        let has_more = fitting.next().is_some();
        let rules = builder.build().unwrap_or_else(|_| Gitignore::empty());
        Self { rules, is_complete: is_complete && !has_more }
    }

    /// Whether all rules are applied, because none is beyond the limits.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Matches a path below the folder of the rules. Rules that match a parent folder are not considered.
    pub fn verdict(&self, below: &str, is_folder: bool) -> Verdict {
        match self.rules.matched(below, is_folder) {
            Match::Ignore(_) => Verdict::Ignore,
            Match::Whitelist(_) => Verdict::Include,
            Match::None => Verdict::None,
        }
    }
}

/// Shortens runs of three or more stars to one. They mean the same, but need more memory.
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

/// All rules that apply in a folder, the nearest first.
#[derive(Debug)]
pub(crate) struct Rules {
    own: IgnoreRules,
    /// Length of the reported path of the rules' folder.
    skip_bytes: usize,
    /// The path from the rules' folder to the top of the walk, if the rules are above it.
    prefix: String,
    above: Option<Arc<Self>>,
}

/// Which rule-related files a folder has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuleFiles {
    pub(crate) has_rules: bool,
    pub(crate) has_git: bool,
}

/// The layers of a folder that contain rule-related files.
pub(crate) struct Layers<'a> {
    /// Those with a `.gitignore`.
    pub(crate) rules: Vec<&'a OwnedFd>,
    /// Those with a `.git`.
    pub(crate) git: Vec<&'a OwnedFd>,
}

pub(crate) struct ReadRules {
    pub(crate) rules: Option<Arc<Rules>>,
    /// Whether some rules could not be read.
    pub(crate) is_unreadable: bool,
}

impl Rules {
    /// Reads the rules of the folders above the top of a walk, up to the root.
    pub(super) fn above(root: &Root, top: &Path, shown_as: &str) -> Option<Arc<Self>> {
        let mut rules = None;
        for folder in top.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            let Ok(opened) = root.open_real_folder(folder, OFlags::PATH) else { continue };
            let has = |name: &str| matches!(if_exists(sys::stat_name(&opened, name.as_ref())), Ok(Some(_)));
            let here = RuleFiles { has_rules: has(RULES), has_git: has(GIT) };
            let prefix = top.strip_prefix(folder).unwrap_or(top).to_string_lossy();
            rules = Self::read(&opened, here, rules, shown_as.len() + 1, &format!("{prefix}/")).rules;
        }
        rules
    }

    /// Adds the rules of a folder. `path_bytes` is the length of its reported path, with a slash at the end.
    pub(crate) fn of_folder(
        folder: &OwnedFd,
        here: RuleFiles,
        above: Option<Arc<Self>>,
        path_bytes: usize,
    ) -> ReadRules {
        Self::read(folder, here, above, path_bytes, "")
    }

    /// Adds the rules of a folder with several layers. The first layer that has a file counts.
    pub(crate) fn of_layers(layers: &Layers<'_>, above: Option<Arc<Self>>, path_bytes: usize) -> Option<Arc<Self>> {
        Self::read_layers(layers, above, path_bytes, "").rules
    }

    fn read(folder: &OwnedFd, here: RuleFiles, rules: Option<Arc<Self>>, skip_bytes: usize, prefix: &str) -> ReadRules {
        let has = |it: bool| if it { vec![folder] } else { Vec::new() };
        let layers = Layers { rules: has(here.has_rules), git: has(here.has_git) };
        Self::read_layers(&layers, rules, skip_bytes, prefix)
    }

    fn read_layers(layers: &Layers<'_>, mut rules: Option<Arc<Self>>, skip_bytes: usize, prefix: &str) -> ReadRules {
        let mut is_unreadable = false;
        let mut add = |folders: &[&OwnedFd], name: &str, above: Option<Arc<Self>>| match read_first(folders, name) {
            Ok(Some(text)) => {
                let own = IgnoreRules::parse(&text);
                if own.rules.is_empty() {
                    above
                } else {
                    Some(Arc::new(Self { own, skip_bytes, prefix: prefix.to_owned(), above }))
                }
            }
            Ok(None) => above,
            Err(_) => {
                is_unreadable = true;
                above
            }
        };
        if !layers.git.is_empty() {
            // A repository begins here: rules from above do not apply in it.
            rules = add(&layers.git, EXCLUDE, None);
        }
        if !layers.rules.is_empty() {
            rules = add(&layers.rules, RULES, rules);
        }
        ReadRules { rules, is_unreadable }
    }

    /// Whether a path is ignored. The nearest rules decide.
    pub(crate) fn ignores(&self, path: &str, is_folder: bool) -> bool {
        let mut next = Some(self);
        while let Some(rules) = next {
            let below = &path[rules.skip_bytes..];
            let verdict = if rules.prefix.is_empty() {
                rules.own.verdict(below, is_folder)
            } else {
                rules.own.verdict(&[&rules.prefix, below].concat(), is_folder)
            };
            match verdict {
                Verdict::Ignore => return true,
                Verdict::Include => return false,
                Verdict::None => next = rules.above.as_deref(),
            }
        }
        false
    }
}

/// Reads a rule file from the first folder that has it.
fn read_first(folders: &[&OwnedFd], name: &str) -> rustix::io::Result<Option<Vec<u8>>> {
    for folder in folders {
        if let Some(text) = read(folder, name)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// Reads a rule file. Like git, it does not follow a symbolic link.
fn read(folder: impl AsFd, name: &str) -> rustix::io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let Some(file) = if_exists(sys::open_beneath(folder, Path::new(name), flags, ResolveFlags::NO_SYMLINKS))? else {
        return Ok(None);
    };
    let metadata = Metadata::from(sys::stat(&file)?);
    if metadata.kind != Kind::File {
        return Ok(None);
    }
    let size = usize::try_from(metadata.size_bytes).map_err(|_| Errno::FBIG)?;
    let mut text = vec![0; size.min(MAX_FILE_BYTES)];
    let length = sys::read_at(&file, &mut text, 0)?;
    text.truncate(length);
    if length == MAX_FILE_BYTES {
        // A rule that was cut off would have another meaning.
        let end = text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        text.truncate(end);
    }
    Ok(Some(text))
}
