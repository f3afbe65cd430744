//! Files that a job must not read, write or reach.

use std::{fs, os::unix::fs::MetadataExt};

use toolrest_sandbox::{Access, CellSpec, Error, Job, Mount};

use crate::fixture::{Fixture, PYTHON, source};

#[tokio::test]
async fn a_link_to_a_file_of_the_host_does_not_resolve() {
    let fixture = Fixture::new();
    let outside = fixture.home.path().join("secret");
    fs::write(&outside, "secret").unwrap();
    let output = fixture
        .python_output(&format!(
            "os.symlink('{0}', 'link'); print(attempt(lambda: open('link').read())); print(attempt(lambda: open('{0}')))",
            outside.display()
        ))
        .await;
    assert_eq!(output, "ENOENT\nENOENT");
    // The link itself stays in the folder. Whoever reads the folder must not follow it.
    assert!(fs::symlink_metadata(fixture.folder().join("link")).unwrap().is_symlink());
}

#[tokio::test]
async fn parent_paths_end_at_the_root_of_the_cell() {
    let fixture = Fixture::new();
    fs::write(fixture.home.path().join("secret"), "secret").unwrap();
    let output = fixture
        .python_output(
            "print(attempt(lambda: open('../secret')), attempt(lambda: open('../../../../../../../../etc/shadow')))\n\
             print(sorted(os.listdir('/..')) == sorted(os.listdir('/')))\n\
             print(attempt(lambda: os.listdir('/proc/1/root')), attempt(lambda: os.listdir('/proc/1/cwd')))\n\
             print(sorted(os.listdir('/proc/self/root')) == sorted(os.listdir('/')))",
        )
        .await;
    assert_eq!(output, "ENOENT ENOENT\nTrue\nENOENT ENOENT\nTrue");
}

#[tokio::test]
async fn other_workspaces_are_not_visible() {
    let fixture = Fixture::new();
    let other = fixture.home.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("file"), "theirs").unwrap();
    let output = fixture
        .python_output(&format!(
            "print(attempt(lambda: os.listdir('{}')), attempt(lambda: os.listdir('{}')))",
            other.display(),
            fixture.home.path().display()
        ))
        .await;
    assert_eq!(output, "ENOENT ENOENT");
}

#[tokio::test]
async fn system_files_cannot_be_hard_linked_into_the_folder() {
    let output = Fixture::new()
        .python_output(
            "print(attempt(lambda: os.link('/usr/bin/passwd', 'passwd')), attempt(lambda: os.link('passwd', '/tmp/x')))",
        )
        .await;
    assert!(["EXDEV ENOENT", "EACCES ENOENT", "EPERM ENOENT"].contains(&output.as_str()), "{output}");
}

#[tokio::test]
async fn the_system_cannot_be_written_to() {
    let output = Fixture::new()
        .python_output(
            "for path in ('/x', '/usr/x', '/etc/x', '/bin/x', '/lib/x', '/dev/x', '/proc/x', '/etc/passwd', '/usr/bin/env'):\n    \
             print(path, attempt(lambda: open(path, 'w')))",
        )
        .await;
    for line in output.lines().filter(|line| !line.starts_with("/dev/x")) {
        assert!(["EROFS", "EACCES", "ENOENT", "EPERM"].iter().any(|errno| line.ends_with(errno)), "{line}");
    }
    assert!(!output.contains(" ok"), "{output}");
}

#[tokio::test]
async fn a_read_only_folder_cannot_be_written_to() {
    let fixture = Fixture::new();
    let library = fixture.home.path().join("library");
    fs::create_dir(&library).unwrap();
    fs::write(library.join("book"), "text").unwrap();
    let mount = Mount::Folder {
        source: source(&library),
        target: "/opt/library".into(),
        access: Access::ReadOnly,
        frozen: Vec::new(),
    };
    let code = "print(open('/opt/library/book').read(), attempt(lambda: open('/opt/library/book', 'w')), \
                attempt(lambda: open('/opt/library/new', 'w')), attempt(lambda: os.remove('/opt/library/book')))";
    let report = fixture.python_in(fixture.spec().mount(mount), code).await;
    let text = report.stdout.text();
    let errnos: Vec<&str> = text.split_whitespace().skip(1).collect();
    assert!(text.starts_with("text ") && errnos.len() == 3, "{text} {}", report.stderr.text());
    assert!(errnos.iter().all(|errno| ["EROFS", "EACCES"].contains(errno)), "{text}");
    assert_eq!(fs::read_to_string(library.join("book")).unwrap(), "text");
}

