//! Jobs on an overlay leave the folder below unchanged.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
};

use toolrest_sandbox::{CellSpec, Job, Limit, Limits, Mount};

use crate::fixture::{Fixture, limits, source};

/// On drop, gives the owner access to the folder that the kernel made in `work`, so that the fixture can be removed.
struct Removable<'a>(&'a Fixture);

impl Drop for Removable<'_> {
    fn drop(&mut self) {
        let _ = fs::set_permissions(self.0.home.path().join("private/work/work"), fs::Permissions::from_mode(0o700));
    }
}

/// Returns a cell with an overlay on the fixture's folder. Changes go to `private/upper`.
fn spec(fixture: &Fixture) -> CellSpec {
    let private = fixture.home.path().join("private");
    for folder in ["upper", "work"] {
        fs::create_dir_all(private.join(folder)).unwrap();
    }
    let mount =
        Mount::Overlay { lower: vec![source(fixture.folder())], private: source(private), target: "/project".into() };
    CellSpec { mounts: vec![mount], cwd: "/project".into(), ..fixture.spec() }
}

#[tokio::test]
async fn changes_go_to_the_upper_folder_only() {
    let fixture = Fixture::new();
    let _removable = Removable(&fixture);
    fs::write(fixture.folder().join("kept"), "old").unwrap();
    fs::write(fixture.folder().join("removed"), "old").unwrap();
    fs::create_dir(fixture.folder().join("sub")).unwrap();
    fs::write(fixture.folder().join("sub/deep"), "old").unwrap();
    let code = "cat kept && echo new > kept && rm removed && echo more >> sub/deep && mkdir made && ls";
    let report = fixture.run(Job::new(spec(&fixture), ["bash", "-c", code])).await;
    assert_eq!(report.stdout.text(), "oldkept\nmade\nsub\n", "{}", report.stderr.text());
    assert_eq!(fs::read_to_string(fixture.folder().join("kept")).unwrap(), "old");
    assert_eq!(fs::read_to_string(fixture.folder().join("sub/deep")).unwrap(), "old");
    assert!(fixture.folder().join("removed").exists() && !fixture.folder().join("made").exists());
    let upper = fixture.home.path().join("private/upper");
    assert_eq!(fs::read_to_string(upper.join("kept")).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(upper.join("sub/deep")).unwrap(), "oldmore\n");
    let whiteout = fs::symlink_metadata(upper.join("removed")).unwrap();
    assert!(whiteout.file_type().is_char_device() && whiteout.rdev() == 0);
    assert_eq!(fs::metadata(upper.join("made")).unwrap().uid(), fs::metadata(fixture.folder()).unwrap().uid());
}

#[tokio::test]
async fn consecutive_jobs_can_use_the_same_upper_folder() {
    let fixture = Fixture::new();
    let _removable = Removable(&fixture);
    for number in 0..5 {
        let code = format!("echo {number} >> log; wc -l < log");
        let report = fixture.run(Job::new(spec(&fixture), ["bash", "-c", &code])).await;
        assert_eq!(report.stdout.text(), format!("{}\n", number + 1), "{}", report.stderr.text());
    }
}

#[tokio::test]
async fn the_disk_limit_holds_on_an_overlay() {
    let fixture = Fixture::new();
    let _removable = Removable(&fixture);
    let spec = spec(&fixture).limits(Limits { disk_bytes: 100 << 20, ..limits() });
    let code = "for i in $(seq 100); do head -c 30M /dev/zero > f$i; done";
    let report = fixture.run(Job::new(spec, ["bash", "-c", code])).await;
    assert_eq!(report.limit_hit, Some(Limit::Disk), "{report:?}");
}

#[tokio::test]
async fn git_works_on_an_overlay() {
    let fixture = Fixture::new();
    let _removable = Removable(&fixture);
    fixture.bash("git init -q . && git config user.email a@b && git config user.name n && echo x > f && git add f && git commit -qm one").await;
    let code = "echo y >> f && git mv f g && git commit -qam two && git log --oneline | wc -l";
    let report = fixture.run(Job::new(spec(&fixture), ["bash", "-c", code])).await;
    assert_eq!(report.stdout.text(), "2\n", "{}", report.stderr.text());
    assert_eq!(fixture.bash("git log --oneline | wc -l").await.stdout.text(), "1\n");
}
