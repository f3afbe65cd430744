//! The folder that a backup is.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolrest::core::{ContentHash, ToolError};

/// Version of the format of backups.
pub(super) const FORMAT: u32 = 1;
/// The database.
pub(super) const DATABASE: &str = "toolrest.db";
/// The settings file of the server, if it had one.
pub(super) const SETTINGS: &str = "toolrest.toml";
/// What the backup holds.
pub(super) const MANIFEST: &str = "backup.json";

/// What a backup holds.
#[derive(Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// Version of the program that made it.
    pub(super) toolrest: String,
    pub(super) created_at: String,
    /// Version of the database's schema.
    pub(super) schema: usize,
    pub(super) database: Checksum,
}

/// What a file must be like to be whole.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Checksum {
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Checksum {
    /// Reads a file to its end.
    pub(super) fn of(path: &Path) -> Result<Self, BackupError> {
        let mut file = File::open(path).map_err(on(path))?;
        let (mut sha256, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
        loop {
            match file.read(&mut buffer).map_err(on(path))? {
                0 => break,
                read => {
                    sha256.update(&buffer[..read]);
                    bytes += read as u64;
                }
            }
        }
        Ok(Self { bytes, sha256: ContentHash(sha256.finalize().into()).to_string() })
    }
}

/// Why a backup could not be made or restored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error(
        "the data is in PostgreSQL, which is backed up and restored with its own tools, pg_dump and pg_restore; \
         docs/operations.md says how"
    )]
    Postgres,
    #[error("there is no database {0}; name the data folder of the server with --data-dir")]
    NoDatabase(PathBuf),
    #[error("{0} exists already; name another folder, or remove it first")]
    Exists(PathBuf),
    #[error("{0} is where another `toolrest backup` puts its files; wait for it, or name another folder")]
    UnderWay(PathBuf),
    #[error("{0} is not a folder that can be made: it needs a name, and the folder above it must exist")]
    BadName(PathBuf),
    #[error("{0} is not a backup: it has no {MANIFEST}")]
    NotABackup(PathBuf),
    #[error("{0} cannot be understood: {1}")]
    BadManifest(PathBuf, serde_json::Error),
    #[error("the backup has format {found}, newer than the {FORMAT} this toolrest knows; use the newer toolrest")]
    NewerFormat { found: u32 },
    #[error("{0} is damaged: it does not have the size and the checksum that the backup names")]
    Damaged(PathBuf),
    #[error(
        "{0} is there already: a restore never replaces a database. Stop the server, move its data folder away, and \
         restore into a new one"
    )]
    DataExists(PathBuf),
    #[error("{0}")]
    Database(#[from] ToolError),
    #[error("cannot use {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// Says which path a failure is about.
pub(super) fn on(path: &Path) -> impl Fn(io::Error) -> BackupError {
    move |source| BackupError::Io { path: path.to_owned(), source }
}

/// Makes a file that only the user may read; there must be none yet.
pub(super) fn create_private(path: &Path) -> Result<File, BackupError> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(on(path))
}

/// Waits until a file or folder is on disk.
pub(super) fn sync(path: &Path) -> Result<(), BackupError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(on(path))
}
