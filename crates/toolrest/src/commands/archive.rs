//! The files of a backup, and the errors of `toolrest backup` and `toolrest restore-backup`.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolrest::core::ContentHash;
use toolrest::store::StoreError;

/// Version of the format of backups.
pub(super) const FORMAT: u32 = 1;
/// The database.
pub(super) const DATABASE: &str = "toolrest.db";
/// The settings file of the server, if it had one.
pub(super) const SETTINGS: &str = "toolrest.toml";
/// The manifest.
pub(super) const MANIFEST: &str = "backup.json";

/// The description of a backup.
#[derive(Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// Version of the program that created the backup.
    pub(super) toolrest: String,
    pub(super) created_at: String,
    /// Version of the database's schema.
    pub(super) schema: usize,
    pub(super) database: Checksum,
}

/// Size and hash of a file.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Checksum {
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Checksum {
    /// Computes the checksum of a file.
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

/// Why a backup could not be created or restored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error(
        "the data is in PostgreSQL, which is backed up and restored with its own tools, pg_dump and pg_restore; \
         docs/operations.md says how"
    )]
    Postgres,
    #[error("there is no database {0}; give the data folder of the server with --data-dir")]
    NoDatabase(PathBuf),
    #[error("{0} exists already; name another folder, or remove it first")]
    Exists(PathBuf),
    #[error("{0} is in use by another `toolrest backup`; wait for it, or name another folder")]
    UnderWay(PathBuf),
    #[error("cannot create the folder {0}: it needs a name, and its parent folder must exist")]
    BadName(PathBuf),
    #[error("{0} is not a backup: it has no {MANIFEST}")]
    NotABackup(PathBuf),
    #[error("cannot read {0}: {1}")]
    BadManifest(PathBuf, serde_json::Error),
    #[error("the backup has format {found}, newer than the {FORMAT} this toolrest knows; use the newer toolrest")]
    NewerFormat { found: u32 },
    #[error("{0} is damaged: its size or checksum differs from the manifest")]
    Damaged(PathBuf),
    #[error(
        "{0} exists already: a restore never replaces a database. Stop the server, move its data folder away, and \
         restore into a new one"
    )]
    DataExists(PathBuf),
    #[error("{0}")]
    Database(#[from] StoreError),
    #[error("cannot use {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// Adds the path to an I/O error.
pub(super) fn on(path: &Path) -> impl Fn(io::Error) -> BackupError {
    move |source| BackupError::Io { path: path.to_owned(), source }
}

/// Creates a file that only its owner may read; fails if it exists.
pub(super) fn create_private(path: &Path) -> Result<File, BackupError> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(on(path))
}

/// Syncs a file or folder to disk.
pub(super) fn sync(path: &Path) -> Result<(), BackupError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(on(path))
}
