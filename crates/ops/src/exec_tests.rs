use std::path::PathBuf;

use toolrest_core::Ground;
use toolrest_sandbox::{Limits, Mount};

use super::place;

fn frozen(ground: &Ground) -> Vec<String> {
    let place = place(ground, None, &Limits::default());
    let Some(Mount::Folder { frozen, .. }) = place.mounts.first() else { panic!("{place:?}") };
    frozen.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn only_the_repository_of_a_folder_that_others_use_is_kept_from_programs() {
    let folder = PathBuf::from("/folder");
    assert_eq!(frozen(&Ground::Shared(folder.clone())), [".git"]);
    assert!(frozen(&Ground::Folder(folder)).is_empty());
}
