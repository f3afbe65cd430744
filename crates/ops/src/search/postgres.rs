//! PostgreSQL's regular expressions.

use super::{Case, interrupted, invalid};
use pgregex::{MatchError, Options, Regex};
use std::ops::{ControlFlow, Range};
use toolrest_core::{ErrorKind, Interrupt, LineMatcher, Requirement, Result, ToolError};

pub(super) struct Pattern {
    regex: Regex,
    requirements: Vec<Requirement>,
}

impl Pattern {
    pub(super) fn new(pattern: &str, case: Case) -> Result<Self> {
        let options = Options { case_insensitive: case == Case::Ignored, ..Options::default() };
        let regex = Regex::new(pattern, options).map_err(|error| invalid(error.to_string()))?;
        let literals = regex.requirements().iter();
        let requirements = literals.map(|required| Requirement { literals: required.literals.clone() }).collect();
        Ok(Self { regex, requirements })
    }
}

impl LineMatcher for Pattern {
    fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    fn find_lines(
        &self,
        text: &[u8],
        interrupt: &Interrupt,
        found: &mut dyn FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> Result<()> {
        for line in self.regex.matching_lines(text).interrupted_by(interrupt.flag()) {
            let line = line.map_err(|error| match error {
                MatchError::Interrupted => interrupted(),
                error => ToolError::new(ErrorKind::Timeout, error.to_string()),
            })?;
            if found(line).is_break() {
                break;
            }
        }
        Ok(())
    }
}
