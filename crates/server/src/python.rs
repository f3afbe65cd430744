//! The Python environment of the data tools. `toolrest setup python` creates it.

use crate::settings::Settings;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The path at which the sandbox mounts the environment, wherever its folder is.
pub use toolrest_ops::exec::PYTHON as MOUNTED_AT;

/// The file that marks a complete environment. It is written last, and holds what the environment was made from.
pub const STAMP: &str = "toolrest.stamp";

/// Returns the folder of a server's environment.
pub fn folder(settings: &Settings) -> PathBuf {
    settings.run.python_dir.clone().unwrap_or_else(|| settings.server.data_dir.join("python"))
}

/// Whether the folder has a complete environment for the Python version that the system has now.
pub fn is_complete(folder: &Path) -> bool {
    folder.join(STAMP).is_file() && site_packages(folder).is_some_and(|packages| packages.is_dir())
}

/// Returns the folder of packages that the environment's interpreter uses. Its name contains the Python version, so
/// another version finds no packages.
pub fn site_packages(folder: &Path) -> Option<PathBuf> {
    let interpreter = fs::canonicalize(folder.join("bin/python3")).ok()?;
    Some(folder.join("lib").join(interpreter.file_name()?).join("site-packages"))
}

#[cfg(test)]
#[path = "python_tests.rs"]
mod python_tests;