#[tokio::test]
async fn set_user_id_files_cannot_be_created() {
    let fixture = Fixture::new();
    let code = "import shutil\nshutil.copy('/usr/bin/id', 'copy')\n\
                print(attempt(lambda: os.chmod('copy', 0o4755)), attempt(lambda: os.chmod('copy', 0o2755)))\n\
                print(attempt(lambda: os.fchmod(os.open('copy', os.O_RDWR), 0o6755)))\n\
                print(attempt(lambda: os.open('new', os.O_CREAT | os.O_WRONLY, 0o4755)))\n\
                print(attempt(lambda: os.mknod('node', 0o104755)))\n\
                print(call(452, -100, b'copy', 0o4755, 0), call(85, b'new', 0o4755), call(437, -100, b'x', 0, 0))";
    let output = fixture.python_output(code).await;
    assert_eq!(output, "EPERM EPERM\nEPERM\nEPERM\nEPERM\nEPERM EPERM ENOSYS");
    for entry in fs::read_dir(fixture.folder()).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().mode() & 0o6000, 0);
    }
}

#[tokio::test]
async fn only_five_devices_exist() {
    let code = "print(' '.join(sorted(os.listdir('/dev'))))\nimport stat\n\
                print(*[attempt(lambda: os.mknod('m', kind | 0o666, os.makedev(*device))) for kind, device in \
                ((stat.S_IFCHR, (1, 1)), (stat.S_IFBLK, (8, 0)), (stat.S_IFCHR, (0, 0)))], \
                attempt(lambda: os.mkfifo('fifo')))\n\
                print([os.path.exists(path) for path in ('/dev/mem', '/dev/kmsg', '/dev/fuse', '/dev/kvm', '/sys')])";
    let output = Fixture::new().python_output(code).await;
    assert_eq!(
        output,
        "fd full null random shm stderr stdin stdout urandom zero\nEACCES EACCES EACCES ok\n[False, False, False, False, False]"
    );
}

#[tokio::test]
async fn kernel_settings_in_proc_cannot_be_written() {
    let code = "for path in ('/proc/sysrq-trigger', '/proc/sys/kernel/hostname', '/proc/sys/kernel/core_pattern', \
                '/proc/self/oom_score_adj', '/proc/self/uid_map', '/proc/self/mem'):\n    \
                print(attempt(lambda: open(path, 'w')))";
    let output = Fixture::new().python_output(code).await;
    assert!(output.lines().all(|line| ["EACCES", "EPERM", "EROFS", "ENOENT"].contains(&line)), "{output}");
}

#[tokio::test]
async fn programs_in_the_folder_run_without_capabilities() {
    let fixture = Fixture::new();
    let report = fixture.bash("cp /usr/bin/id mine && ./mine -u && grep -E 'Cap(Eff|Prm|Bnd)' /proc/self/status").await;
    let text = report.stdout.text();
    assert!(text.starts_with("1000\n"), "{text} {}", report.stderr.text());
    assert_eq!(text.matches("0000000000000000").count(), 3, "{text}");
    assert!(fs::metadata(PYTHON).is_ok());
}

#[tokio::test]
async fn file_leases_are_refused() {
    let code = "import fcntl\nf = os.open('file', os.O_RDWR | os.O_CREAT)\n\
                print(*[attempt(lambda: fcntl.fcntl(f, fcntl.F_SETLEASE, kind)) for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK)])";
    assert_eq!(Fixture::new().python_output(code).await, "EPERM EPERM");
}

