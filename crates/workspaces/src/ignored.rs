//! The `.gitignore` rules of a database workspace.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use toolrest_core::{Interrupt, LineMatch, LineMatcher, LinePattern, PathFilter, Requirement, Result, WsPath};
use toolrest_directory::{IgnoreRules, Verdict};

/// The rules of all `.gitignore` files. Each applies to what is below its folder.
pub(crate) struct Ignored {
    rules: BTreeMap<WsPath, IgnoreRules>,
}

impl Ignored {
    /// Parses the rules from their lines, in order.
    pub(crate) fn from_lines(lines: &[LineMatch]) -> Self {
        let mut texts: BTreeMap<WsPath, String> = BTreeMap::new();
        for line in lines {
            let Some(folder) = line.path.parent() else { continue };
            let text = texts.entry(folder).or_default();
            text.push_str(&line.line);
            text.push('\n');
        }
        Self { rules: texts.into_iter().map(|(folder, text)| (folder, IgnoreRules::parse(text.as_bytes()))).collect() }
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
