//! What cannot be run is refused, with what is missing.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc};

use toolrest_sandbox::{Access, Error, Job, Layer, Limits, Mount, Options, Place, Sandbox, Source, State, Step};

use crate::scene::{Scene, is_root, limits, options, source};

#[tokio::test]
async fn the_canary_finds_every_layer_in_place() {
    let probe = Scene::new().sandbox.probe().await.unwrap();
    for layer in Layer::ALL {
        assert_eq!(probe.state(layer), State::Present, "\n{probe}");
    }
    probe.verify().unwrap();
}

#[tokio::test]
async fn a_layer_that_may_be_missing_is_told_as_accepted() {
    let options = Options { accept_missing: BTreeSet::from([Layer::Landlock]), ..options() };
    let probe = Sandbox::start(options).unwrap().probe().await.unwrap();
    assert_eq!(probe.state(Layer::Landlock), State::Accepted, "\n{probe}");
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let scene = Scene::new();
    for program in ["no-such-program", "/usr/bin/no-such-program"] {
        let error = scene.sandbox.spawn(Job::new(scene.place(), [program])).await.unwrap().wait().await.unwrap_err();
        assert!(matches!(&error, Error::NoSuchProgram { program: p } if p == program), "{error}");
    }
}

#[tokio::test]
async fn a_program_that_is_none_is_named() {
    let scene = Scene::new();
    fs::write(scene.folder().join("data"), "no program").unwrap();
    let job = Job::new(scene.place(), ["/workspace/data"]);
    let error = scene.sandbox.spawn(job).await.unwrap().wait().await.unwrap_err();
    assert!(matches!(&error, Error::NotExecutable { .. }), "{error}");
}

#[tokio::test]
async fn a_missing_folder_is_named() {
    let scene = Scene::new();
    let gone = scene.home.path().join("gone");
    let error = Source::open(&gone).unwrap_err();
    let Error::SetUp(failure) = &error else { panic!("{error}") };
    assert_eq!((failure.step, failure.subject.as_str()), (Step::Mount, gone.to_str().unwrap()));
}

#[tokio::test]
async fn a_missing_working_folder_is_named() {
    let scene = Scene::new();
    let mut place = scene.place();
    place.cwd = "/workspace/gone".into();
    let error = scene.sandbox.spawn(Job::new(place, ["true"])).await.unwrap().wait().await.unwrap_err();
    assert!(matches!(&error, Error::SetUp(failure) if failure.step == Step::WorkingFolder), "{error}");
}

#[tokio::test]
async fn nothing_can_be_mounted_over_the_system() {
    let scene = Scene::new();
    for target in ["/", "/a/../usr", "relative"] {
        let mount = Mount::Folder {
            source: source(scene.folder()),
            target: target.into(),
            access: Access::ReadWrite,
            frozen: Vec::new(),
        };
        let refused = scene.sandbox.spawn(Job::new(scene.place().mount(mount), ["true"])).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{target}");
    }
}

#[tokio::test]
async fn nothing_can_be_mounted_where_a_job_can_have_put_a_link() {
    let scene = Scene::new();
    for target in ["/workspace", "/workspace/sub/folder"] {
        let mount = Mount::Folder {
            source: source(scene.folder()),
            target: target.into(),
            access: Access::ReadOnly,
            frozen: Vec::new(),
        };
        let refused = scene.sandbox.spawn(Job::new(scene.place().mount(mount), ["true"])).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{target}");
    }
}

