//! Reads whole files or streams.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use crate::{ErrorKind, Hash, Kind, Metadata, Result, Root, error::PathContext, sys};

const CHUNK_BYTES: usize = 256 * 1024;

/// The content of a file, with its metadata when it was opened.
#[derive(Debug, Clone)]
pub struct Content {
    pub bytes: Vec<u8>,
    pub hash: Hash,
    pub metadata: Metadata,
}

/// A file open for reading, with random access.
#[derive(Debug)]
pub struct Reader {
    file: File,
    metadata: Metadata,
}

impl Root {
    /// Reads a whole file of at most `limit_bytes`.
    pub fn read(&self, path: &Path, limit_bytes: u64) -> Result<Content> {
        let Reader { mut file, metadata } = self.open_reader(path)?;
        let too_large = |size_bytes| ErrorKind::TooLarge { size_bytes, limit_bytes }.at(path);
        if metadata.size_bytes > limit_bytes {
            return Err(too_large(metadata.size_bytes));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.size_bytes).unwrap_or(0));
        // The file may grow while it is read. One byte beyond the limit is enough to detect that.
        let read = (&mut file).take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes);
        match read {
            Err(error) => Err(ErrorKind::Io(error).at(path)),
            Ok(count) if count as u64 > limit_bytes => Err(too_large(count as u64)),
            Ok(_) => Ok(Content { hash: Hash::of(&bytes), bytes, metadata }),
        }
    }

    /// Reads a whole file of at most `limit_bytes` without waiting for the disk, if its path and content are cached.
    ///
    /// `None` means only that [`Root::read`] must be used instead.
    pub fn read_cached(&self, path: &Path, limit_bytes: usize) -> Option<Content> {
        let file = self.open_cached(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let metadata = Metadata::from(sys::stat(&file).ok()?);
        let size = usize::try_from(metadata.size_bytes).ok().filter(|size| *size <= limit_bytes)?;
        if metadata.kind != Kind::File {
            return None;
        }
        // One extra byte detects the end. A shorter result means that the rest is not cached.
        let mut bytes = vec![0; size + 1];
        let count = sys::read_cached(&file, &mut bytes).ok().filter(|count| *count == size)?;
        bytes.truncate(count);
        Some(Content { hash: Hash::of(&bytes), bytes, metadata })
    }

    /// Opens a file for reading. FIFOs, sockets and devices are refused without blocking.
    pub fn open_reader(&self, path: &Path) -> Result<Reader> {
        let file = self.open_path(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let metadata = Metadata::from(sys::stat(&file).at(path)?);
        match metadata.kind {
            Kind::File => Ok(Reader { file: file.into(), metadata }),
            Kind::Folder => Err(ErrorKind::IsFolder.at(path)),
            Kind::Symlink | Kind::Other => Err(ErrorKind::Special.at(path)),
        }
    }
}

impl Reader {
    pub(crate) fn new(file: OwnedFd, metadata: Metadata) -> Self {
        Self { file: file.into(), metadata }
    }

    /// Returns the metadata from when the file was opened.
    pub fn metadata(&self) -> Metadata {
        self.metadata
    }

    /// Returns the descriptor, for callers that map or send the file.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Hashes the whole file in constant memory, independently of the read position.
    pub fn hash(&self) -> io::Result<Hash> {
        Ok(hash_of(&self.file)?)
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for Reader {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

impl From<Reader> for OwnedFd {
    fn from(reader: Reader) -> Self {
        reader.file.into()
    }
}

/// Hashes an open file from its start, independently of its position.
pub(crate) fn hash_of(file: impl AsFd) -> rustix::io::Result<Hash> {
    let mut hasher = Sha256::new();
    in_chunks(file, |_, chunk| {
        hasher.update(chunk);
        Ok(())
    })?;
    Ok(Hash(hasher.finalize().into()))
}

/// Reads an open file from its start in chunks, each with its offset.
pub(crate) fn in_chunks(
    file: impl AsFd,
    mut each: impl FnMut(u64, &[u8]) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let size = usize::try_from(sys::stat(&file)?.st_size).unwrap_or(CHUNK_BYTES);
    // One byte more than the size of a small file, so that its end is detected with the first read.
    let mut buffer = vec![0; (size + 1).min(CHUNK_BYTES)];
    let mut offset = 0;
    loop {
        let count = sys::read_at(&file, &mut buffer, offset)?;
        each(offset, &buffer[..count])?;
        if count < buffer.len() {
            return Ok(());
        }
        offset += count as u64;
    }
}
