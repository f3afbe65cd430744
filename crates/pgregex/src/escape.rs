//! Backslash escapes of the advanced flavour.

use crate::ast::Assertion;
use crate::classes::Class;
use crate::cursor::{Cursor, ParseResult};
use crate::error::ErrorKind;

/// The largest code point that PostgreSQL accepts. Those beyond Unicode match nothing, as no text contains them.
const MAX_CODE: u32 = 0x7fff_fffe;

/// The meaning of an escape.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Escape {
    Character(u32),
    Class(Class),
    NotClass(Class),
    Assertion(Assertion),
    BackReference(usize),
}

/// Parses an escape; the cursor is at its backslash.
///
/// `groups_opened` is the number of groups opened so far. A number of several digits is a back-reference if it is not
/// larger than that, and otherwise an octal code.
pub(crate) fn read(cursor: &mut Cursor, groups_opened: usize) -> ParseResult<Escape> {
    let start = cursor.position;
    cursor.position += 1;
    let error = (ErrorKind::Escape, start);
    let letter = cursor.take().ok_or(error)?;
    let escape = match letter {
        'a' => Escape::Character(0x07),
        'b' => Escape::Character(0x08),
        'B' => Escape::Character('\\'.into()),
        'c' => Escape::Character(u32::from(cursor.take().ok_or(error)?) & 0x1f),
        'e' => Escape::Character(0x1b),
        'f' => Escape::Character(0x0c),
        'n' => Escape::Character('\n'.into()),
        'r' => Escape::Character('\r'.into()),
        't' => Escape::Character('\t'.into()),
        'v' => Escape::Character(0x0b),
        'u' => Escape::Character(hexadecimal(cursor, 4, 4).ok_or(error)?),
        'U' => Escape::Character(hexadecimal(cursor, 8, 8).ok_or(error)?),
        'x' => Escape::Character(hexadecimal(cursor, 1, usize::MAX).ok_or(error)?),
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
            cursor.position -= 1;
            Escape::Character(octal(cursor).ok_or(error)?)
        }
        '1'..='9' => {
            cursor.position -= 1;
            match back_reference(cursor, groups_opened) {
                Some(group) => Escape::BackReference(group),
                None => Escape::Character(octal(cursor).ok_or(error)?),
            }
        }
        _ if letter.is_ascii_alphabetic() => return Err(error),
        _ => Escape::Character(letter.into()),
    };
    match escape {
        Escape::Character(code) if code > MAX_CODE => Err(error),
        escape => Ok(escape),
    }
}

/// Reads a hexadecimal number. Of a longer one the last 32 bits are kept, as in PostgreSQL.
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

/// Reads the number of a group; returns `None` and reads nothing if it is an octal code instead.
fn back_reference(cursor: &mut Cursor, groups_opened: usize) -> Option<usize> {
    let start = cursor.position;
    let mut group = 0usize;
    while let Some(digit) = cursor.digit(10) {
        group = group.saturating_mul(10).saturating_add(digit as usize);
    }
    let is_single = cursor.position == start + 1;
    if is_single || group <= groups_opened {
        return Some(group);
    }
    cursor.position = start;
    None
}

/// Reads up to three octal digits whose value fits in one byte.
fn octal(cursor: &mut Cursor) -> Option<u32> {
    let mut code = cursor.digit(8)?;
    for _ in 0..2 {
        let before = cursor.position;
        match cursor.digit(8) {
            Some(digit) if code << 3 | digit <= 0xff => code = code << 3 | digit,
            _ => {
                cursor.position = before;
                break;
            }
        }
    }
    Some(code)
}
