use super::*;

/// A disk on `/`, one folder of it bound elsewhere, a folder above the data bound, and another disk.
const TABLE: &str = "\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 8:1 /var/lib/toolrest/checkouts /srv/check\\040outs rw,relatime - ext4 /dev/sda1 rw
31 21 8:1 /var/lib /srv/libraries rw,relatime - ext4 /dev/sda1 rw
32 21 8:2 / /home rw,relatime - ext4 /dev/sda2 rw
";

fn seen() -> Vec<PathBuf> {
    shown_at(Path::new("/var/lib/toolrest"), 21, &mounts(TABLE).unwrap())
}

#[test]
fn bind_mounts_of_a_folder_and_of_its_parts_are_found() {
    let seen = seen();
    for path in ["/var/lib/toolrest", "/srv/check outs", "/srv/libraries/toolrest"] {
        assert!(seen.contains(&PathBuf::from(path)), "{path} is not among {seen:?}");
    }
    assert!(!seen.iter().any(|path| path.starts_with("/home")), "{seen:?}");
}

#[test]
fn a_table_that_cannot_be_read_is_an_error() {
    assert!(mounts("21 1 8:1 /").is_err());
    assert!(mounts("one 1 8:1 / / rw").is_err());
}

/// Whether a folder shows something that is guarded.
fn shows(opened: &Path, guarded: &Path) -> bool {
    shown_by(opened, [&GuardedPath::data(guarded.to_owned())]).unwrap().is_some()
}

/// A folder with `data/checkouts` and `other` in it.
fn home() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    for name in ["data/checkouts", "other"] {
        fs::create_dir_all(home.join(name)).unwrap();
    }
    (folder, home)
}

#[test]
fn at_below_and_above_a_guarded_folder_is_shown_by_whichever_path() {
    let (_folder, home) = home();
    let data = home.join("data");
    std::os::unix::fs::symlink(&data, home.join("link")).unwrap();
    for guarded in [&data, &home.join("link")] {
        for opened in [&data, &data.join("checkouts"), &home, Path::new("/")] {
            assert!(shows(opened, guarded), "{opened:?} {guarded:?}");
        }
        assert!(!shows(&home.join("other"), guarded), "{guarded:?}");
    }
}

#[test]
fn a_folder_that_does_not_exist_yet_is_guarded_where_it_would_be_made() {
    let (_folder, home) = home();
    let other = home.join("other");
    for missing in [other.join("python"), other.join("some/python")] {
        assert!(shows(&other, &missing) && shows(&home, &missing), "{missing:?}");
        assert!(!shows(&home.join("data"), &missing), "{missing:?}");
    }
    // A link that leads nowhere is followed when the folder is made.
    std::os::unix::fs::symlink("../other/python", home.join("data/link")).unwrap();
    assert!(shows(&other, &home.join("data/link")));
    assert!(shows(&home.join("data"), &home.join("data/link")), "the link could be replaced");
}

#[test]
fn a_guarded_file_is_shown_by_the_folders_that_hold_it_or_a_link_to_it() {
    let (_folder, home) = home();
    let file = home.join("data/toolrest.toml");
    fs::write(&file, "").unwrap();
    assert!(shows(&home.join("data"), &file) && shows(&home, &file));
    assert!(!shows(&home.join("data/checkouts"), &file) && !shows(&home.join("other"), &file));
    let link = home.join("other/toolrest.toml");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(shows(&home.join("other"), &link) && shows(&home.join("data"), &link));
}
