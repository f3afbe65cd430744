//! `toolrest restore-backup`: restores a backup into a data folder that has no database.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use toolrest::settings::Settings;
use toolrest::store::check_database;

use super::archive::{BackupError, Checksum, DATABASE, FORMAT, MANIFEST, Manifest, SETTINGS, create_private, on, sync};

/// Restores a backup, and prints the path of the database.
pub(crate) fn run(settings: &Settings, from: &Path) -> Result<(), BackupError> {
    if settings.database.url.is_some() {
        return Err(BackupError::Postgres);
    }
    let manifest = read_manifest(from)?;
    let database = settings.database_file();
    let folder: &Path = &settings.server.data_dir;
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(on(folder))?;
    refuse_existing(&database)?;
    let copy = Copy::create(folder, &from.join(DATABASE))?;
    if Checksum::of(&copy.0)? != manifest.database {
        return Err(BackupError::Damaged(from.join(DATABASE)));
    }
    check_database(&copy.0)?;
    // A server may have been started meanwhile; its database is kept.
    refuse_existing(&database)?;
    renameat_with(CWD, &copy.0, CWD, &database, RenameFlags::NOREPLACE).map_err(|errno| match errno {
        rustix::io::Errno::EXIST => BackupError::DataExists(database.clone()),
        errno => on(&database)(errno.into()),
    })?;
    sync(folder)?;
    println!("{}", database.display());
    eprintln!("Restored the backup of {}, made by toolrest {}.", manifest.created_at, manifest.toolrest);
    let settings = from.join(SETTINGS);
    if settings.exists() {
        eprintln!("The settings file of that server is {}; start with --config, or copy it.", settings.display());
    }
    Ok(())
}

fn read_manifest(from: &Path) -> Result<Manifest, BackupError> {
    let path = from.join(MANIFEST);
    let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => BackupError::NotABackup(from.to_owned()),
        _ => on(&path)(error),
    })?;
    let manifest: Manifest =
        serde_json::from_str(&text).map_err(|error| BackupError::BadManifest(path.clone(), error))?;
    if manifest.format > FORMAT {
        return Err(BackupError::NewerFormat { found: manifest.format });
    }
    Ok(manifest)
}

/// Refuses a data folder with a database, or with the write-ahead log or journal of one, which SQLite would apply to
/// the restored database.
fn refuse_existing(database: &Path) -> Result<(), BackupError> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut path = database.as_os_str().to_owned();
        path.push(suffix);
        let path = PathBuf::from(path);
        match fs::symlink_metadata(&path) {
            Ok(_) => return Err(BackupError::DataExists(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(on(&path)(error)),
        }
    }
    Ok(())
}

/// A copy of the backup's database in the data folder; removed when dropped, unless it was renamed.
struct Copy(PathBuf);

impl Copy {
    fn create(folder: &Path, from: &Path) -> Result<Self, BackupError> {
        let path = folder.join(format!(".restore-{}.db", std::process::id()));
        let mut source = File::open(from).map_err(on(from))?;
        let mut file = create_private(&path)?;
        let copy = Self(path);
        io::copy(&mut source, &mut file).and_then(|_| file.sync_all()).map_err(on(&copy.0))?;
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // Fails if the copy was renamed, which is fine.
        let _ = fs::remove_file(&self.0);
    }
}
