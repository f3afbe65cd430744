use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolrest_core::{ExecutionRoot, FolderHandle};
use toolrest_sandbox::{Limits, Mount, Source};

use super::{WORKSPACE, place};

fn frozen(ground: &ExecutionRoot) -> Vec<String> {
    let place = place(ground, None, &Limits::default()).unwrap();
    let Some(Mount::Folder { frozen, .. }) = place.mounts.first() else { panic!("{place:?}") };
    frozen.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn only_the_repositories_of_a_folder_that_others_use_are_kept_from_programs() {
    let path = PathBuf::from("/");
    let folder = FolderHandle { descriptor: Arc::new(File::open(&path).unwrap().into()), path };
    let read_only = vec![".git".into(), "sub/.git".into()];
    assert_eq!(frozen(&ExecutionRoot::Shared { folder: folder.clone(), read_only }), [".git", "sub/.git"]);
    assert!(frozen(&ExecutionRoot::Folder(folder)).is_empty());
}

#[test]
fn failures_do_not_name_folders_of_the_host() {
    let path = PathBuf::from("/usr");
    let folder = FolderHandle { descriptor: Arc::new(File::open(&path).unwrap().into()), path };
    let overlay = ExecutionRoot::Overlay { lower: folder.clone(), private: folder.clone() };
    for ground in
        [ExecutionRoot::Folder(folder.clone()), ExecutionRoot::Shared { folder, read_only: Vec::new() }, overlay]
    {
        let place = place(&ground, None, &Limits::default()).unwrap();
        let sources: Vec<&Source> = place
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
