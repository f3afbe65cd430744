//! The same cases as an ordinary user.

use std::{env, fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use tempfile::TempDir;

use crate::scene::{is_root, options};

const NOBODY: &str = "65534";

/// Where the tests run as root, this runs all of them again as a user without any privilege.
#[test]
fn every_case_holds_for_an_ordinary_user_too() {
    if !is_root() {
        // This run is the one by an ordinary user; what it shows, the other tests show.
        return;
    }
    // Where anybody may execute them: the build folder can be private.
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
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains(" 0 filtered out") && told.contains(" 0 ignored"), "all of them ran:\n{told}");
}
