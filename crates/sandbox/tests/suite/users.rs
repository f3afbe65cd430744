//! Runs the whole suite as an ordinary user.

use std::{env, fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use tempfile::TempDir;

use crate::fixture::{is_root, options};

const NOBODY: &str = "65534";

/// If the tests run as root, runs all of them again as a user without privileges.
#[test]
fn all_tests_pass_as_an_ordinary_user() {
    if !is_root() {
        // This process is the run by an ordinary user.
        return;
    }
    // Copied to a folder that every user can read: the build folder may be private.
    let home = TempDir::new().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = |from: &Path, name: &str| {
        let to = home.path().join(name);
        fs::copy(from, &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
        to
    };
    let suite = copy(&env::current_exe().unwrap(), "suite");
    let launcher = copy(&options().program, "launcher");
    #[allow(clippy::disallowed_methods, reason = "the tests must be run by another user")]
    let output = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"])
        .arg("--")
        .arg(suite)
        .arg("--test-threads=2")
        .env("TOOLREST_LAUNCHER", launcher)
        .env("TMPDIR", "/tmp")
        .current_dir("/")
        .output()
        .unwrap();
    let suite_output = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{suite_output}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        suite_output.contains(" 0 filtered out") && suite_output.contains(" 0 ignored"),
        "not all tests ran:\n{suite_output}"
    );
}
