//! Backslash and what follows it, in the advanced flavour.

use crate::ast::Assertion;
use crate::classes::Class;
use crate::cursor::{Cursor, Parsed};
use crate::error::ErrorKind;

/// The largest code that PostgreSQL accepts; codes beyond Unicode stand for characters that no text has.
const CODE_MAX: u32 = 0x7fff_fffe;

/// What an escape means.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Escape {
    Character(u32),
    Class(Class),
    NotClass(Class),
    Assertion(Assertion),
    BackReference(usize),
}

/// Reads an escape; the cursor stands on its backslash.
///
/// A number of several digits is a back-reference if so many groups were opened before it, and otherwise octal.
pub(crate) fn read(cursor: &mut Cursor, groups_opened: usize) -> Parsed<Escape> {
    let start = cursor.place;
    cursor.place += 1;
    let fault = (ErrorKind::Escape, start);
    let letter = cursor.take().ok_or(fault)?;
    let escape = match letter {
        'a' => Escape::Character(0x07),
        'b' => Escape::Character(0x08),
        'B' => Escape::Character('\\'.into()),
        'c' => Escape::Character(u32::from(cursor.take().ok_or(fault)?) & 0x1f),
        'e' => Escape::Character(0x1b),
        'f' => Escape::Character(0x0c),
        'n' => Escape::Character('\n'.into()),
        'r' => Escape::Character('\r'.into()),
        't' => Escape::Character('\t'.into()),
        'v' => Escape::Character(0x0b),
        'u' => Escape::Character(hexadecimal(cursor, 4, 4).ok_or(fault)?),
        'U' => Escape::Character(hexadecimal(cursor, 8, 8).ok_or(fault)?),
        'x' => Escape::Character(hexadecimal(cursor, 1, usize::MAX).ok_or(fault)?),
        'd' => Escape::Class(Class::Digit),
        'D' => Escape::NotClass(Class::Digit),
        's' => Escape::Class(Class::Space),
        'S' => Escape::NotClass(Class::Space),
        'w' => Escape::Class(Class::Word),
        'W' => Escape::NotClass(Class::Word),
        'A' => Escape::Assertion(Assertion::LineStart),
        'Z' => Escape::Assertion(Assertion::LineEnd),
        'm' => Escape::Assertion(Assertion::WordStart),
        'M' => Escape::Assertion(Assertion::WordEnd),
        'y' => Escape::Assertion(Assertion::WordBoundary),
        'Y' => Escape::Assertion(Assertion::NotWordBoundary),
        '0' => {
            cursor.place -= 1;
            Escape::Character(octal(cursor).ok_or(fault)?)
        }
        '1'..='9' => {
            cursor.place -= 1;
            match back_reference(cursor, groups_opened) {
                Some(group) => Escape::BackReference(group),
                None => Escape::Character(octal(cursor).ok_or(fault)?),
            }
        }
        _ if letter.is_ascii_alphabetic() => return Err(fault),
        _ => Escape::Character(letter.into()),
    };
    match escape {
        Escape::Character(code) if code > CODE_MAX => Err(fault),
        escape => Ok(escape),
    }
}

/// Reads a number as PostgreSQL does, which keeps its last 32 bits.
fn hexadecimal(cursor: &mut Cursor, min: usize, max: usize) -> Option<u32> {
    let (mut code, mut digits) = (0u32, 0);
    while digits < max
        && let Some(digit) = cursor.digit(16)
    {
        code = code << 4 | digit;
        digits += 1;
    }
    (digits >= min).then_some(code)
}

/// Reads the number of a group; moves nothing if it is none.
fn back_reference(cursor: &mut Cursor, groups_opened: usize) -> Option<usize> {
    let start = cursor.place;
    let mut group = 0usize;
    while let Some(digit) = cursor.digit(10) {
        group = group.saturating_mul(10).saturating_add(digit as usize);
    }
    let is_single = cursor.place == start + 1;
    if is_single || group <= groups_opened {
        return Some(group);
    }
    cursor.place = start;
    None
}

/// Reads up to three octal digits, but no more than make one byte.
fn octal(cursor: &mut Cursor) -> Option<u32> {
    let mut code = cursor.digit(8)?;
    for _ in 0..2 {
        let before = cursor.place;
        match cursor.digit(8) {
            Some(digit) if code << 3 | digit <= 0xff => code = code << 3 | digit,
            _ => {
                cursor.place = before;
                break;
            }
        }
    }
    Some(code)
}
