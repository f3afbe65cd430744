//! Jobs that cannot run are refused with an error that names the cause.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc};

use toolrest_sandbox::{Access, CellSpec, Error, Job, Layer, Limits, Mount, Options, Sandbox, Source, State, Step};

use crate::fixture::{Fixture, is_root, limits, options, source};

#[tokio::test]
async fn the_canary_finds_every_layer_in_place() {
    let probe = Fixture::new().sandbox.probe().await.unwrap();
    for layer in Layer::ALL {
        assert_eq!(probe.state(layer), State::Present, "\n{probe}");
    }
    probe.verify().unwrap();
}

#[tokio::test]
async fn a_layer_that_may_be_missing_is_reported_as_accepted() {
    let options = Options { accept_missing: BTreeSet::from([Layer::Landlock]), ..options() };
    let probe = Sandbox::start(options).unwrap().probe().await.unwrap();
    assert_eq!(probe.state(Layer::Landlock), State::Accepted, "\n{probe}");
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let fixture = Fixture::new();
    for program in ["no-such-program", "/usr/bin/no-such-program"] {
        let error = fixture.sandbox.spawn(Job::new(fixture.spec(), [program])).await.unwrap().wait().await.unwrap_err();
        assert!(matches!(&error, Error::NoSuchProgram { program: p } if p == program), "{error}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_executable_is_named() {
    let fixture = Fixture::new();
    fs::write(fixture.folder().join("data"), "no program").unwrap();
    let job = Job::new(fixture.spec(), ["/workspace/data"]);
    let error = fixture.sandbox.spawn(job).await.unwrap().wait().await.unwrap_err();
    assert!(matches!(&error, Error::NotExecutable { .. }), "{error}");
}

#[tokio::test]
async fn a_missing_folder_is_named() {
    let fixture = Fixture::new();
    let gone = fixture.home.path().join("gone");
    let error = Source::open(&gone).unwrap_err();
    let Error::SetUp(failure) = &error else { panic!("{error}") };
    assert_eq!((failure.step, failure.subject.as_str()), (Step::Mount, gone.to_str().unwrap()));
}

#[tokio::test]
async fn a_missing_working_folder_is_named() {
    let fixture = Fixture::new();
    let mut spec = fixture.spec();
    spec.cwd = "/workspace/gone".into();
    let error = fixture.sandbox.spawn(Job::new(spec, ["true"])).await.unwrap().wait().await.unwrap_err();
    assert!(matches!(&error, Error::SetUp(failure) if failure.step == Step::WorkingFolder), "{error}");
}

#[tokio::test]
async fn nothing_can_be_mounted_over_the_system() {
    let fixture = Fixture::new();
    for target in ["/", "/a/../usr", "relative"] {
        let mount = Mount::Folder {
            source: source(fixture.folder()),
            target: target.into(),
            access: Access::ReadWrite,
            frozen: Vec::new(),
        };
        let refused = fixture.sandbox.spawn(Job::new(fixture.spec().mount(mount), ["true"])).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{target}");
    }
}

#[tokio::test]
async fn mount_targets_inside_writable_folders_are_refused() {
    let fixture = Fixture::new();
    for target in ["/workspace", "/workspace/sub/folder"] {
        let mount = Mount::Folder {
            source: source(fixture.folder()),
            target: target.into(),
            access: Access::ReadOnly,
            frozen: Vec::new(),
        };
        let refused = fixture.sandbox.spawn(Job::new(fixture.spec().mount(mount), ["true"])).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{target}");
    }
}

#[tokio::test]
async fn mount_sources_that_are_links_in_writable_folders_are_refused() {
    let fixture = Fixture::new();
    let link = fixture.folder().join("link");
    std::os::unix::fs::symlink("/etc", &link).unwrap();
    let mount = Mount::Folder {
        source: source(link),
        target: "/opt/tools".into(),
        access: Access::ReadOnly,
        frozen: Vec::new(),
    };
    let refused = fixture.sandbox.spawn(Job::new(fixture.spec().mount(mount), ["true"])).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn mount_sources_inside_writable_folders_are_refused_whatever_their_label() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.folder().join("sub")).unwrap();
    let held =
        |path: PathBuf| Source::from_descriptor(Arc::new(fs::File::open(path).unwrap().into()), "/workspace").unwrap();
    let (target, access) = ("/opt/tools".into(), Access::ReadOnly);
    let mount = Mount::Folder { source: held(fixture.folder().join("sub")), target, access, frozen: Vec::new() };
    let spec = CellSpec::new(held(fixture.folder()), "/workspace").limits(limits()).mount(mount);
    let refused = fixture.sandbox.spawn(Job::new(spec, ["true"])).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn strings_with_nul_and_empty_commands_are_refused() {
    let fixture = Fixture::new();
    for job in [
        Job::new(fixture.spec(), ["echo", "a\0b"]),
        Job::new(fixture.spec().env("A=B", "c"), ["true"]),
        Job::new(fixture.spec(), Vec::<String>::new()),
    ] {
        assert!(matches!(fixture.sandbox.spawn(job).await, Err(Error::Invalid(_))));
    }
}

#[tokio::test]
async fn limits_below_the_minimum_are_refused() {
    let fixture = Fixture::new();
    for limits in [
        Limits { memory_bytes: 4096, ..limits() },
        Limits { processes: 1, ..limits() },
        Limits { open_files: 3, ..limits() },
        Limits { temporary_bytes: 0, ..limits() },
    ] {
        let refused = fixture.sandbox.spawn(Job::new(fixture.spec().limits(limits), ["true"])).await;
        assert!(matches!(refused, Err(Error::Invalid(_))));
    }
    let report = fixture.run(Job::new(fixture.spec().limits(minimum_limits()), ["bash", "-c", "ls | cat"])).await;
    assert!(report.success(), "{report:?}");
}

/// Returns the smallest limits that are accepted.
fn minimum_limits() -> Limits {
    Limits { memory_bytes: 0, processes: 0, open_files: 0, temporary_bytes: 0, ..limits() }.raised_to_minimum()
}

#[tokio::test]
async fn a_request_longer_than_a_packet_works() {
    let fixture = Fixture::new();
    let long = "x".repeat(100_000);
    let arguments: Vec<String> = std::iter::repeat_n(long, 10).collect();
    let code = "echo $# ${#1}".to_owned();
    let argv = ["bash", "-c", &code, "bash"].map(String::from).into_iter().chain(arguments);
    let report = fixture.run(Job::new(fixture.spec(), argv)).await;
    assert_eq!(report.stdout.text(), "10 100000\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn a_launcher_that_cannot_be_started_is_reported() {
    let options = Options { program: "/no/such/launcher".into(), ..options() };
    assert!(matches!(Sandbox::start(options), Err(Error::Launcher(_))));
}

#[tokio::test]
async fn without_namespaces_jobs_are_refused() {
    let fixture = Fixture::new();
    let sandbox = Sandbox::start(Options { program: launcher_without_namespaces(&fixture), ..options() }).unwrap();
    let job = Job::new(fixture.spec(), ["touch", "/workspace/ran"]);
    let error = sandbox.spawn(job).await.unwrap().wait().await.unwrap_err();
    // Root without namespaces lacks the right to mount, which is needed first.
    let missing = if is_root() { Layer::IdMappedMounts } else { Layer::Namespaces };
    assert!(matches!(&error, Error::Unavailable { layer, .. } if *layer == missing), "{error}");
    assert!(error.is_unavailable() && error.to_string().contains(missing.remedy()), "{error}");
    assert!(!fixture.folder().join("ran").exists());
    let probe = sandbox.probe().await.unwrap();
    assert_eq!(probe.state(missing), State::Missing, "\n{probe}");
    assert!(probe.verify().is_err(), "\n{probe}");
}

/// Returns a launcher in a user namespace that cannot create others.
fn launcher_without_namespaces(fixture: &Fixture) -> PathBuf {
    let wrapper = fixture.home.path().join("launcher");
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces";
    let launcher = options().program;
    let unshare = "unshare --user --map-current-user --keep-caps";
    fs::write(&wrapper, format!("#!/bin/sh\nexec {unshare} sh -c '{forbid} && exec {}'\n", launcher.display()))
        .unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    wrapper
}
