//! Copying bytes within a limit.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const CHUNK_BYTES: usize = 16 << 10;

/// Number of bytes that may still be copied.
pub(super) struct ByteAllowance {
    remaining: AtomicU64,
}

impl ByteAllowance {
    pub(super) const fn new(bytes: u64) -> Self {
        Self { remaining: AtomicU64::new(bytes) }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.remaining.load(Ordering::Relaxed) == 0
    }

    /// Subtracts bytes. If there are not enough, this and all later calls fail.
    pub(super) fn spend(&self, bytes: usize) -> io::Result<()> {
        let spent = self
            .remaining
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| remaining.checked_sub(bytes as u64));
        if spent.is_err() {
            self.remaining.store(0, Ordering::Relaxed);
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        Ok(())
    }
}

/// Copies up to the end of the input, or up to a number of bytes.
pub(super) async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut max_bytes: u64,
    allowance: &ByteAllowance,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    while max_bytes > 0 {
        let size = buffer.len().min(usize::try_from(max_bytes).unwrap_or(usize::MAX));
        let count = from.read(&mut buffer[..size]).await?;
        if count == 0 {
            break;
        }
        allowance.spend(count)?;
        to.write_all(&buffer[..count]).await?;
        max_bytes -= count as u64;
    }
    Ok(())
}
