//! What a program sees: the workspace's files, its home directory, and compilers and interpreters of the host.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolrest_core::{ExecutionRoot, FolderHandle};
use toolrest_sandbox::{Access, CellSpec, Limits, Link, Mount, Result, Source};

/// The path at which a program sees the workspace's files. It is also its working directory.
///
/// A workspace that is a folder is at its own path, so that paths in build results mean the same inside and outside of the
/// sandbox; this is a link to it then.
pub const WORKSPACE: &str = toolrest_core::WORKSPACE_MOUNT;
/// The path at which a program sees the Python environment with the data libraries.
pub const PYTHON: &str = "/opt/toolrest/python";
/// The path at which a program sees the home directory that stays between programs.
const HOME: &str = "/home/sandbox";
/// The home directory of programs without one that stays.
const TEMPORARY_HOME: &str = "/tmp";

/// The system's folders of programs.
const SYSTEM_PATH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];
/// The folders of programs in the home directory, behind the system's, so that they cannot replace its programs.
const HOME_PATH: [&str; 4] = [".local/bin", ".cargo/bin", "go/bin", "bin"];

/// The folders at the root of a cell, at or below which no folder of the host is mounted.
const CELL_FOLDERS: [&str; 12] =
    ["/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr", WORKSPACE];
/// Other mounts of a cell, which a folder of the host must neither contain nor be in.
const CELL_MOUNTS: [&str; 2] = [PYTHON, HOME];

/// Compilers and interpreters of the host that are outside of `/usr`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolchains {
    /// Folders that programs see at the same path, read-only.
    pub folders: Vec<PathBuf>,
    /// Folders of programs, before the system's.
    pub path: Vec<PathBuf>,
    /// Variables that the tools need, such as `RUSTUP_HOME`.
    pub env: Vec<(String, OsString)>,
}

/// What a program sees besides the system.
pub(super) struct CellContents<'a> {
    pub(super) root: &'a ExecutionRoot,
    /// The folder of the Python environment with the data libraries.
    pub(super) python: Option<&'a Path>,
    pub(super) toolchains: &'a Toolchains,
    /// The home directory that stays between programs.
    pub(super) home: Option<&'a FolderHandle>,
}

/// Describes the cell of a program.
pub(super) fn cell_spec(contents: &CellContents<'_>, limits: &Limits) -> Result<CellSpec> {
    let CellContents { root, python, toolchains, home } = contents;
    let mut spec = CellSpec::on(workspace_mount(root)?);
    if spec.cwd != Path::new(WORKSPACE) {
        spec.links.push(Link { path: WORKSPACE.into(), target: spec.cwd.clone() });
    }
    // The path is the operator's. It is opened each time, because the folder can be replaced.
    let read_only = |folder: &Path, target: &Path| {
        let source = Source::open(folder)?;
        Ok(Mount::Folder { source, target: target.to_owned(), access: Access::ReadOnly, frozen: Vec::new() })
    };
    // They come first, because a workspace may be below one of them.
    let folders = toolchains.folders.iter().filter(|folder| !is_of_cell(folder));
    let folders = folders.map(|folder| read_only(folder, folder)).collect::<Result<Vec<_>>>()?;
    spec.mounts.splice(..0, folders);
    if let Some(python) = python {
        spec.mounts.push(read_only(python, Path::new(PYTHON))?);
    }
    if let Some(home) = home {
        let (source, access) = (Source::from_descriptor(Arc::clone(&home.descriptor), HOME)?, Access::ReadWrite);
        spec.mounts.push(Mount::Folder { source, target: HOME.into(), access, frozen: Vec::new() });
    }
    let home = if home.is_some() { HOME } else { TEMPORARY_HOME };
    for (name, value) in &toolchains.env {
        spec = spec.env(name, value);
    }
    let spec = spec
        // Files in the home directory do not belong to the workspace.
        .env("HOME", home)
        .env("PATH", path_variable(toolchains, home))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // Without buffering, the output of a killed program is complete.
        .env("PYTHONUNBUFFERED", "1")
        .env("MPLBACKEND", "Agg")
        // Not every git looks there by itself.
        .env("GIT_CONFIG_SYSTEM", "/etc/gitconfig")
        .limits(limits.clone());
    Ok(spec)
}

fn workspace_mount(root: &ExecutionRoot) -> Result<Mount> {
    Ok(match root {
        ExecutionRoot::Folder(folder) => Mount::Folder {
            source: source(folder)?,
            target: WORKSPACE.into(),
            access: Access::ReadWrite,
            frozen: Vec::new(),
        },
        ExecutionRoot::Shared { folder, read_only } => Mount::Folder {
            source: source(folder)?,
            target: path_in_cell(&folder.path),
            access: Access::ReadWrite,
            frozen: read_only.iter().map(|path| path.clone().into_os_string()).collect(),
        },
        ExecutionRoot::Overlay { lower, private } => {
            Mount::Overlay { lower: vec![source(lower)?], private: source(private)?, target: path_in_cell(&lower.path) }
        }
    })
}

/// Converts a folder for the sandbox. Errors name it as programs see it, because callers read them.
fn source(folder: &FolderHandle) -> Result<Source> {
    Source::from_descriptor(Arc::clone(&folder.descriptor), WORKSPACE)
}

/// Returns the path at which programs see a folder of the host: its own, unless it would cover what a cell has there, or has
/// characters that command lines and lists of paths need to quote.
fn path_in_cell(folder: &Path) -> PathBuf {
    let is_mounted = CELL_MOUNTS.iter().any(|mount| Path::new(mount).starts_with(folder) || folder.starts_with(mount));
    let is_top = folder.parent().is_none_or(|parent| parent.parent().is_none());
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+@".contains(byte) || !byte.is_ascii();
    let needs_quotes = !folder.as_os_str().as_encoded_bytes().iter().all(is_plain);
    if is_top || needs_quotes || is_of_cell(folder) || is_mounted {
        return WORKSPACE.into();
    }
    folder.to_owned()
}

/// Whether a path is at or below a folder that every cell has.
fn is_of_cell(path: &Path) -> bool {
    CELL_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

fn path_variable(toolchains: &Toolchains, home: &str) -> OsString {
    let of_home = HOME_PATH.map(|folder| Path::new(home).join(folder));
    let system = SYSTEM_PATH.map(PathBuf::from);
    // Folders whose names contain a colon cannot be in the list.
    let all = toolchains.path.iter().chain(&system).chain(&of_home);
    let listable = all.filter(|folder| !folder.as_os_str().as_encoded_bytes().contains(&b':'));
    std::env::join_paths(listable).unwrap_or_default()
}

#[cfg(test)]
#[path = "cell_tests.rs"]
mod tests;
