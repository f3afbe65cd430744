//! Programs that work on a folder, and short words for what became of it.

use crate::folders::Pair;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use toolrest_core::{
    Access, CheckedIn, Checkout, CheckoutMode, CheckoutOptions, CommitInfo, ExecutionRoot, KeepLimits, LeftOutReason,
    ProgramChangeKind, Role,
};
use toolrest_store::Page;

/// Runs a script on a view of the folder, as the sandbox mounts it.
#[allow(clippy::disallowed_methods, reason = "the sandbox is not at hand here, and the kernel's overlay has to be")]
pub(crate) fn run(execution_root: &ExecutionRoot, script: &str) {
    let ExecutionRoot::Overlay { lower, private } = execution_root else { panic!("{execution_root:?}") };
    let view = tempfile::tempdir().unwrap();
    let mount =
        "mount -t overlay overlay -o userxattr,lowerdir=$LOWER,upperdir=$PRIVATE/upper,workdir=$PRIVATE/work $VIEW";
    let output: Output = Command::new("unshare")
        .args(["-Urm", "bash", "-c", &format!("set -e; {mount}; cd $VIEW; umask 022; {script}")])
        .envs([("LOWER", lower.path.as_path()), ("PRIVATE", private.path.as_path()), ("VIEW", view.path())])
        .output()
        .expect("unshare (util-linux) is needed to mount a view");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a script in a folder.
#[allow(clippy::disallowed_methods, reason = "the sandbox is not at hand here")]
pub(crate) fn run_in(folder: &Path, script: &str) {
    let output = Command::new("bash").args(["-e", "-c", script]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = root.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

/// Everything below a folder, without following links: the text of files, what links say, nothing for folders.
pub(crate) fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let at = entry.unwrap().path();
            let kind = fs::symlink_metadata(&at).unwrap().file_type();
            let name = at.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if kind.is_dir() {
                found.insert(format!("{name}/"), String::new());
                waiting.push(at);
            } else if kind.is_symlink() {
                found.insert(name, format!("-> {}", fs::read_link(at).unwrap().display()));
            } else if kind.is_file() {
                found.insert(name, String::from_utf8_lossy(&fs::read(at).unwrap()).into_owned());
            } else {
                found.insert(name, format!("special {kind:?}"));
            }
        }
    }
    found
}

pub(crate) fn named(tree: &BTreeMap<String, String>) -> Vec<&str> {
    tree.keys().map(String::as_str).collect()
}

impl Pair {
    pub(crate) async fn check_out(&self, keep: KeepLimits) -> Box<dyn Checkout> {
        let options = CheckoutOptions { mode: CheckoutMode::Isolated, keep };
        self.cx(self.in_folder).await.workspace.check_out(options).await.unwrap()
    }

    pub(crate) async fn check_out_in_place(&self, keep: KeepLimits) -> Box<dyn Checkout> {
        let options = CheckoutOptions { mode: CheckoutMode::InPlace, keep };
        self.cx(self.in_folder).await.workspace.check_out(options).await.unwrap()
    }

    pub(crate) async fn check_in(&self, checkout: &mut Box<dyn Checkout>) -> CheckedIn {
        checkout.check_in(&self.cx(self.in_folder).await).await.unwrap()
    }

    /// Runs a script on a view and checks in what it did.
    pub(crate) async fn runs(&self, script: &str) -> CheckedIn {
        let mut checkout = self.check_out(KeepLimits::default()).await;
        run(&checkout.execution_root(), script);
        self.check_in(&mut checkout).await
    }

    pub(crate) async fn commits(&self) -> Vec<CommitInfo> {
        let access =
            Access { workspace: self.in_folder, user: self.user, person: self.user, need: Role::Viewer, rules: None };
        self.store.commits(access, Page { before: None, limit: 100 }).await.unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

/// The files that can be run.
pub(crate) fn runnable(root: &Path) -> Vec<String> {
    let can_be_run = |name: &String| {
        let found = fs::symlink_metadata(root.join(name)).unwrap();
        found.is_file() && found.permissions().mode() & 0o100 != 0
    };
    tree(root).into_keys().filter(can_be_run).collect()
}

/// What was changed: a letter for what was done, and the path.
pub(crate) fn changes(checked_in: &CheckedIn) -> Vec<String> {
    let letter = |kind| match kind {
        ProgramChangeKind::Created => 'A',
        ProgramChangeKind::Changed => 'M',
        ProgramChangeKind::Moved => 'R',
        ProgramChangeKind::Removed => 'D',
    };
    checked_in.changed.iter().map(|change| format!("{} {}", letter(change.change), change.path)).collect()
}

pub(crate) fn left_out(checked_in: &CheckedIn) -> Vec<(&str, LeftOutReason)> {
    checked_in.left_out.iter().map(|left| (left.path.as_str(), left.reason)).collect()
}
