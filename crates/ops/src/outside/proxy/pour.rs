//! Passing bytes on, within what is allowed in all.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const CHUNK_BYTES: usize = 16 << 10;

/// How many bytes may still go through.
pub(super) struct Budget {
    left: AtomicU64,
}

impl Budget {
    pub(super) const fn new(bytes: u64) -> Self {
        Self { left: AtomicU64::new(bytes) }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Takes bytes away; an error, for this and all later ones, where there are not so many.
    pub(super) fn spend(&self, bytes: usize) -> io::Result<()> {
        let spent = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes as u64));
        if spent.is_err() {
            self.left.store(0, Ordering::Relaxed);
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        Ok(())
    }
}

/// Passes on what comes, to its end or so many bytes.
pub(super) async fn pour(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut most: u64,
    budget: &Budget,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    while most > 0 {
        let room = buffer.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        let count = from.read(&mut buffer[..room]).await?;
        if count == 0 {
            break;
        }
        budget.spend(count)?;
        to.write_all(&buffer[..count]).await?;
        most -= count as u64;
    }
    Ok(())
}
