//! The line that begins a hunk.

/// What a hunk's first line says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HunkHeader<'a> {
    pub numbers: Option<Numbers>,
    /// The text of a line above the hunk.
    pub heading: Option<&'a [u8]>,
}

/// The numbers of `@@ -old_start,old_count +new_start,new_count @@`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub old_start: usize,
    pub old_count: usize,
    pub new_start: usize,
    pub new_count: usize,
}

/// Reads a line that starts with `@@`, with numbers or without.
pub(super) fn read(line: &[u8]) -> Option<HunkHeader<'_>> {
    let rest = line.strip_prefix(b"@@")?;
    if let Some((numbers, rest)) = read_numbers(rest) {
        let heading = rest.trim_ascii().strip_prefix(b"@@").unwrap_or(rest).trim_ascii();
        return Some(HunkHeader { numbers: Some(numbers), heading: solid(heading) });
    }
    let heading = match memchr::memmem::find(rest, b"@@") {
        Some(at) => match solid(rest[at + 2..].trim_ascii()) {
            Some(after) => after,
            None => rest[..at].trim_ascii(),
        },
        None => rest.trim_ascii(),
    };
    Some(HunkHeader { numbers: None, heading: solid(heading) })
}

/// A heading that names something: not empty, no dots for left out numbers, no numbers that make no sense.
fn solid(heading: &[u8]) -> Option<&[u8]> {
    let says_nothing = heading.is_empty()
        || heading.iter().all(|byte| matches!(byte, b'.' | b'-' | b'+' | b',' | b' ' | b'0'..=b'9'))
        || heading == "…".as_bytes();
    (!says_nothing).then_some(heading)
}

fn read_numbers(rest: &[u8]) -> Option<(Numbers, &[u8])> {
    let (old_start, old_count, rest) = read_range(rest, b'-')?;
    let (new_start, new_count, rest) = read_range(rest, b'+')?;
    Some((Numbers { old_start, old_count, new_start, new_count }, rest))
}

fn read_range(rest: &[u8], sign: u8) -> Option<(usize, usize, &[u8])> {
    let rest = rest.trim_ascii_start().strip_prefix(&[sign])?;
    let (start, rest) = read_number(rest)?;
    match rest.strip_prefix(b",") {
        Some(rest) => {
            let (count, rest) = read_number(rest)?;
            Some((start, count, rest))
        }
        None => Some((start, 1, rest)),
    }
}

fn read_number(rest: &[u8]) -> Option<(usize, &[u8])> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    Some((number, &rest[digits..]))
}

#[cfg(test)]
#[path = "hunk_header_tests.rs"]
mod tests;
