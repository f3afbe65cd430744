//! The last output of a process, addressed by offset.

/// The last part of a process's output, in limited memory.
#[derive(Debug)]
pub(super) struct OutputLog {
    kept: Vec<u8>,
    /// Number of discarded bytes.
    dropped: u64,
    limit: usize,
}

/// A piece of a process's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPiece {
    /// The text. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The offset of the next piece.
    pub next_offset: u64,
    /// Number of bytes after the requested offset that were discarded.
    pub dropped_bytes: u64,
}

impl OutputLog {
    pub(super) fn new(limit: usize) -> Self {
        Self { kept: Vec::new(), dropped: 0, limit }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        // The log is cut when it reaches twice the limit, so that each byte is moved once on average.
        if self.kept.len() >= 2 * self.limit {
            self.cut();
        }
    }

    /// Returns the kept bytes, and the number of those before them.
    pub(super) fn kept(&self) -> (&[u8], u64) {
        (&self.kept, self.dropped)
    }

    /// Keeps less from now on, if the limit is lower.
    pub(super) fn limit_to(&mut self, limit: usize) {
        self.limit = self.limit.min(limit);
        self.shrink();
    }

    /// Frees the memory beyond the limit. Call it when the process has ended.
    pub(super) fn shrink(&mut self) {
        self.cut();
        self.kept.shrink_to_fit();
    }

    fn cut(&mut self) {
        let excess = self.kept.len().saturating_sub(self.limit);
        self.kept.drain(..excess);
        self.dropped += excess as u64;
    }

    /// Returns the number of bytes that were printed.
    pub(super) fn total(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }

    /// Returns up to `max_bytes` of output at an offset, without cutting a character. While the process runs, an
    /// incomplete character at the end is held back.
    pub(super) fn read(&self, offset: u64, max_bytes: usize, more_can_come: bool) -> OutputPiece {
        let offset = offset.min(self.total());
        let dropped_bytes = self.dropped.saturating_sub(offset);
        let start = usize::try_from(offset.saturating_sub(self.dropped)).unwrap_or(usize::MAX).min(self.kept.len());
        let end = start.saturating_add(max_bytes).min(self.kept.len());
        let is_last = end == self.kept.len() && !more_can_come;
        let end = if is_last { end } else { end - partial_end(&self.kept[start..end]) };
        let text = String::from_utf8_lossy(&self.kept[start..end]).into_owned();
        OutputPiece { text, next_offset: self.dropped + end as u64, dropped_bytes }
    }
}

/// Returns the size of an incomplete character at the end.
fn partial_end(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    match str::from_utf8(tail) {
        Err(error) if error.error_len().is_none() => tail.len() - error.valid_up_to(),
        // The tail may begin within a character or contain invalid bytes, so find the suffix that is an incomplete
        // character.
        _ => (1..=tail.len())
            .find(|length| {
                let end = &tail[tail.len() - length..];
                matches!(str::from_utf8(end), Err(error) if error.error_len().is_none() && error.valid_up_to() == 0)
            })
            .unwrap_or(0),
    }
}

#[cfg(test)]
#[path = "output_log_tests.rs"]
mod tests;
