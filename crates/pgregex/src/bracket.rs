//! Bracket expressions: `[...]` in all flavours.

use regex_syntax::hir::ClassUnicode;

use crate::classes::{self, Class};
use crate::cursor::{Cursor, Fault, Parsed};
use crate::error::ErrorKind;
use crate::escape::{self, Escape};

/// What a backslash in brackets is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backslash {
    /// The start of an escape, in a pattern with so many groups opened.
    Escapes {
        groups_opened: usize,
    },
    Literal,
}

/// How the members of a bracket expression are understood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) backslash: Backslash,
    pub(crate) case_insensitive: bool,
}

/// A member of a bracket expression: only a character can be the end of a range.
enum Member {
    Character(u32),
    /// `[.x.]`, which PostgreSQL takes for a range of one: without case, a title case letter stays in it.
    Element(u32),
    Set(ClassUnicode),
}

/// Reads a bracket expression; the cursor stands on its `[`.
pub(crate) fn read(cursor: &mut Cursor, rules: Rules) -> Parsed<ClassUnicode> {
    Bracket { start: cursor.place, cursor, rules }.read()
}

struct Bracket<'c, 'p> {
    start: usize,
    cursor: &'c mut Cursor<'p>,
    rules: Rules,
}

impl Bracket<'_, '_> {
    fn read(mut self) -> Parsed<ClassUnicode> {
        self.cursor.place += 1;
        let is_negated = self.cursor.eat("^");
        // Right at the start, `]` and `-` are members like any other.
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

    /// Tells what is wrong with what was just read; where the pattern ends behind it, the missing end comes first.
    fn wrong(&self, kind: ErrorKind) -> Fault {
        let kind = if self.cursor.peek().is_none() { ErrorKind::Brackets } else { kind };
        (kind, self.start)
    }

    fn member_or_range(&mut self) -> Parsed<ClassUnicode> {
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
                Ok(classes::range(first, last, case_insensitive))
            }
            _ => Err(self.wrong(ErrorKind::CharacterRange)),
        }
    }

    fn set(&self, member: Member) -> ClassUnicode {
        match member {
            Member::Character(code) => classes::one(code, self.rules.case_insensitive),
            Member::Element(code) => classes::range(code, code, self.rules.case_insensitive),
            Member::Set(set) => set,
        }
    }

    fn member(&mut self) -> Parsed<Member> {
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

    /// Reads `name.]`, `name=]` or `name:]`.
    fn named(&mut self, kind: char) -> Parsed<Member> {
        let rest = self.cursor.rest();
        let length = rest.windows(2).position(|pair| pair == [kind, ']']).ok_or(self.unbalanced())?;
        let name: String = rest[..length].iter().collect();
        self.cursor.place += length + 2;
        let case_insensitive = self.rules.case_insensitive;
        Ok(match (kind, Class::named(&name), classes::collating_element(&name)) {
            (':', Some(class), _) => Member::Set(class.set(case_insensitive)),
            (':', None, _) => return Err(self.wrong(ErrorKind::CharacterClass)),
            ('.', _, Some(code)) => Member::Element(code),
            (_, _, Some(code)) => Member::Set(classes::one(code, case_insensitive)),
            (_, _, None) => return Err(self.wrong(ErrorKind::CollatingElement)),
        })
    }

    fn escape(&mut self, groups_opened: usize) -> Parsed<Member> {
        let start = self.cursor.place;
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

    fn invalid_range(&self) -> Fault {
        (ErrorKind::CharacterRange, self.start)
    }

    fn unbalanced(&self) -> Fault {
        (ErrorKind::Brackets, self.start)
    }
}
