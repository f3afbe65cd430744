//! Parses the header line of a hunk.

/// The header line of a hunk.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HunkHeader<'a> {
    pub ranges: Option<HeaderRanges>,
    /// The beginning of a line above the hunk, usually the one that declares the function.
    pub heading: Option<&'a [u8]>,
}

/// The ranges in `@@ -old_start,old_count +new_start,new_count @@`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeaderRanges {
    pub old_start: usize,
    pub old_count: usize,
    pub new_start: usize,
    pub new_count: usize,
}

/// Parses a line that starts with `@@`, with ranges or without; returns `None` for other lines.
pub(super) fn parse(line: &[u8]) -> Option<HunkHeader<'_>> {
    let rest = line.strip_prefix(b"@@")?;
    if let Some((ranges, rest)) = parse_ranges(rest) {
        let heading = rest.trim_ascii().strip_prefix(b"@@").unwrap_or(rest).trim_ascii();
        return Some(HunkHeader { ranges: Some(ranges), heading: meaningful_heading(heading) });
    }
    // Without ranges, models write `@@ ... @@ heading` or `@@ heading @@`.
    let heading = match memchr::memmem::find(rest, b"@@") {
        Some(at) => match meaningful_heading(rest[at + 2..].trim_ascii()) {
            Some(after) => after,
            None => rest[..at].trim_ascii(),
        },
        None => rest.trim_ascii(),
    };
    Some(HunkHeader { ranges: None, heading: meaningful_heading(heading) })
}

/// Returns the heading, or `None` if it says nothing about the file: it is empty, an ellipsis, or incomplete ranges.
fn meaningful_heading(heading: &[u8]) -> Option<&[u8]> {
    let is_placeholder = heading.is_empty()
        || heading.iter().all(|byte| matches!(byte, b'.' | b'-' | b'+' | b',' | b' ' | b'0'..=b'9'))
        || heading == "…".as_bytes();
    (!is_placeholder).then_some(heading)
}

fn parse_ranges(rest: &[u8]) -> Option<(HeaderRanges, &[u8])> {
    let (old_start, old_count, rest) = parse_range(rest, b'-')?;
    let (new_start, new_count, rest) = parse_range(rest, b'+')?;
    Some((HeaderRanges { old_start, old_count, new_start, new_count }, rest))
}

fn parse_range(rest: &[u8], sign: u8) -> Option<(usize, usize, &[u8])> {
    let rest = rest.trim_ascii_start().strip_prefix(&[sign])?;
    let (start, rest) = parse_number(rest)?;
    match rest.strip_prefix(b",") {
        Some(rest) => {
            let (count, rest) = parse_number(rest)?;
            Some((start, count, rest))
        }
        None => Some((start, 1, rest)),
    }
}

fn parse_number(rest: &[u8]) -> Option<(usize, &[u8])> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    Some((number, &rest[digits..]))
}

#[cfg(test)]
#[path = "hunk_header_tests.rs"]
mod tests;
