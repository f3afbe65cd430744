//! Temporary folders that are removed also if the test process is killed.

use tempfile::TempDir;

use crate::watchdog;

/// Makes a temporary folder, which is removed with the value or with the test process. `TMPDIR` chooses the disk.
pub fn temp_folder(purpose: &str) -> TempDir {
    let prefix = format!("toolrest-{purpose}-");
    let folder = tempfile::Builder::new().prefix(&prefix).tempdir().expect("a temporary folder");
    watchdog::remove_folder_at_end(folder.path());
    folder
}
