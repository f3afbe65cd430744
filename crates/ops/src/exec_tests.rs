use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolrest_core::{ExecutionRoot, FolderHandle};
use toolrest_sandbox::{Limits, Mount, Source};

use super::{WORKSPACE, cell_spec};

fn frozen(root: &ExecutionRoot) -> Vec<String> {
    let spec = cell_spec(root, None, &Limits::default()).unwrap();
    let Some(Mount::Folder { frozen, .. }) = spec.mounts.first() else { panic!("{spec:?}") };
    frozen.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn only_repositories_of_shared_folders_are_read_only() {
    let path = PathBuf::from("/");
    let folder = FolderHandle { descriptor: Arc::new(File::open(&path).unwrap().into()), path };
    let read_only = vec![".git".into(), "sub/.git".into()];
    assert_eq!(frozen(&ExecutionRoot::Shared { folder: folder.clone(), read_only }), [".git", "sub/.git"]);
    assert!(frozen(&ExecutionRoot::Folder(folder)).is_empty());
}

#[test]
fn errors_do_not_contain_paths_of_the_host() {
    let path = PathBuf::from("/usr");
    let folder = FolderHandle { descriptor: Arc::new(File::open(&path).unwrap().into()), path };
    let overlay = ExecutionRoot::Overlay { lower: folder.clone(), private: folder.clone() };
    for root in
        [ExecutionRoot::Folder(folder.clone()), ExecutionRoot::Shared { folder, read_only: Vec::new() }, overlay]
    {
        let spec = cell_spec(&root, None, &Limits::default()).unwrap();
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
