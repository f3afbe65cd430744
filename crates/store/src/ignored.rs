//! What the `.gitignore` files of a workspace leave out.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use toolrest_core::{Interrupt, LineMatch, LineMatcher, LinePattern, PathFilter, Requirement, Result, WsPath};

/// The rules of all `.gitignore` files, each for what lies below its folder.
pub(crate) struct Ignored {
    rules: BTreeMap<WsPath, Gitignore>,
}

impl Ignored {
    /// Reads the rules from their lines, in order.
    pub(crate) fn from_lines(lines: &[LineMatch]) -> Self {
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

    /// Whether a file is left out that was found below a folder: by a rule for itself or for a folder on the way to it.
    /// The rules of the folder that is nearest decide.
    pub(crate) fn leaves_out(&self, path: &WsPath, found_below: &WsPath) -> bool {
        if self.rules.is_empty() {
            return false;
        }
        let mut way = path.ancestors();
        way.push(path.clone());
        let found = way.iter().filter(|part| part.is_below(found_below));
        found.into_iter().any(|part| self.decides_against(part, part != path))
    }

    fn decides_against(&self, path: &WsPath, is_folder: bool) -> bool {
        for folder in path.ancestors().iter().rev() {
            let Some(rules) = self.rules.get(folder) else { continue };
            let Some(below) = folder.part_below(path.as_str()) else { continue };
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
pub(crate) struct RuleFiles;

impl PathFilter for RuleFiles {
    fn accepts(&self, path: &str) -> bool {
        path.ends_with("/.gitignore")
    }
}

/// Matches every line. A final newline does not begin one more.
pub(crate) struct EveryLine;

impl LinePattern for EveryLine {
    fn compile(&self) -> Result<Arc<dyn LineMatcher>> {
        Ok(Arc::new(Self))
    }
}

impl LineMatcher for EveryLine {
    fn requirements(&self) -> &[Requirement] {
        &[]
    }

    fn find_lines(
        &self,
        text: &[u8],
        _: &Interrupt,
        found: &mut dyn FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut start = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let end = start + line.strip_suffix(b"\n").unwrap_or(line).len();
            if found(start..end).is_break() {
                break;
            }
            start += line.len();
        }
        Ok(())
    }
}
