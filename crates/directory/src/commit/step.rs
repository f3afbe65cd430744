//! The steps of a commit, as stored in the journal: enough to complete or undo each one, however far it came.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use crate::{Hash, Identity};

/// A step. All paths are real paths beneath the root; `staged` and `aside` are temporary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Creates a folder. `before` is what was at the path during planning and is removed by an earlier step.
    MakeFolder { path: PathBuf, before: Option<Identity> },
    /// Renames to `aside`.
    Remove { path: PathBuf, aside: PathBuf },
    /// Renames. A replaced file is linked to `aside` first.
    Move { from: PathBuf, to: PathBuf, identity: Identity, aside: Option<PathBuf> },
    /// Links `staged` to a free path. As long as both names exist, they prove that the file is the staged one.
    Add { path: PathBuf, staged: PathBuf, hash: Hash },
    /// Links the old file to `aside` and renames `staged` over it.
    Replace { path: PathBuf, staged: PathBuf, aside: PathBuf, hash: Hash },
    /// Copies the old bytes to `aside` and writes the new ones in place.
    Rewrite { path: PathBuf, aside: PathBuf, old: Hash, mode: u32 },
}

impl Step {
    /// Returns the temporary names that may be left after the step.
    pub(super) fn leftovers(&self) -> impl Iterator<Item = &Path> {
        let temporary = match self {
            Self::MakeFolder { .. } => None,
            Self::Move { aside, .. } => aside.as_deref(),
            Self::Remove { aside, .. } | Self::Replace { aside, .. } | Self::Rewrite { aside, .. } => Some(&**aside),
            Self::Add { staged, .. } => Some(&**staged),
        };
        temporary.into_iter()
    }

    /// Returns all temporary names of the step.
    pub(super) fn temporaries(&self) -> impl Iterator<Item = &Path> {
        let staged = match self {
            Self::Replace { staged, .. } => Some(&**staged),
            _ => None,
        };
        staged.into_iter().chain(self.leftovers())
    }

    /// Returns the step with mapped paths.
    pub(super) fn map_paths(&self, to: impl Fn(&Path) -> PathBuf) -> Self {
        let mut step = self.clone();
        let paths: Vec<&mut PathBuf> = match &mut step {
            Self::MakeFolder { path, .. } => vec![path],
            Self::Remove { path, aside } | Self::Rewrite { path, aside, .. } => vec![path, aside],
            Self::Move { from, to, aside, .. } => [from, to].into_iter().chain(aside).collect(),
            Self::Add { path, staged, .. } => vec![path, staged],
            Self::Replace { path, staged, aside, .. } => vec![path, staged, aside],
        };
        for path in paths {
            *path = to(path);
        }
        step
    }

    /// Whether the step removes what is at a path, or a folder above it.
    pub(super) fn removes(&self, path: &Path) -> bool {
        matches!(self, Self::Remove { path: gone, .. } | Self::Move { from: gone, .. } if path.starts_with(gone))
    }

    /// Returns the folders in which the step changes names: those of temporary names first.
    pub(super) fn folders(&self) -> (Vec<&Path>, Vec<&Path>) {
        fn parent(path: &Path) -> &Path {
            path.parent().unwrap_or(Path::new(""))
        }
        match self {
            Self::MakeFolder { path, .. } => (vec![], vec![parent(path), path]),
            Self::Move { from, to, aside, .. } => {
                (aside.as_deref().map(parent).into_iter().collect(), vec![parent(from), parent(to)])
            }
            Self::Remove { path, aside } | Self::Rewrite { path, aside, .. } => {
                (vec![parent(aside)], vec![parent(path)])
            }
            Self::Add { path, staged, .. } | Self::Replace { path, staged, .. } => {
                (vec![parent(staged)], vec![parent(path)])
            }
        }
    }

    pub(super) fn encode(&self, out: &mut Encoder) {
        match self {
            Self::MakeFolder { path, before } => {
                out.byte(0);
                out.path(path);
                out.byte(u8::from(before.is_some()));
                out.identity(before.unwrap_or(Identity { device: 0, inode: 0 }));
            }
            Self::Remove { path, aside } => {
                out.byte(1);
                out.path(path);
                out.path(aside);
            }
            Self::Move { from, to, identity, aside } => {
                out.byte(2);
                out.path(from);
                out.path(to);
                out.identity(*identity);
                // An empty path means `None`, because no temporary name is empty.
                out.path(aside.as_deref().unwrap_or(Path::new("")));
            }
            Self::Add { path, staged, hash } => {
                out.byte(3);
                out.path(path);
                out.path(staged);
                out.bytes(&hash.0);
            }
            Self::Replace { path, staged, aside, hash } => {
                out.byte(4);
                out.path(path);
                out.path(staged);
                out.path(aside);
                out.bytes(&hash.0);
            }
            Self::Rewrite { path, aside, old, mode } => {
                out.byte(5);
                out.path(path);
                out.path(aside);
                out.bytes(&old.0);
                out.number(u64::from(*mode));
            }
        }
    }

    pub(super) fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        Some(match from.byte()? {
            0 => Self::MakeFolder { path: from.path()?, before: (from.byte()? != 0).then_some(from.identity()?) },
            1 => Self::Remove { path: from.path()?, aside: from.path()? },
            2 => Self::Move {
                from: from.path()?,
                to: from.path()?,
                identity: from.identity()?,
                aside: from.path().map(|aside| Some(aside).filter(|aside| !aside.as_os_str().is_empty()))?,
            },
            3 => Self::Add { path: from.path()?, staged: from.path()?, hash: from.hash()? },
            4 => Self::Replace { path: from.path()?, staged: from.path()?, aside: from.path()?, hash: from.hash()? },
            5 => Self::Rewrite {
                path: from.path()?,
                aside: from.path()?,
                old: from.hash()?,
                mode: u32::try_from(from.number()?).ok()?,
            },
            _ => return None,
        })
    }
}

/// Encodes numbers as little-endian, and bytes with their length.
pub(super) struct Encoder(pub(super) Vec<u8>);

impl Encoder {
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn identity(&mut self, identity: Identity) {
        self.number(identity.device);
        self.number(identity.inode);
    }

    pub(super) fn path(&mut self, path: &Path) {
        self.bytes(path.as_os_str().as_bytes());
    }
}

/// Decodes what [`Encoder`] wrote. Returns `None` if the data is too short.
pub(super) struct Decoder<'a>(pub(super) &'a [u8]);

impl<'a> Decoder<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    fn identity(&mut self) -> Option<Identity> {
        Some(Identity { device: self.number()?, inode: self.number()? })
    }

    pub(super) fn path(&mut self) -> Option<PathBuf> {
        self.bytes().map(|bytes| PathBuf::from(OsString::from_vec(bytes.to_vec())))
    }

    pub(super) fn hash(&mut self) -> Option<Hash> {
        self.bytes()?.try_into().ok().map(Hash)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}
