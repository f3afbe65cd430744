//! Keeps the beginning and the end of a stream in bounded memory.

/// The beginning and the end of an output stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    head: Vec<u8>,
    tail: Vec<u8>,
    total_bytes: u64,
    head_limit: usize,
    tail_limit: usize,
}

impl CapturedOutput {
    pub(crate) fn new(kept_bytes: usize) -> Self {
        let head_limit = kept_bytes / 2;
        Self { head_limit, tail_limit: kept_bytes - head_limit, ..Self::default() }
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let room = self.head_limit - self.head.len();
        if room > 0 {
            let (head, rest) = bytes.split_at(room.min(bytes.len()));
            self.head.extend_from_slice(head);
            bytes = rest;
        }
        let start = bytes.len().saturating_sub(self.tail_limit);
        self.tail.extend_from_slice(&bytes[start..]);
        // The buffer grows to twice the limit before it is cut, so that each byte is moved once on average.
        if self.tail.len() >= 2 * self.tail_limit {
            self.shorten();
        }
    }

    /// Drops everything beyond the limits.
    pub(crate) fn finish(mut self) -> Self {
        self.shorten();
        self.tail.shrink_to_fit();
        self
    }

    fn shorten(&mut self) {
        let excess = self.tail.len().saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
    }

    /// Returns the total size of the stream.
    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns the number of bytes cut between the beginning and the end.
    pub const fn cut_bytes(&self) -> u64 {
        self.total_bytes - (self.head.len() + self.tail.len()) as u64
    }

    /// Returns the kept bytes: the beginning and the end.
    pub fn parts(&self) -> (&[u8], &[u8]) {
        (&self.head, &self.tail)
    }

    /// Returns the same stream with other kept bytes. The number of cut bytes stays.
    #[must_use]
    pub fn with_parts(&self, head: Vec<u8>, tail: Vec<u8>) -> Self {
        let total_bytes = self.cut_bytes() + (head.len() + tail.len()) as u64;
        Self { head, tail, total_bytes, ..Self::default() }
    }

    /// Returns the kept bytes, without a mark at the cut.
    pub fn bytes(&self) -> Vec<u8> {
        [self.head.as_slice(), self.tail.as_slice()].concat()
    }

    /// Returns the kept bytes as text. A cut is marked with its size and splits no character. Bytes that are not UTF-8
    /// are replaced.
    pub fn text(&self) -> String {
        if self.cut_bytes() == 0 {
            return String::from_utf8_lossy(&self.bytes()).into_owned();
        }
        let head = without_partial_end(&self.head);
        let tail = without_partial_start(&self.tail);
        let cut = self.total_bytes - (head.len() + tail.len()) as u64;
        format!("{}\n[… {cut} bytes cut …]\n{}", String::from_utf8_lossy(head), String::from_utf8_lossy(tail))
    }
}

/// Drops an incomplete character at the end.
fn without_partial_end(bytes: &[u8]) -> &[u8] {
    let Some(start) = bytes.iter().rposition(|byte| !is_continuation(*byte)) else { return bytes };
    let length = match bytes[start] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if start + length > bytes.len() { &bytes[..start] } else { bytes }
}

/// Drops an incomplete character at the start.
fn without_partial_start(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
    &bytes[rest..]
}

const fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod output_tests;
