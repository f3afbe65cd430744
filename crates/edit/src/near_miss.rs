//! Finding a text that differs from the wanted one in its case or its spaces alone.

use crate::limits::Stop;
use crate::lines::split;
use memchr::memchr_iter;
use memchr::memmem::Finder;

/// Longer texts are not searched: each byte of them takes some more.
const SEARCHED_BYTES: usize = 8 << 20;
/// Fewer letters than this stand everywhere once spaces do not count.
const LEAST_BYTES: usize = 3;

/// A place where the wanted text would be, if something did not count.
pub(crate) struct NearMiss<'t> {
    /// The index of its first line.
    pub first_line: usize,
    /// What stands there, line by line, from the first byte of the place to its last.
    pub lines: Vec<&'t [u8]>,
    /// What would have to be overlooked, in words.
    pub overlooks: &'static str,
}

/// What is overlooked.
#[derive(Clone, Copy)]
struct Overlook {
    spaces: bool,
    case: bool,
    words: &'static str,
}

const TRIED: [Overlook; 3] = [
    Overlook { spaces: true, case: false, words: "spaces and line breaks" },
    Overlook { spaces: false, case: true, words: "upper and lower case" },
    Overlook { spaces: true, case: true, words: "spaces, line breaks, upper and lower case" },
];

/// The first place where a text would be found if its spaces, its case or both did not count.
pub(crate) fn find<'t>(text: &'t [u8], wanted: &[u8], stop: Stop) -> Option<NearMiss<'t>> {
    if text.len() > SEARCHED_BYTES || wanted.len() > text.len().saturating_mul(2) {
        return None;
    }
    TRIED.into_iter().find_map(|overlook| {
        let (wanted, _) = folded(wanted, overlook, stop);
        if wanted.len() < LEAST_BYTES || stop.is_set() {
            return None;
        }
        let (flat, offsets) = folded(text, overlook, stop);
        let at = Finder::new(&wanted).find(&flat)?;
        let (start, last) = (*offsets.get(at)?, *offsets.get(at + wanted.len() - 1)?);
        let (start, last) = (usize::try_from(start).ok()?, usize::try_from(last).ok()?);
        let character_bytes = |byte: u8| byte.leading_ones().clamp(1, 4);
        let end = text.len().min(last + usize::try_from(character_bytes(text[last])).ok()?);
        Some(NearMiss {
            first_line: memchr_iter(b'\n', &text[..start]).count(),
            lines: split(&text[start..end]).iter().map(|line| line.body).collect(),
            overlooks: overlook.words,
        })
    })
}

/// A text without what is overlooked, and for each of its bytes where its character starts in the text.
fn folded(text: &[u8], overlook: Overlook, stop: Stop) -> (Vec<u8>, Vec<u32>) {
    let (mut flat, mut offsets) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len()));
    let mut offset: u32 = 0;
    let mut push = |bytes: &[u8], offset: u32| {
        flat.extend_from_slice(bytes);
        offsets.resize(flat.len(), offset);
    };
    let mut characters = 0;
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            characters += 1;
            if stop.is_set_at(characters) {
                return (Vec::new(), Vec::new());
            }
            if overlook.case {
                for lower in character.to_lowercase().filter(|lower| !(overlook.spaces && lower.is_whitespace())) {
                    push(lower.encode_utf8(&mut [0; 4]).as_bytes(), offset);
                }
            } else if !(overlook.spaces && character.is_whitespace()) {
                push(character.encode_utf8(&mut [0; 4]).as_bytes(), offset);
            }
            offset += u32::try_from(character.len_utf8()).unwrap_or(0);
        }
        push(chunk.invalid(), offset);
        offset += u32::try_from(chunk.invalid().len()).unwrap_or(0);
    }
    (flat, offsets)
}

#[cfg(test)]
#[path = "near_miss_tests.rs"]
mod tests;