/// Returns the fixture's cell with frozen entries.
fn frozen(fixture: &Fixture, names: &[&str]) -> CellSpec {
    let (source, target) = (source(fixture.folder()), "/workspace".into());
    let frozen = names.iter().map(Into::into).collect();
    let mount = Mount::Folder { source, target, access: Access::ReadWrite, frozen };
    CellSpec { mounts: vec![mount], ..fixture.spec() }
}

#[tokio::test]
async fn frozen_entries_can_be_read_but_not_written_or_replaced() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.folder().join(".git/hooks")).unwrap();
    fs::write(fixture.folder().join(".git/config"), "text").unwrap();
    fs::write(fixture.folder().join("file"), "text").unwrap();
    let code = "print(open('.git/config').read(), open('file').read())\n\
                print(*[attempt(action) for action in (lambda: open('.git/config', 'a'), lambda: open('.git/hooks/new', 'w'), \
                lambda: os.remove('.git/config'), lambda: os.chmod('.git/config', 0o777), lambda: open('file', 'w'))])\n\
                os.mkdir('other'); os.mkdir('.git2')\n\
                print(*[attempt(action) for action in (lambda: os.rename('.git', 'away'), lambda: os.rename('other', '.git'), \
                lambda: os.rmdir('.git'), lambda: os.remove('file'), lambda: os.link('.git/config', 'config'), \
                lambda: os.rename('.git/config', 'config'))])\n\
                print(call(316, -100, b'.git', -100, b'.git2', 2))\n\
                open('new', 'w').write('new'); print(sorted(os.listdir('.')))";
    let report = fixture.python_in(frozen(&fixture, &[".git", "file"]), code).await;
    assert_eq!(
        report.stdout.text(),
        "text text\nEROFS EROFS EROFS EROFS EROFS\nEBUSY EBUSY EBUSY EBUSY EXDEV EXDEV\nEBUSY\n\
         ['.git', '.git2', 'file', 'new', 'other']\n",
        "{}",
        report.stderr.text()
    );
    assert_eq!(fs::read_to_string(fixture.folder().join(".git/config")).unwrap(), "text");
    // Other jobs without frozen entries can change them.
    assert!(fixture.bash("echo more >> .git/config && mv .git away").await.success());
}

#[tokio::test]
async fn nested_frozen_entries_stay_frozen_when_parents_are_moved() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.folder().join("a/b/.git")).unwrap();
    fs::write(fixture.folder().join("a/b/.git/config"), "text").unwrap();
    let code = "print(*[attempt(action) for action in (lambda: open('a/b/.git/config', 'w'), lambda: os.rename('a/b', 'c'), \
                lambda: open('c/.git/config', 'w'), lambda: os.rename('c/.git', 'd'), lambda: open('c/new', 'w'))])";
    let report = fixture.python_in(frozen(&fixture, &["a/b/.git"]), code).await;
    assert_eq!(report.stdout.text(), "EROFS ok EROFS EBUSY ok\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn a_missing_or_linked_frozen_entry_refuses_the_job() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.folder().join("real/.git")).unwrap();
    std::os::unix::fs::symlink("real", fixture.folder().join("link")).unwrap();
    std::os::unix::fs::symlink(fixture.home.path(), fixture.folder().join("out")).unwrap();
    for path in [".git", "missing/.git", "link", "link/.git", "out", "out/x"] {
        let refused = fixture.sandbox.spawn(Job::new(frozen(&fixture, &[path]), ["true"])).await.unwrap().wait().await;
        assert!(matches!(refused, Err(Error::Moved(_))), "{path}: {refused:?}");
    }
}

#[tokio::test]
async fn frozen_entries_must_be_below_the_folder() {
    let fixture = Fixture::new();
    for name in ["", ".", "..", "a/../b", "/a", "a/", "a//b", "a\0b"] {
        let refused = fixture.sandbox.spawn(Job::new(frozen(&fixture, &[name]), ["true"])).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{name:?}");
    }
}
