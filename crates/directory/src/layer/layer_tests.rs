//! Unusual views of folders.

use std::{collections::HashMap, fs, path::Path, time::SystemTime};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use tempfile::TempDir;

use super::*;

/// Creates nested folders until no path can name the last.
fn dig(folder: &Path) {
    let name = "d".repeat(250);
    let mut here = openat(CWD, folder, OFlags::PATH, Mode::empty()).unwrap();
    for _ in 0..20 {
        mkdirat(&here, &name, Mode::RWXU).unwrap();
        here = openat(&here, &name, OFlags::PATH, Mode::empty()).unwrap();
    }
}

#[test]
fn an_ignored_tree_too_deep_for_any_path_is_compared_as_far_as_paths_lead() {
    let (lower, upper) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fs::write(lower.path().join(".gitignore"), "out\n").unwrap();
    for root in [&lower, &upper] {
        fs::create_dir(root.path().join("out")).unwrap();
        dig(&root.path().join("out"));
    }
    let baseline = Baseline::new(SystemTime::now(), HashMap::new());
    let (lower, upper) = (Root::open(lower.path()).unwrap(), Root::open(upper.path()).unwrap());
    let found = lower.differences(&upper, &baseline).unwrap();
    assert_eq!(
        found.iter().map(|found| (found.path.as_path(), found.is_ignored)).collect::<Vec<_>>(),
        [(Path::new("out"), true)]
    );
}
