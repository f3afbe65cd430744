//! The tokens that `toolrest login` stored: one file that only its user can read, for all servers.
//!
//! A refresh token can be used once, so processes that refresh at the same time take turns by a lock file, and read the
//! file again when it is their turn.

use super::failure::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

const FILE: &str = "credentials.json";
const LOCK: &str = "credentials.lock";

/// What is stored.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Stored {
    /// The server of the last sign-in, which commands use if none is named.
    pub(super) current: Option<String>,
    /// The sign-ins by the address of the server.
    #[serde(default)]
    pub(super) servers: BTreeMap<String, SignIn>,
}

/// A sign-in to one server.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum SignIn {
    /// An agent key.
    Key {
        /// Its secret.
        key: String,
    },
    /// The session of a person.
    Person(PersonSession),
}

/// The session of a person, as the server answers a sign-in.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct PersonSession {
    /// The address of the account.
    pub(super) email: String,
    pub(super) access_token: String,
    /// Unix time in seconds.
    pub(super) access_expires: i64,
    /// None if the disk of the server was full.
    pub(super) refresh_token: Option<String>,
}

/// The folder of the stored sign-ins.
#[derive(Clone)]
pub(super) struct Credentials {
    folder: PathBuf,
}

impl Credentials {
    /// Finds the folder.
    pub(super) fn find() -> Outcome<Self> {
        let folder = toolrest::sign_ins_folder().ok_or_else(|| {
            Failure::Failed(
                "there is no folder for sign-ins: set HOME or XDG_CONFIG_HOME, or give TOOLREST_TOKEN".to_owned(),
            )
        })?;
        Ok(Self { folder })
    }

    fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Reads what is stored; nothing if there is no file. A file that others can read is refused.
    pub(super) fn read(&self) -> Outcome<Stored> {
        let path = self.file();
        let cannot =
            |error: &dyn std::fmt::Display| Failure::Failed(format!("cannot read {}: {error}", path.display()));
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stored::default()),
            Err(error) => return Err(cannot(&error)),
        };
        let mode = file.metadata().map_err(|error| cannot(&error))?.mode() & 0o777;
        if mode & 0o077 != 0 {
            let path = path.display();
            return Err(Failure::Failed(format!(
                "{path} has tokens, and its mode {mode:o} lets other users read or change it; sign in again after `rm {path}`, \
                 or use `chmod 600 {path}` if nobody else has read it"
            )));
        }
        let mut text = String::new();
        io::Read::read_to_string(&mut file, &mut text).map_err(|error| cannot(&error))?;
        // The message of the parser could quote a token.
        serde_json::from_str(&text)
            .map_err(|_| cannot(&"it is not what `toolrest login` writes; remove it and sign in again"))
    }

    /// Waits until no other process changes what is stored.
    pub(super) fn lock(&self) -> Outcome<Locked> {
        let folder = &self.folder;
        let cannot = || format!("cannot lock {}", folder.display());
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(Failure::io(cannot()))?;
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).truncate(false).mode(0o600).open(folder.join(LOCK));
        let lock = lock.map_err(Failure::io(cannot()))?;
        lock.lock().map_err(Failure::io(cannot()))?;
        Ok(Locked { credentials: self.clone(), _lock: lock })
    }
}

/// The stored sign-ins, which no other process changes until this is dropped.
pub(super) struct Locked {
    credentials: Credentials,
    _lock: File,
}

impl Locked {
    /// Reads what is stored, changes it, and stores it.
    pub(super) fn change(&self, change: impl FnOnce(&mut Stored)) -> Outcome {
        let mut stored = self.credentials.read()?;
        change(&mut stored);
        let mut text = serde_json::to_vec_pretty(&stored).map_err(|error| Failure::Failed(error.to_string()))?;
        text.push(b'\n');
        let path = self.credentials.file();
        replace(&self.credentials.folder, &path, &text).map_err(Failure::io(format!("cannot write {}", path.display())))
    }
}

/// Replaces a file so that it is never half written, and never readable by others.
fn replace(folder: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    let mut new = tempfile::Builder::new().prefix(".credentials-").tempfile_in(folder)?;
    // Temporary files have the mode 0600 already; this keeps it so, whatever the library does.
    new.as_file().set_permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600))?;
    new.write_all(text)?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}
