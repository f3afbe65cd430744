//! Compilers and interpreters of the host that programs may use, besides those in `/usr`.
//!
//! Most are in the user's home directory, which programs must not see. So only the folders of known tools are made visible,
//! and of other folders on the `PATH` those outside of the home directory.

use crate::runtime::StartError;
use crate::settings::Settings;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Component, Path, PathBuf},
};
use toolrest_ops::exec::Toolchains;

/// Maximum number of folders, because each is a mount of its own for every program.
const MAX_FOLDERS: usize = 32;

/// The folders that every program sees anyway.
const SYSTEM: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/snap"];

/// A tool that is installed in the home directory.
struct KnownTool {
    /// How folders on the `PATH` begin, below the home directory.
    begin: &'static str,
    /// Folders below the home directory that it needs, besides the one on the `PATH`.
    needs: &'static [&'static str],
    /// The variable that names its folder, and that folder below the home directory unless the variable is set.
    variable: Option<(&'static str, &'static str)>,
}

const KNOWN: [KnownTool; 16] = [
    KnownTool { begin: ".cargo/bin", needs: &[".rustup"], variable: Some(("RUSTUP_HOME", ".rustup")) },
    KnownTool { begin: ".rustup", needs: &[".rustup"], variable: Some(("RUSTUP_HOME", ".rustup")) },
    KnownTool { begin: ".pyenv", needs: &[".pyenv"], variable: Some(("PYENV_ROOT", ".pyenv")) },
    KnownTool { begin: ".rbenv", needs: &[".rbenv"], variable: Some(("RBENV_ROOT", ".rbenv")) },
    KnownTool { begin: ".nvm/versions", needs: &[".nvm/versions"], variable: None },
    KnownTool { begin: ".local/share/fnm", needs: &[".local/share/fnm"], variable: None },
    KnownTool { begin: ".volta", needs: &[".volta"], variable: Some(("VOLTA_HOME", ".volta")) },
    KnownTool { begin: ".bun/bin", needs: &[], variable: None },
    KnownTool { begin: ".deno/bin", needs: &[], variable: None },
    KnownTool { begin: ".sdkman/candidates", needs: &[".sdkman/candidates"], variable: None },
    KnownTool { begin: ".asdf", needs: &[".asdf"], variable: Some(("ASDF_DATA_DIR", ".asdf")) },
    KnownTool { begin: ".local/share/mise", needs: &[".local/share/mise"], variable: None },
    KnownTool { begin: ".ghcup/bin", needs: &[".ghcup"], variable: None },
    KnownTool { begin: ".dotnet", needs: &[".dotnet"], variable: Some(("DOTNET_ROOT", ".dotnet")) },
    KnownTool { begin: "sdk/go", needs: &["sdk"], variable: None },
    KnownTool {
        begin: ".local/bin",
        needs: &[".local/share/uv/python", ".local/share/uv/tools", ".local/share/pipx/venvs"],
        variable: None,
    },
];

/// Returns what programs may use by the settings: the listed folders and, with `run.host_toolchains`, those that the
/// server's own `PATH` shows.
pub(crate) fn of(settings: &Settings) -> Toolchains {
    let mut toolchains =
        Toolchains { folders: settings.run.read_only.clone(), path: settings.run.path.clone(), env: Vec::new() };
    if settings.run.host_toolchains {
        let Toolchains { folders, path, env } = found(settings, &|name| std::env::var_os(name));
        toolchains.folders.extend(folders);
        toolchains.path.extend(path);
        toolchains.env = env;
    }
    toolchains.folders = without_nested(toolchains.folders);
    toolchains
}

/// Refuses folders in the settings through which programs would see the server's data.
pub(crate) fn check(settings: &Settings) -> Result<(), StartError> {
    let data_dir = &settings.server.data_dir;
    let open = |path: &Path, source| StartError::Folder { path: path.display().to_string(), source };
    let real_data_dir = data_dir.canonicalize().map_err(|source| open(data_dir, source))?;
    for folder in &settings.run.read_only {
        let real = folder.canonicalize().map_err(|source| open(folder, source))?;
        if overlap(&real, &real_data_dir) {
            let (folder, data_dir) = (folder.display().to_string(), data_dir.display().to_string());
            return Err(StartError::ShowsDataDir { folder, data_dir });
        }
    }
    Ok(())
}

/// Returns the toolchains that the `PATH` shows.
pub fn found(settings: &Settings, variable: &dyn Fn(&str) -> Option<OsString>) -> Toolchains {
    let home = variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute() && home.parent().is_some());
    let data_dir = std::path::absolute(&settings.server.data_dir).unwrap_or_default();
    let may_show = |folder: &Path| {
        let is_whole_home = home.as_ref().is_some_and(|home| home.starts_with(folder));
        folder.is_dir() && !is_whole_home && !overlap(folder, &data_dir)
    };
    let mut found = Toolchains::default();
    let mut env = BTreeMap::new();
    for entry in std::env::split_paths(&variable("PATH").unwrap_or_default()) {
        let is_plain = entry.is_absolute() && !entry.components().any(|part| part == Component::ParentDir);
        let is_listed = found.path.contains(&entry);
        if !is_plain || is_listed || SYSTEM.iter().any(|system| entry.starts_with(system)) {
            continue;
        }
        let below_home = home.as_ref().and_then(|home| entry.strip_prefix(home).ok().zip(Some(home)));
        let mut named = None;
        let folders = match below_home {
            Some((below, home)) => {
                let text = below.to_string_lossy();
                let Some(tool) = KNOWN.iter().find(|tool| text.starts_with(tool.begin)) else { continue };
                let place = |default: &str| home.join(default).into_os_string();
                named = tool.variable.map(|(name, default)| (name, variable(name).unwrap_or_else(|| place(default))));
                let moved = named.iter().map(|(_, value)| PathBuf::from(value));
                let needs = tool.needs.iter().map(|folder| home.join(folder));
                needs.chain(moved).chain([entry.clone()]).collect()
            }
            // Programs in `bin` need the folders beside it.
            None if entry.ends_with("bin") => vec![entry.parent().unwrap_or(&entry).to_owned()],
            None => vec![entry.clone()],
        };
        let folders: Vec<PathBuf> = folders.into_iter().filter(|folder| may_show(folder)).collect();
        if folders.iter().any(|folder| entry.starts_with(folder)) {
            env.extend(named.map(|(name, value)| (name.to_owned(), value)));
            found.folders.extend(folders);
            found.path.push(entry);
        }
    }
    found.folders = without_nested(found.folders);
    found.env = env.into_iter().collect();
    found
}

/// Whether one of the paths is at or below the other.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Removes folders that are below others, and those over the maximum.
fn without_nested(mut folders: Vec<PathBuf>) -> Vec<PathBuf> {
    folders.sort();
    folders.dedup_by(|folder, above| folder.starts_with(above));
    folders.truncate(MAX_FOLDERS);
    folders
}

#[cfg(test)]
#[path = "toolchains_tests.rs"]
mod tests;
