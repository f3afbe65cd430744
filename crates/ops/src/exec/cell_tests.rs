use std::{
    ffi::OsStr,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolrest_core::{ExecutionRoot, FolderHandle};
use toolrest_sandbox::{Access, CellSpec, Limits, Mount, Source};

use super::{CellContents, HOME, Toolchains, WORKSPACE, cell_spec, path_in_cell};

fn handle(path: &str) -> FolderHandle {
    FolderHandle { descriptor: Arc::new(File::open("/usr").unwrap().into()), path: path.into() }
}

fn spec_of(root: &ExecutionRoot) -> CellSpec {
    let contents = CellContents { root, python: None, toolchains: &Toolchains::default(), home: None };
    cell_spec(&contents, &Limits::default()).unwrap()
}

fn frozen(root: &ExecutionRoot) -> Vec<String> {
    let spec = spec_of(root);
    let Some(Mount::Folder { frozen, .. }) = spec.mounts.first() else { panic!("{spec:?}") };
    frozen.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

fn variable<'a>(spec: &'a CellSpec, name: &str) -> &'a OsStr {
    spec.env.iter().find(|(other, _)| other == name).map_or(OsStr::new(""), |(_, value)| value)
}

#[test]
fn only_repositories_of_shared_folders_are_read_only() {
    let read_only = vec![".git".into(), "sub/.git".into()];
    assert_eq!(frozen(&ExecutionRoot::Shared { folder: handle("/srv/a"), read_only }), [".git", "sub/.git"]);
    assert!(frozen(&ExecutionRoot::Folder(handle("/srv/a"))).is_empty());
}

#[test]
fn errors_do_not_contain_paths_of_the_server() {
    let folder = handle("/srv/a");
    let overlay = ExecutionRoot::Overlay { lower: folder.clone(), private: folder.clone() };
    for root in
        [ExecutionRoot::Folder(folder.clone()), ExecutionRoot::Shared { folder, read_only: Vec::new() }, overlay]
    {
        let spec = spec_of(&root);
        let sources: Vec<&Source> = spec
            .mounts
            .iter()
            .flat_map(|mount| match mount {
                Mount::Folder { source, .. } => vec![source],
                Mount::Overlay { lower, private, .. } => lower.iter().chain([private]).collect(),
            })
            .collect();
        assert!(!sources.is_empty() && sources.iter().all(|source| source.label() == Path::new(WORKSPACE)));
    }
}

#[test]
fn a_folder_is_at_its_own_path_unless_a_cell_has_something_there() {
    for own in ["/home/ada/project", "/root/x", "/tmp/x", "/opt/a/b", "/srv/a", "/home/sandbox2"] {
        assert_eq!(path_in_cell(Path::new(own)), Path::new(own));
    }
    let covering = [
        "/",
        "/home",
        "/opt",
        "/srv",
        "/usr/src/x",
        "/etc/x",
        "/dev/shm/x",
        "/workspace/x",
        "/home/sandbox",
        "/home/sandbox/x",
        "/opt/toolrest",
        "/srv/a b",
        "/srv/a:b/c",
        "/srv/$x",
        "/opt/toolrest/python/lib",
    ];
    for other in covering {
        assert_eq!(path_in_cell(Path::new(other)), Path::new(WORKSPACE), "{other}");
    }
}

#[test]
fn workspace_is_a_link_to_the_folder() {
    let spec = spec_of(&ExecutionRoot::Shared { folder: handle("/srv/a"), read_only: Vec::new() });
    assert_eq!(spec.cwd, Path::new("/srv/a"));
    let links: Vec<_> = spec.links.iter().map(|link| (link.path.as_path(), link.target.as_path())).collect();
    assert_eq!(links, [(Path::new(WORKSPACE), Path::new("/srv/a"))]);
    assert!(spec_of(&ExecutionRoot::Folder(handle("/srv/a"))).links.is_empty());
}

#[test]
fn toolchains_are_read_only_and_before_the_system_on_the_path() {
    let root = ExecutionRoot::Folder(handle("/srv/a"));
    let folders = ["/var", "/usr/local/go"].map(PathBuf::from).to_vec();
    let path = vec!["/var/bin".into(), "/a:b".into()];
    let env = vec![("RUSTUP_HOME".into(), "/var/rustup".into())];
    let toolchains = Toolchains { folders, path, env };
    let home = handle("/data/home");
    let contents = CellContents { root: &root, python: None, toolchains: &toolchains, home: Some(&home) };
    let spec = cell_spec(&contents, &Limits::default()).unwrap();
    let mounts = spec.mounts.iter().filter_map(|mount| match mount {
        Mount::Folder { target, access, .. } => Some((target.to_str().unwrap(), *access)),
        Mount::Overlay { .. } => None,
    });
    let mounts: Vec<_> = mounts.collect();
    assert_eq!(mounts, [("/var", Access::ReadOnly), (WORKSPACE, Access::ReadWrite), (HOME, Access::ReadWrite)]);
    assert_eq!(variable(&spec, "RUSTUP_HOME"), "/var/rustup");
    assert_eq!(variable(&spec, "HOME"), HOME);
    let path = variable(&spec, "PATH").to_str().unwrap();
    assert!(path.starts_with("/var/bin:/usr/local/bin:/usr/bin:/bin:/home/sandbox/"), "{path}");
}
