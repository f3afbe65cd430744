use super::*;

/// A disk on `/`, one folder of it bound elsewhere, a folder above the data bound, and another disk.
const TABLE: &str = "\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 8:1 /var/lib/toolrest/checkouts /srv/check\\040outs rw,relatime - ext4 /dev/sda1 rw
31 21 8:1 /var/lib /srv/libraries rw,relatime - ext4 /dev/sda1 rw
32 21 8:2 / /home rw,relatime - ext4 /dev/sda2 rw
";

fn seen() -> Vec<PathBuf> {
    seen_at(Path::new("/var/lib/toolrest"), 21, &mounts(TABLE).unwrap())
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

#[test]
fn at_below_and_above_a_guarded_folder_is_shown_by_whichever_path() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let (data, beside) = (home.join("data"), home.join("beside"));
    for folder in [&data.join("checkouts"), &beside] {
        fs::create_dir_all(folder).unwrap();
    }
    std::os::unix::fs::symlink(&data, home.join("link")).unwrap();
    for guarded in [&data, &home.join("link")] {
        let shows = |path: &Path| shows_guarded(path, std::slice::from_ref(guarded)).unwrap();
        assert!(shows(&data) && shows(&data.join("checkouts")) && shows(&home) && shows(Path::new("/")));
        assert!(!shows(&beside));
    }
    assert!(!shows_guarded(&beside, &[home.join("missing")]).unwrap());
}
