use std::{fs::File, path::PathBuf, sync::Arc};

use toolrest_core::{Ground, HeldFolder};
use toolrest_sandbox::{Limits, Mount};

use super::place;

fn frozen(ground: &Ground) -> Vec<String> {
    let place = place(ground, None, &Limits::default()).unwrap();
    let Some(Mount::Folder { frozen, .. }) = place.mounts.first() else { panic!("{place:?}") };
    frozen.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn only_the_repository_of_a_folder_that_others_use_is_kept_from_programs() {
    let path = PathBuf::from("/");
    let folder = HeldFolder { descriptor: Arc::new(File::open(&path).unwrap().into()), path };
    assert_eq!(frozen(&Ground::Shared(folder.clone())), [".git"]);
    assert!(frozen(&Ground::Folder(folder)).is_empty());
}
