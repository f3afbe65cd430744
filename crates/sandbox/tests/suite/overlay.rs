//! A folder that stays as it is while a job changes it.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
};

use toolrest_sandbox::{Job, Limit, Limits, Mount, Place};

use crate::scene::{Scene, limits, source};

/// Lets the folder of the scene be removed.
struct Opened<'a>(&'a Scene);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        let _ = fs::set_permissions(self.0.home.path().join("private/work/work"), fs::Permissions::from_mode(0o700));
    }
}

/// A place on an overlay of the scene's folder; what changes ends up in `private/upper`.
fn place(scene: &Scene) -> Place {
    let private = scene.home.path().join("private");
    for folder in ["upper", "work"] {
        fs::create_dir_all(private.join(folder)).unwrap();
    }
    let mount =
        Mount::Overlay { lower: vec![source(scene.folder())], private: source(private), target: "/project".into() };
    Place { mounts: vec![mount], cwd: "/project".into(), ..scene.place() }
}

#[tokio::test]
async fn changes_go_to_the_upper_folder_and_the_lower_one_stays() {
    let scene = Scene::new();
    let _opened = Opened(&scene);
    fs::write(scene.folder().join("kept"), "old").unwrap();
    fs::write(scene.folder().join("removed"), "old").unwrap();
    fs::create_dir(scene.folder().join("sub")).unwrap();
    fs::write(scene.folder().join("sub/deep"), "old").unwrap();
    let code = "cat kept && echo new > kept && rm removed && echo more >> sub/deep && mkdir made && ls";
    let report = scene.run(Job::new(place(&scene), ["bash", "-c", code])).await;
    assert_eq!(report.stdout.text(), "oldkept\nmade\nsub\n", "{}", report.stderr.text());
    assert_eq!(fs::read_to_string(scene.folder().join("kept")).unwrap(), "old");
    assert_eq!(fs::read_to_string(scene.folder().join("sub/deep")).unwrap(), "old");
    assert!(scene.folder().join("removed").exists() && !scene.folder().join("made").exists());
    let upper = scene.home.path().join("private/upper");
    assert_eq!(fs::read_to_string(upper.join("kept")).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(upper.join("sub/deep")).unwrap(), "oldmore\n");
    let whiteout = fs::symlink_metadata(upper.join("removed")).unwrap();
    assert!(whiteout.file_type().is_char_device() && whiteout.rdev() == 0);
    assert_eq!(fs::metadata(upper.join("made")).unwrap().uid(), fs::metadata(scene.folder()).unwrap().uid());
}

#[tokio::test]
async fn one_job_after_the_other_can_use_the_same_upper_folder() {
    let scene = Scene::new();
    let _opened = Opened(&scene);
    for number in 0..5 {
        let code = format!("echo {number} >> log; wc -l < log");
        let report = scene.run(Job::new(place(&scene), ["bash", "-c", &code])).await;
        assert_eq!(report.stdout.text(), format!("{}\n", number + 1), "{}", report.stderr.text());
    }
}

#[tokio::test]
async fn the_disk_limit_holds_on_an_overlay() {
    let scene = Scene::new();
    let _opened = Opened(&scene);
    let place = place(&scene).limits(Limits { disk_bytes: 100 << 20, ..limits() });
    let code = "for i in $(seq 100); do head -c 30M /dev/zero > f$i; done";
    let report = scene.run(Job::new(place, ["bash", "-c", code])).await;
    assert_eq!(report.limit_hit, Some(Limit::Disk), "{report:?}");
}

#[tokio::test]
async fn git_works_on_an_overlay() {
    let scene = Scene::new();
    let _opened = Opened(&scene);
    scene.bash("git init -q . && git config user.email a@b && git config user.name n && echo x > f && git add f && git commit -qm one").await;
    let code = "echo y >> f && git mv f g && git commit -qam two && git log --oneline | wc -l";
    let report = scene.run(Job::new(place(&scene), ["bash", "-c", code])).await;
    assert_eq!(report.stdout.text(), "2\n", "{}", report.stderr.text());
    assert_eq!(scene.bash("git log --oneline | wc -l").await.stdout.text(), "1\n");
}
