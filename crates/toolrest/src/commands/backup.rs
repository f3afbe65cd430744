//! `toolrest backup`: copies the embedded database while servers use it.

use std::{
    fs::{self, DirBuilder, File},
    io::Write,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use toolrest::core::now;
use toolrest::settings::Settings;
use toolrest::store::{check_database, copy_database};

use super::archive::{BackupError, Checksum, DATABASE, FORMAT, MANIFEST, Manifest, SETTINGS, create_private, on, sync};

/// Creates a backup in a new folder, and prints its path.
pub(crate) fn run(settings: &Settings, config: Option<&(PathBuf, String)>, to: &Path) -> Result<(), BackupError> {
    if settings.database.url.is_some() {
        return Err(BackupError::Postgres);
    }
    let database = settings.database_file();
    if !database.exists() {
        return Err(BackupError::NoDatabase(database));
    }
    let to = std::path::absolute(to).map_err(on(to))?;
    if fs::symlink_metadata(&to).is_ok() {
        return Err(BackupError::Exists(to));
    }
    let partial = PartialBackup::create(&to)?;
    let copy = partial.folder.join(DATABASE);
    // Created before SQLite does it, with permissions for the owner only.
    create_private(&copy)?;
    copy_database(&database, &copy)?;
    let schema = check_database(&copy)?;
    sync(&copy)?;
    if let Some((_, text)) = config {
        partial.write(SETTINGS, text.as_bytes())?;
    }
    let manifest = Manifest {
        format: FORMAT,
        toolrest: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: now().to_string(),
        schema,
        database: Checksum::of(&copy)?,
    };
    let bytes = manifest.database.bytes;
    let mut text = serde_json::to_vec_pretty(&manifest).map_err(|error| on(&copy)(error.into()))?;
    text.push(b'\n');
    partial.write(MANIFEST, &text)?;
    partial.finish(&to)?;
    println!("{}", to.display());
    eprintln!(
        "The backup has {bytes} bytes. It contains the secret that signs tokens, and password hashes: protect it like the server."
    );
    Ok(())
}

/// A backup in progress, in a folder `NAME.partial`. It is renamed when it is complete, so there is never half a backup.
struct PartialBackup {
    folder: PathBuf,
    parent: PathBuf,
    /// Locked while the backup is in progress, which distinguishes it from the rest of a killed one.
    _lock: File,
    is_finished: bool,
}

impl PartialBackup {
    fn create(to: &Path) -> Result<Self, BackupError> {
        let bad_name = || BackupError::BadName(to.to_owned());
        let parent = to.parent().filter(|parent| parent.is_dir()).ok_or_else(bad_name)?.to_owned();
        let mut name = to.file_name().ok_or_else(bad_name)?.to_owned();
        name.push(".partial");
        let folder = parent.join(name);
        let made = DirBuilder::new().mode(0o700).create(&folder);
        if let Err(error) = made
            && error.kind() != std::io::ErrorKind::AlreadyExists
        {
            return Err(on(&folder)(error));
        }
        let lock = File::open(&folder).map_err(on(&folder))?;
        lock.try_lock().map_err(|_| BackupError::UnderWay(folder.clone()))?;
        // Removes the files of a killed backup, and only those: the folder may belong to somebody else.
        for name in [DATABASE, "toolrest.db-journal", SETTINGS, MANIFEST] {
            let path = folder.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(on(&path)(error)),
                _ => {}
            }
        }
        if fs::read_dir(&folder).map_err(on(&folder))?.next().is_some() {
            return Err(BackupError::Exists(folder));
        }
        Ok(Self { folder, parent, _lock: lock, is_finished: false })
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
        let path = self.folder.join(name);
        let mut file = create_private(&path)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(on(&path))
    }

    /// Renames the backup to its final name.
    fn finish(mut self, to: &Path) -> Result<(), BackupError> {
        sync(&self.folder)?;
        renameat_with(CWD, &self.folder, CWD, to, RenameFlags::NOREPLACE).map_err(|errno| match errno {
            rustix::io::Errno::EXIST => BackupError::Exists(to.to_owned()),
            errno => on(to)(errno.into()),
        })?;
        self.is_finished = true;
        sync(&self.parent)
    }
}

impl Drop for PartialBackup {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}
