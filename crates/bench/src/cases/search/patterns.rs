//! Thirteen search patterns with the same meaning in PostgreSQL and in ripgrep.

use serde_json::{Value, json};

use crate::report::Target;

/// The property of a pattern that decides how fast a search is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Few or no files match, and every match contains a literal of at least three characters.
    Rare,
    /// There are more matches than the limit, so a search stops early.
    Common,
    /// Matches share no literal of three characters.
    NoLiteral,
}

pub struct Pattern {
    pub name: &'static str,
    pub kind: Kind,
    pub text: &'static str,
    pub case: Case,
    pub syntax: Syntax,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Case {
    Ignored,
    Kept,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    Literal,
    Expression,
}

const fn literal(name: &'static str, kind: Kind, case: Case, text: &'static str) -> Pattern {
    Pattern { name, kind, text, case, syntax: Syntax::Literal }
}

const fn expression(name: &'static str, kind: Kind, case: Case, text: &'static str) -> Pattern {
    Pattern { name, kind, text, case, syntax: Syntax::Expression }
}

pub const PATTERNS: [Pattern; 13] = [
    literal("rare literal, any case", Kind::Rare, Case::Ignored, "quizzical_lathe"),
    literal("rare literal, exact", Kind::Rare, Case::Kept, "QuarryLedger"),
    literal("rare literal beyond ASCII, any case", Kind::Rare, Case::Ignored, "gewürzmühle"),
    literal("absent literal, any case", Kind::Rare, Case::Ignored, "no_such_identifier"),
    literal("absent literal, exact", Kind::Rare, Case::Kept, "XylophoneFactory"),
    literal("common literal, any case", Kind::Common, Case::Ignored, "return"),
    literal("common literal, exact", Kind::Common, Case::Kept, "Result<"),
    expression("common prefix and class, exact", Kind::Common, Case::Kept, r"fn poll_\w+\("),
    expression("rare prefix and class, any case", Kind::Rare, Case::Ignored, r"fn unwind_\w+\("),
    expression(
        "one of several rare literals, any case",
        Kind::Rare,
        Case::Ignored,
        "quizzical_lathe|QuarryLedger|gantry_",
    ),
    expression("common, at the start of a line, any case", Kind::Common, Case::Ignored, "^use "),
    expression("rare, a whole line, exact", Kind::Rare, Case::Kept, r"^mod gantry_\w+;$"),
    expression("rare, no literal, any case", Kind::NoLiteral, Case::Ignored, r"\d{7}[a-f]+\d"),
];

impl Pattern {
    /// Formats the pattern for a cell of a table.
    pub fn shown(&self) -> String {
        format!("{}: `{}`", self.name, self.text.replace('|', r"\|"))
    }

    /// Returns the arguments of the tool `grep`.
    pub fn args(&self) -> Value {
        json!({"pattern": self.text, "case_sensitive": self.case == Case::Kept})
    }

    /// The target of a search in memory, compared with ripgrep.
    pub fn warm_target(&self) -> Target {
        Target::AtMost(match self.kind {
            Kind::Rare => 0.12,
            Kind::Common => 0.5,
            Kind::NoLiteral => 0.65,
        })
    }
}
