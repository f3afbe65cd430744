//! The Python environment of the data tools, which `toolrest setup python` makes.

use crate::settings::Settings;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where programs find it. It is made to be mounted there, wherever it lies.
pub use toolrest_ops::exec::PYTHON as MOUNTED_AT;

/// The file that is written last, with everything that the environment was made of.
pub const STAMP: &str = "toolrest.stamp";

/// Where the environment of a server lies.
pub fn folder(settings: &Settings) -> PathBuf {
    settings.run.python_dir.clone().unwrap_or_else(|| settings.server.data_dir.join("python"))
}

/// Whether there is an environment that was made to its end, for the Python that the system still has.
pub fn is_complete(folder: &Path) -> bool {
    folder.join(STAMP).is_file() && site_packages(folder).is_some_and(|packages| packages.is_dir())
}

/// The packages that the interpreter of the environment looks for. They lie in a folder with its version in the name,
/// so that another Python would find none.
pub fn site_packages(folder: &Path) -> Option<PathBuf> {
    let interpreter = fs::canonicalize(folder.join("bin/python3")).ok()?;
    Some(folder.join("lib").join(interpreter.file_name()?).join("site-packages"))
}

#[cfg(test)]
#[path = "python_tests.rs"]
mod python_tests;
