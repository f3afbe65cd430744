//! Reading files whole or as a stream.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use crate::{ErrorKind, Hash, Kind, Metadata, Result, Root, error::At, sys};

const CHUNK_BYTES: usize = 256 * 1024;

/// The bytes of a file with what was known of it when it was opened.
#[derive(Debug, Clone)]
pub struct Content {
    pub bytes: Vec<u8>,
    pub hash: Hash,
    pub metadata: Metadata,
}

/// A file open for reading, from any place in it.
#[derive(Debug)]
pub struct Reader {
    file: File,
    metadata: Metadata,
}

impl Root {
    /// Reads a whole file that has at most `limit_bytes`.
    pub fn read(&self, path: &Path, limit_bytes: u64) -> Result<Content> {
        let Reader { mut file, metadata } = self.open_reader(path)?;
        let too_large = |size_bytes| ErrorKind::TooLarge { size_bytes, limit_bytes }.at(path);
        if metadata.size_bytes > limit_bytes {
            return Err(too_large(metadata.size_bytes));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.size_bytes).unwrap_or(0));
        // The file may grow while it is read: one byte more than the limit is enough to know.
        let read = (&mut file).take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes);
        match read {
            Err(error) => Err(ErrorKind::Io(error).at(path)),
            Ok(count) if count as u64 > limit_bytes => Err(too_large(count as u64)),
            Ok(_) => Ok(Content { hash: Hash::of(&bytes), bytes, metadata }),
        }
    }

    /// Reads a whole file of at most `limit_bytes` if that takes no waiting: if its path and its content are in memory.
    ///
    /// None says nothing about the file but that [`Root::read`] is to be asked.
    pub fn read_cached(&self, path: &Path, limit_bytes: usize) -> Option<Content> {
        let file = self.open_cached(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let metadata = Metadata::from(sys::stat(&file).ok()?);
        let size = usize::try_from(metadata.size_bytes).ok().filter(|size| *size <= limit_bytes)?;
        if metadata.kind != Kind::File {
            return None;
        }
        // One byte more, to see the end. Fewer bytes than the file has: the rest is not in memory.
        let mut bytes = vec![0; size + 1];
        let count = sys::read_cached(&file, &mut bytes).ok().filter(|count| *count == size)?;
        bytes.truncate(count);
        Some(Content { hash: Hash::of(&bytes), bytes, metadata })
    }

    /// Opens a file for reading piece by piece. FIFOs, sockets and devices are refused without waiting for them.
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

    /// What was known of the file when it was opened.
    pub fn metadata(&self) -> Metadata {
        self.metadata
    }

    /// Gives up the descriptor, for callers that map or send the file.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Hashes the whole file, whatever was read of it, in constant memory.
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

/// Hashes an open file from its beginning, whatever its position.
pub(crate) fn hash_of(file: impl AsFd) -> rustix::io::Result<Hash> {
    let mut hasher = Sha256::new();
    in_chunks(file, |_, chunk| {
        hasher.update(chunk);
        Ok(())
    })?;
    Ok(Hash(hasher.finalize().into()))
}

/// Reads an open file from its beginning, chunk by chunk, each with its offset.
pub(crate) fn in_chunks(
    file: impl AsFd,
    mut each: impl FnMut(u64, &[u8]) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let size = usize::try_from(sys::stat(&file)?.st_size).unwrap_or(CHUNK_BYTES);
    // One byte more than a small file has, so that its end is seen at the first read.
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
