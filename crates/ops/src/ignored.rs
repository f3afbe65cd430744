//! What the `.gitignore` files of a workspace leave out.

use crate::glob::below;
use crate::heavy;
use crate::search::{Case, SearchOptions, Syntax, search};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use toolrest_core::{CallCx, LineMatch, PathFilter, Result, WsPath};

/// A rule is as much work as so many bytes of text.
const RULE_BYTES: usize = 200;

/// The most lines of rules that are read.
const RULES_MOST: usize = 10_000;

/// The rules of all `.gitignore` files, each for what lies below its folder.
pub struct Ignored {
    rules: BTreeMap<WsPath, Gitignore>,
}

impl Ignored {
    /// Reads the rules.
    pub async fn load(cx: &CallCx) -> Result<Self> {
        let every_line = SearchOptions {
            pattern: String::new(),
            syntax: Syntax::Ripgrep,
            case: Case::Sensitive,
            paths: Some(Arc::new(RuleFiles)),
            limit: RULES_MOST,
            context: 0,
        };
        let lines = search(cx, every_line).await?.matches;
        heavy::run(lines.len() * RULE_BYTES, move || Ok(Self::from_lines(&lines))).await
    }

    fn from_lines(lines: &[LineMatch]) -> Self {
        let mut builders: BTreeMap<WsPath, GitignoreBuilder> = BTreeMap::new();
        for line in lines {
            let Some(folder) = line.path.parent() else { continue };
            let builder = builders.entry(folder).or_insert_with(|| GitignoreBuilder::new("/"));
            // A rule that cannot be understood leaves nothing out, as in git.
            let _ = builder.add_line(None, &line.line);
        }
        let rules = builders.into_iter().filter_map(|(folder, builder)| Some((folder, builder.build().ok()?)));
        Self { rules: rules.collect() }
    }

    /// Whether a file is left out: by a rule for itself or for a folder that it lies in. The rules of the folder that is
    /// nearest decide.
    pub fn leaves_out(&self, path: &WsPath) -> bool {
        if self.rules.is_empty() {
            return false;
        }
        let mut way = path.ancestors();
        way.push(path.clone());
        way.iter().skip(1).any(|part| self.decides_against(part, part != path))
    }

    fn decides_against(&self, path: &WsPath, is_folder: bool) -> bool {
        for folder in path.ancestors().iter().rev() {
            let Some(rules) = self.rules.get(folder) else { continue };
            let Some(below) = below(path.as_str(), folder) else { continue };
            match rules.matched(below, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// Chooses the files that hold rules.
struct RuleFiles;

impl PathFilter for RuleFiles {
    fn accepts(&self, path: &str) -> bool {
        path.ends_with("/.gitignore")
    }
}

/// Chooses what another filter chooses and no rule leaves out, and counts what the rules left out.
pub struct NotIgnored {
    pub chosen: Arc<dyn PathFilter>,
    pub ignored: Ignored,
    pub left_out: AtomicU64,
}

impl PathFilter for NotIgnored {
    fn accepts(&self, path: &str) -> bool {
        if !self.chosen.accepts(path) {
            return false;
        }
        let left_out = self.ignored.leaves_out(&WsPath::from_normal(path.to_owned()));
        self.left_out.fetch_add(u64::from(left_out), Ordering::Relaxed);
        !left_out
    }
}
