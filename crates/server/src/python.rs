//! The Python environment of the data tools. `toolrest setup python` creates it.

use crate::settings::Settings;
use std::path::PathBuf;

/// The path at which the sandbox mounts the environment, wherever its folder is.
pub use toolrest_ops::exec::PYTHON as MOUNTED_AT;
pub use toolrest_ops::exec::python::{STAMP, is_complete, lock_path, site_packages};

/// Returns the folder of a server's environment.
pub fn folder(settings: &Settings) -> PathBuf {
    settings.run.python_dir.clone().unwrap_or_else(|| settings.server.data_dir.join("python"))
}