#[tokio::test]
async fn nothing_can_be_mounted_from_where_a_job_can_have_put_a_link() {
    let scene = Scene::new();
    let link = scene.folder().join("link");
    std::os::unix::fs::symlink("/etc", &link).unwrap();
    let mount = Mount::Folder {
        source: source(link),
        target: "/opt/tools".into(),
        access: Access::ReadOnly,
        frozen: Vec::new(),
    };
    let refused = scene.sandbox.spawn(Job::new(scene.place().mount(mount), ["true"])).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn nothing_can_be_mounted_from_a_folder_that_the_job_writes_to_whatever_it_is_called() {
    let scene = Scene::new();
    fs::create_dir(scene.folder().join("sub")).unwrap();
    let held = |path: PathBuf| Source::held(Arc::new(fs::File::open(path).unwrap().into()), "/workspace").unwrap();
    let (target, access) = ("/opt/tools".into(), Access::ReadOnly);
    let mount = Mount::Folder { source: held(scene.folder().join("sub")), target, access, frozen: Vec::new() };
    let place = Place::new(held(scene.folder()), "/workspace").limits(limits()).mount(mount);
    let refused = scene.sandbox.spawn(Job::new(place, ["true"])).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn strings_that_would_be_cut_short_are_refused() {
    let scene = Scene::new();
    for job in [
        Job::new(scene.place(), ["echo", "a\0b"]),
        Job::new(scene.place().env("A=B", "c"), ["true"]),
        Job::new(scene.place(), Vec::<String>::new()),
    ] {
        assert!(matches!(scene.sandbox.spawn(job).await, Err(Error::Invalid(_))));
    }
}

#[tokio::test]
async fn limits_that_a_cell_itself_would_not_survive_are_refused() {
    let scene = Scene::new();
    for limits in [
        Limits { memory_bytes: 4096, ..limits() },
        Limits { processes: 1, ..limits() },
        Limits { open_files: 3, ..limits() },
        Limits { temporary_bytes: 0, ..limits() },
    ] {
        let refused = scene.sandbox.spawn(Job::new(scene.place().limits(limits), ["true"])).await;
        assert!(matches!(refused, Err(Error::Invalid(_))));
    }
    let report = scene.run(Job::new(scene.place().limits(least()), ["bash", "-c", "ls | cat"])).await;
    assert!(report.success(), "{report:?}");
}

/// The least that is not refused.
fn least() -> Limits {
    Limits { memory_bytes: 0, processes: 0, open_files: 0, temporary_bytes: 0, ..limits() }.raised()
}

#[tokio::test]
async fn an_order_longer_than_a_packet_is_carried_out() {
    let scene = Scene::new();
    let long = "x".repeat(100_000);
    let arguments: Vec<String> = std::iter::repeat_n(long, 10).collect();
    let code = "echo $# ${#1}".to_owned();
    let argv = ["bash", "-c", &code, "bash"].map(String::from).into_iter().chain(arguments);
    let report = scene.run(Job::new(scene.place(), argv)).await;
    assert_eq!(report.stdout.text(), "10 100000\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn a_launcher_that_cannot_be_started_is_told() {
    let options = Options { program: "/no/such/launcher".into(), ..options() };
    assert!(matches!(Sandbox::start(options), Err(Error::Launcher(_))));
}

#[tokio::test]
async fn without_namespaces_a_job_is_refused_and_never_runs_with_less() {
    let scene = Scene::new();
    let sandbox = Sandbox::start(Options { program: launcher_without_namespaces(&scene), ..options() }).unwrap();
    let job = Job::new(scene.place(), ["touch", "/workspace/ran"]);
    let error = sandbox.spawn(job).await.unwrap().wait().await.unwrap_err();
    // Root that may make no namespaces lacks the right to mount even before that.
    let missing = if is_root() { Layer::IdMappedMounts } else { Layer::Namespaces };
    assert!(matches!(&error, Error::Unavailable { layer, .. } if *layer == missing), "{error}");
    assert!(error.is_unavailable() && error.to_string().contains(missing.remedy()), "{error}");
    assert!(!scene.folder().join("ran").exists());
    let probe = sandbox.probe().await.unwrap();
    assert_eq!(probe.state(missing), State::Missing, "\n{probe}");
    assert!(probe.verify().is_err(), "\n{probe}");
}

/// A launcher in a user namespace in which no other one can be made.
fn launcher_without_namespaces(scene: &Scene) -> PathBuf {
    let wrapper = scene.home.path().join("launcher");
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces";
    let launcher = options().program;
    let unshare = "unshare --user --map-current-user --keep-caps";
    fs::write(&wrapper, format!("#!/bin/sh\nexec {unshare} sh -c '{forbid} && exec {}'\n", launcher.display()))
        .unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    wrapper
}
