//! Bracket expressions (`[...]`) of all flavours.

use regex_syntax::hir::ClassUnicode;

use crate::classes::{self, Class};
use crate::cursor::{Cursor, ParseResult, SyntaxError};
use crate::error::ErrorKind;
use crate::escape::{self, Escape};

/// The meaning of a backslash in a bracket expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backslash {
    /// It starts an escape. `groups_opened` is the number of groups that the pattern has opened so far.
    Escapes {
        groups_opened: usize,
    },
    Literal,
}

/// The parts of the syntax that depend on the flavour and the options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) backslash: Backslash,
    pub(crate) case_insensitive: bool,
}

/// A member of a bracket expression. Only a single character can be the end of a range.
enum Member {
    Character(u32),
    /// `[.x.]`. PostgreSQL treats it as the range from `x` to `x`, which makes a difference for title case letters: a
    /// case-insensitive range contains the letter itself, a case-insensitive character only its two other forms.
    Element(u32),
    Set(ClassUnicode),
}

/// Parses a bracket expression; the cursor is at its `[`.
pub(crate) fn read(cursor: &mut Cursor, rules: Rules) -> ParseResult<ClassUnicode> {
    Bracket { start: cursor.position, cursor, rules }.read()
}

struct Bracket<'c, 'p> {
    start: usize,
    cursor: &'c mut Cursor<'p>,
    rules: Rules,
}

impl Bracket<'_, '_> {
    fn read(mut self) -> ParseResult<ClassUnicode> {
        self.cursor.position += 1;
        let is_negated = self.cursor.eat("^");
        // As the first member, `]` and `-` are ordinary characters.
        let mut set = self.member_or_range()?;
        while !self.cursor.eat("]") {
            if self.cursor.is_at("-") && !self.cursor.is_at("-]") {
                return Err(self.invalid_range());
            }
            set.union(&self.member_or_range()?);
        }
        if is_negated {
            set.negate();
        }
        Ok(set)
    }

    /// Returns the error for what was just read. If the pattern ends here, a missing `]` is reported instead, as in
    /// PostgreSQL.
    fn error(&self, kind: ErrorKind) -> SyntaxError {
        let kind = if self.cursor.peek().is_none() { ErrorKind::Brackets } else { kind };
        (kind, self.start)
    }

    fn member_or_range(&mut self) -> ParseResult<ClassUnicode> {
        let case_insensitive = self.rules.case_insensitive;
        let member = self.member()?;
        let (Member::Character(first) | Member::Element(first)) = member else {
            return Ok(self.set(member));
        };
        if self.cursor.is_at("-]") || !self.cursor.eat("-") {
            return Ok(self.set(member));
        }
        if self.cursor.is_at("[=") || self.cursor.is_at("[:") {
            return Err(self.invalid_range());
        }
        match self.member()? {
            Member::Set(_) => Err(self.invalid_range()),
            Member::Character(last) | Member::Element(last) if first <= last => {
                Ok(classes::range_set(first, last, case_insensitive))
            }
            _ => Err(self.error(ErrorKind::CharacterRange)),
        }
    }

    fn set(&self, member: Member) -> ClassUnicode {
        match member {
            Member::Character(code) => classes::character_set(code, self.rules.case_insensitive),
            Member::Element(code) => classes::range_set(code, code, self.rules.case_insensitive),
            Member::Set(set) => set,
        }
    }

    fn member(&mut self) -> ParseResult<Member> {
        for kind in ['.', '=', ':'] {
            if self.cursor.eat(&format!("[{kind}")) {
                return self.named(kind);
            }
        }
        match self.rules.backslash {
            Backslash::Escapes { groups_opened } if self.cursor.is_at("\\") => self.escape(groups_opened),
            _ => self.cursor.take().map(|character| Member::Character(character.into())).ok_or(self.unbalanced()),
        }
    }

    /// Parses the rest of a named member: `name.]`, `name=]` or `name:]`.
    fn named(&mut self, kind: char) -> ParseResult<Member> {
        let rest = self.cursor.rest();
        let length = rest.windows(2).position(|pair| pair == [kind, ']']).ok_or(self.unbalanced())?;
        let name: String = rest[..length].iter().collect();
        self.cursor.position += length + 2;
        let case_insensitive = self.rules.case_insensitive;
        Ok(match (kind, Class::named(&name), classes::collating_element(&name)) {
            (':', Some(class), _) => Member::Set(class.set(case_insensitive)),
            (':', None, _) => return Err(self.error(ErrorKind::CharacterClass)),
            ('.', _, Some(code)) => Member::Element(code),
            (_, _, Some(code)) => Member::Set(classes::character_set(code, case_insensitive)),
            (_, _, None) => return Err(self.error(ErrorKind::CollatingElement)),
        })
    }

    fn escape(&mut self, groups_opened: usize) -> ParseResult<Member> {
        let start = self.cursor.position;
        let case_insensitive = self.rules.case_insensitive;
        match escape::read(self.cursor, groups_opened)? {
            Escape::Character(code) => Ok(Member::Character(code)),
            Escape::Class(class) => Ok(Member::Set(class.set(case_insensitive))),
            Escape::NotClass(class) => {
                let mut set = class.set(case_insensitive);
                set.negate();
                Ok(Member::Set(set))
            }
            Escape::Assertion(_) | Escape::BackReference(_) => Err((ErrorKind::Escape, start)),
        }
    }

    fn invalid_range(&self) -> SyntaxError {
        (ErrorKind::CharacterRange, self.start)
    }

    fn unbalanced(&self) -> SyntaxError {
        (ErrorKind::Brackets, self.start)
    }
}
