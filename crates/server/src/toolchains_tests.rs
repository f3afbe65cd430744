use super::found;
use crate::settings::Settings;
use std::{ffi::OsString, fs, path::Path};
use tempfile::TempDir;
use toolrest_ops::exec::Toolchains;

/// Creates a home directory with the folders, and finds the toolchains with the entries of `PATH`, which are relative to it.
fn found_in(folders: &[&str], path: &[&str]) -> (TempDir, Toolchains) {
    let top = tempfile::tempdir().unwrap();
    let home = top.path().join("home/ada");
    for folder in folders {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    let path = std::env::join_paths(path.iter().map(|entry| home.join(entry))).unwrap();
    let mut settings = Settings::default();
    settings.server.data_dir = top.path().join("data");
    let variable = |name: &str| match name {
        "HOME" => Some(OsString::from(&home)),
        "PATH" => Some(path.clone()),
        _ => None,
    };
    let found = found(&settings, &variable);
    (top, found)
}

fn relative(top: &Path, folders: &[std::path::PathBuf]) -> Vec<String> {
    folders.iter().map(|folder| folder.strip_prefix(top).unwrap_or(folder).display().to_string()).collect()
}

#[test]
fn tools_in_the_home_directory_are_found_with_what_they_need() {
    let (top, found) = found_in(
        &[".cargo/bin", ".cargo/registry", ".rustup/toolchains", ".pyenv/shims", ".nvm/versions/node/v22/bin"],
        &[".cargo/bin", ".pyenv/shims", ".nvm/versions/node/v22/bin", "/usr/bin", "/bin"],
    );
    let folders = ["home/ada/.cargo/bin", "home/ada/.nvm/versions", "home/ada/.pyenv", "home/ada/.rustup"];
    assert_eq!(relative(top.path(), &found.folders), folders);
    let path = ["home/ada/.cargo/bin", "home/ada/.pyenv/shims", "home/ada/.nvm/versions/node/v22/bin"];
    assert_eq!(relative(top.path(), &found.path), path);
    let names: Vec<&str> = found.env.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["PYENV_ROOT", "RUSTUP_HOME"]);
}

#[test]
fn the_home_directory_and_unknown_folders_in_it_are_not_shown() {
    let (_, found) = found_in(
        &["bin", "scripts", ".ssh", ".cargo"],
        &[".", "bin", "scripts", ".ssh", "..", "../..", "", ".cargo/bin", "missing/bin"],
    );
    assert_eq!(found, Toolchains::default());
}

#[test]
fn folders_outside_of_the_home_directory_are_shown_without_their_bin() {
    let (top, found) = found_in(&["../../opt/node/bin", "../../opt/single"], &["x"]);
    assert_eq!(found, Toolchains::default());
    let opt = top.path().join("opt");
    let path = std::env::join_paths([opt.join("node/bin"), opt.join("single"), opt.join("none/bin")]).unwrap();
    let mut settings = Settings::default();
    settings.server.data_dir = top.path().join("data");
    let variable = |name: &str| (name == "PATH").then(|| path.clone());
    let found = super::found(&settings, &variable);
    assert_eq!(relative(top.path(), &found.folders), ["opt/node", "opt/single"]);
    settings.server.data_dir = opt.join("node/data");
    let found = super::found(&settings, &variable);
    assert_eq!(relative(top.path(), &found.folders), ["opt/single"]);
}
