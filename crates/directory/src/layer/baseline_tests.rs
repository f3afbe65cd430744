use std::fs;

use tempfile::TempDir;

use super::*;

#[test]
fn a_repository_and_many_packages_leave_room_for_other_folders() {
    let place = TempDir::new().unwrap();
    for number in 0..300 {
        for folder in [".git/objects", "packages"] {
            fs::create_dir_all(place.path().join(folder).join(number.to_string())).unwrap();
        }
    }
    let others: Vec<PathBuf> = (0..200).map(|number| Path::new("src/deep").join(number.to_string())).collect();
    for other in &others {
        fs::create_dir_all(place.path().join(other)).unwrap();
    }
    let noted = Root::open(place.path()).unwrap().dir_identities();
    assert!(others.iter().all(|other| noted.contains_key(other)), "{noted:?}");
    let in_one = |folder: &str| noted.keys().filter(|path| path.parent() == Some(Path::new(folder))).count();
    assert_eq!([".git", ".git/objects", "packages"].map(in_one), [1, 0, MAX_NOTED_IN_ONE]);
}
