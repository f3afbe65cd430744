//! The `.gitignore` rules of a database workspace.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use toolrest_core::{Interrupt, LineMatch, LineMatcher, LinePattern, PathFilter, Requirement, Result, WsPath};
use toolrest_directory::{IgnoreRules, Verdict};

/// The rules of all `.gitignore` files. Each applies to what is below its folder.
pub(crate) struct Ignored {
    rules: BTreeMap<WsPath, IgnoreRules>,
    incomplete: Option<WsPath>,
}

impl Ignored {
    /// Parses the rules from their lines, in order. `are_all` is false if there are more.
    pub(crate) fn from_lines(lines: &[LineMatch], are_all: bool) -> Self {
        let mut texts: BTreeMap<WsPath, String> = BTreeMap::new();
        for line in lines {
            let Some(folder) = line.path.parent() else { continue };
            let text = texts.entry(folder).or_default();
            text.push_str(&line.line);
            text.push('\n');
        }
        let parse = |(folder, text): (WsPath, String)| (folder, IgnoreRules::parse(text.as_bytes()));
        let rules: BTreeMap<WsPath, IgnoreRules> = texts.into_iter().map(parse).collect();
        let is_incomplete = |line: &&LineMatch| {
            line.path.parent().and_then(|folder| rules.get(&folder)).is_some_and(|own| !own.is_complete())
        };
        let incomplete = lines.iter().find(is_incomplete).or_else(|| lines.last().filter(|_| !are_all));
        let incomplete = incomplete.map(|line| line.path.clone());
        Self { rules, incomplete }
    }

    /// Returns the `.gitignore` file from which on some rules are not applied.
    pub(crate) fn incomplete(&self) -> Option<&WsPath> {
        self.incomplete.as_ref()
    }

    /// Whether there are no rules at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a file that was found below a folder is ignored, by a rule for itself or for a folder between the two. The
    /// rules of the nearest folder decide.
    pub(crate) fn leaves_out(&self, path: &WsPath, found_below: &WsPath) -> bool {
        if self.is_empty() {
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
            match rules.verdict(below, is_folder) {
                Verdict::Ignore => return true,
                Verdict::Include => return false,
                Verdict::None => {}
            }
        }
        false
    }
}

/// Selects the files with rules.
pub(crate) struct RuleFiles;

impl PathFilter for RuleFiles {
    fn accepts(&self, path: &str) -> bool {
        path.ends_with("/.gitignore")
    }
}

/// Matches every line. A final newline does not start another line.
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
