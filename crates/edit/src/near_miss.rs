//! Finds a text that differs from the wanted one only in case or whitespace, to show it in an error.

use crate::limits::StopFlag;
use crate::lines::split;
use memchr::memchr_iter;
use memchr::memmem::Finder;

/// Maximum size of a text that is searched, because each byte of it takes several bytes of memory.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// Minimum size of the wanted text without spaces: a shorter one would be found nearly everywhere.
const WANTED_BYTES_MIN: usize = 3;

/// A match of the wanted text with some differences ignored.
pub(crate) struct NearMiss<'t> {
    /// Index of the first line of the match.
    pub first_line: usize,
    /// The matched text, line by line. The first and the last line may be only parts of lines.
    pub lines: Vec<&'t [u8]>,
    /// Describes the ignored differences.
    pub ignores: &'static str,
}

/// Differences that a search ignores.
#[derive(Clone, Copy)]
struct IgnoredDifferences {
    spaces: bool,
    case: bool,
    description: &'static str,
}

const ATTEMPTS: [IgnoredDifferences; 3] = [
    IgnoredDifferences { spaces: true, case: false, description: "spaces and line breaks" },
    IgnoredDifferences { spaces: false, case: true, description: "upper and lower case" },
    IgnoredDifferences { spaces: true, case: true, description: "spaces, line breaks, upper and lower case" },
];

/// Returns the first match of a text if its spaces, its case or both are ignored.
pub(crate) fn find<'t>(text: &'t [u8], wanted: &[u8], stop: StopFlag) -> Option<NearMiss<'t>> {
    if text.len() > MAX_TEXT_BYTES || wanted.len() > text.len().saturating_mul(2) {
        return None;
    }
    ATTEMPTS.into_iter().find_map(|ignored| {
        let (wanted, _) = fold(wanted, ignored, stop);
        if wanted.len() < WANTED_BYTES_MIN || stop.is_set() {
            return None;
        }
        let (folded, offsets) = fold(text, ignored, stop);
        let at = Finder::new(&wanted).find(&folded)?;
        let (start, last) = (*offsets.get(at)?, *offsets.get(at + wanted.len() - 1)?);
        let (start, last) = (usize::try_from(start).ok()?, usize::try_from(last).ok()?);
        let character_bytes = |byte: u8| byte.leading_ones().clamp(1, 4);
        let end = text.len().min(last + usize::try_from(character_bytes(text[last])).ok()?);
        Some(NearMiss {
            first_line: memchr_iter(b'\n', &text[..start]).count(),
            lines: split(&text[start..end]).iter().map(|line| line.body).collect(),
            ignores: ignored.description,
        })
    })
}

/// Returns the text without the ignored differences and, for each byte of that, the offset of its character in the
/// original text.
fn fold(text: &[u8], ignored: IgnoredDifferences, stop: StopFlag) -> (Vec<u8>, Vec<u32>) {
    let (mut folded, mut offsets) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len()));
    let mut offset: u32 = 0;
    let mut push = |bytes: &[u8], offset: u32| {
        folded.extend_from_slice(bytes);
        offsets.resize(folded.len(), offset);
    };
    let mut characters = 0;
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            characters += 1;
            if stop.is_set_at(characters) {
                return (Vec::new(), Vec::new());
            }
            if ignored.case {
                for lower in character.to_lowercase().filter(|lower| !(ignored.spaces && lower.is_whitespace())) {
                    push(lower.encode_utf8(&mut [0; 4]).as_bytes(), offset);
                }
            } else if !(ignored.spaces && character.is_whitespace()) {
                push(character.encode_utf8(&mut [0; 4]).as_bytes(), offset);
            }
            offset += u32::try_from(character.len_utf8()).unwrap_or(0);
        }
        push(chunk.invalid(), offset);
        offset += u32::try_from(chunk.invalid().len()).unwrap_or(0);
    }
    (folded, offsets)
}

#[cfg(test)]
#[path = "near_miss_tests.rs"]
mod tests;
