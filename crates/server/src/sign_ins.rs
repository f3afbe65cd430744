//! The folder of the sign-ins that `toolrest login` stores, which no workspace may show.

use std::{env, io, path::PathBuf};
use toolrest_workspaces::GuardedPath;

/// Returns the folder in which the command line stores sign-ins, by the XDG base directory specification.
pub fn sign_ins_folder() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")))?;
    Some(config.join("toolrest"))
}

/// Returns the folder as one that no workspace may show. One that this user cannot reach needs no guard: no workspace can
/// show it either.
pub(crate) fn guarded() -> Option<GuardedPath> {
    let path = sign_ins_folder()?;
    match std::fs::symlink_metadata(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => None,
        _ => Some(GuardedPath {
            path,
            what: "the sign-ins of `toolrest login`",
            setting: "the variable XDG_CONFIG_HOME",
        }),
    }
}
