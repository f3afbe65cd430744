//! Files that a job must not read, write or reach.

use std::{fs, os::unix::fs::MetadataExt};

use toolrest_sandbox::{Access, Error, Job, Mount, Place};

use crate::scene::{PYTHON, Scene, source};

#[tokio::test]
async fn a_link_to_the_outside_leads_nowhere() {
    let scene = Scene::new();
    let outside = scene.home.path().join("secret");
    fs::write(&outside, "secret").unwrap();
    let told = scene
        .told(&format!(
            "os.symlink('{0}', 'link'); print(attempt(lambda: open('link').read())); print(attempt(lambda: open('{0}')))",
            outside.display()
        ))
        .await;
    assert_eq!(told, "ENOENT\nENOENT");
    // What is left behind is a link that the reader must not follow: it is one, and not what it points to.
    assert!(fs::symlink_metadata(scene.folder().join("link")).unwrap().is_symlink());
}

#[tokio::test]
async fn going_up_ends_at_the_root_of_the_job() {
    let scene = Scene::new();
    fs::write(scene.home.path().join("secret"), "secret").unwrap();
    let told = scene
        .told(
            "print(attempt(lambda: open('../secret')), attempt(lambda: open('../../../../../../../../etc/shadow')))\n\
             print(sorted(os.listdir('/..')) == sorted(os.listdir('/')))\n\
             print(attempt(lambda: os.listdir('/proc/1/root')), attempt(lambda: os.listdir('/proc/1/cwd')))\n\
             print(sorted(os.listdir('/proc/self/root')) == sorted(os.listdir('/')))",
        )
        .await;
    assert_eq!(told, "ENOENT ENOENT\nTrue\nENOENT ENOENT\nTrue");
}

#[tokio::test]
async fn another_workspace_is_not_there() {
    let scene = Scene::new();
    let other = scene.home.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("file"), "theirs").unwrap();
    let told = scene
        .told(&format!(
            "print(attempt(lambda: os.listdir('{}')), attempt(lambda: os.listdir('{}')))",
            other.display(),
            scene.home.path().display()
        ))
        .await;
    assert_eq!(told, "ENOENT ENOENT");
}

#[tokio::test]
async fn nothing_of_the_system_can_be_linked_into_the_folder() {
    let told = Scene::new()
        .told(
            "print(attempt(lambda: os.link('/usr/bin/passwd', 'passwd')), attempt(lambda: os.link('passwd', '/tmp/x')))",
        )
        .await;
    assert!(["EXDEV ENOENT", "EACCES ENOENT", "EPERM ENOENT"].contains(&told.as_str()), "{told}");
}

#[tokio::test]
async fn the_system_cannot_be_written_to() {
    let told = Scene::new()
        .told(
            "for path in ('/x', '/usr/x', '/etc/x', '/bin/x', '/lib/x', '/dev/x', '/proc/x', '/etc/passwd', '/usr/bin/env'):\n    \
             print(path, attempt(lambda: open(path, 'w')))",
        )
        .await;
    for line in told.lines().filter(|line| !line.starts_with("/dev/x")) {
        assert!(["EROFS", "EACCES", "ENOENT", "EPERM"].iter().any(|errno| line.ends_with(errno)), "{line}");
    }
    assert!(!told.contains(" ok"), "{told}");
}

#[tokio::test]
async fn a_folder_to_read_cannot_be_written_to() {
    let scene = Scene::new();
    let library = scene.home.path().join("library");
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
    let report = scene.python_in(scene.place().mount(mount), code).await;
    let text = report.stdout.text();
    let errnos: Vec<&str> = text.split_whitespace().skip(1).collect();
    assert!(text.starts_with("text ") && errnos.len() == 3, "{text} {}", report.stderr.text());
    assert!(errnos.iter().all(|errno| ["EROFS", "EACCES"].contains(errno)), "{text}");
    assert_eq!(fs::read_to_string(library.join("book")).unwrap(), "text");
}

#[tokio::test]
async fn no_file_can_carry_the_rights_of_its_owner() {
    let scene = Scene::new();
    let code = "import shutil\nshutil.copy('/usr/bin/id', 'copy')\n\
                print(attempt(lambda: os.chmod('copy', 0o4755)), attempt(lambda: os.chmod('copy', 0o2755)))\n\
                print(attempt(lambda: os.fchmod(os.open('copy', os.O_RDWR), 0o6755)))\n\
                print(attempt(lambda: os.open('new', os.O_CREAT | os.O_WRONLY, 0o4755)))\n\
                print(attempt(lambda: os.mknod('node', 0o104755)))\n\
                print(call(452, -100, b'copy', 0o4755, 0), call(85, b'new', 0o4755), call(437, -100, b'x', 0, 0))";
    let told = scene.told(code).await;
    assert_eq!(told, "EPERM EPERM\nEPERM\nEPERM\nEPERM\nEPERM EPERM ENOSYS");
    for entry in fs::read_dir(scene.folder()).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().mode() & 0o6000, 0);
    }
}

#[tokio::test]
async fn there_are_no_devices_but_the_five() {
    let code = "print(' '.join(sorted(os.listdir('/dev'))))\nimport stat\n\
                print(*[attempt(lambda: os.mknod('m', kind | 0o666, os.makedev(*device))) for kind, device in \
                ((stat.S_IFCHR, (1, 1)), (stat.S_IFBLK, (8, 0)), (stat.S_IFCHR, (0, 0)))], \
                attempt(lambda: os.mkfifo('fifo')))\n\
                print([os.path.exists(path) for path in ('/dev/mem', '/dev/kmsg', '/dev/fuse', '/dev/kvm', '/sys')])";
    let told = Scene::new().told(code).await;
    assert_eq!(
        told,
        "fd full null random shm stderr stdin stdout urandom zero\nEACCES EACCES EACCES ok\n[False, False, False, False, False]"
    );
}

#[tokio::test]
async fn the_kernel_cannot_be_told_anything_by_way_of_proc() {
    let code = "for path in ('/proc/sysrq-trigger', '/proc/sys/kernel/hostname', '/proc/sys/kernel/core_pattern', \
                '/proc/self/oom_score_adj', '/proc/self/uid_map', '/proc/self/mem'):\n    \
                print(attempt(lambda: open(path, 'w')))";
    let told = Scene::new().told(code).await;
    assert!(told.lines().all(|line| ["EACCES", "EPERM", "EROFS", "ENOENT"].contains(&line)), "{told}");
}

#[tokio::test]
async fn a_program_in_the_folder_runs_without_more_rights_than_any_other() {
    let scene = Scene::new();
    let report = scene.bash("cp /usr/bin/id mine && ./mine -u && grep -E 'Cap(Eff|Prm|Bnd)' /proc/self/status").await;
    let text = report.stdout.text();
    assert!(text.starts_with("1000\n"), "{text} {}", report.stderr.text());
    assert_eq!(text.matches("0000000000000000").count(), 3, "{text}");
    assert!(fs::metadata(PYTHON).is_ok());
}

#[tokio::test]
async fn no_file_can_be_kept_from_others_who_open_it() {
    let code = "import fcntl\nf = os.open('file', os.O_RDWR | os.O_CREAT)\n\
                print(*[attempt(lambda: fcntl.fcntl(f, fcntl.F_SETLEASE, kind)) for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK)])";
    assert_eq!(Scene::new().told(code).await, "EPERM EPERM");
}

/// The place of a scene, in which nothing can be done to some entries of the folder.
fn frozen(scene: &Scene, names: &[&str]) -> Place {
    let (source, target) = (source(scene.folder()), "/workspace".into());
    let frozen = names.iter().map(Into::into).collect();
    let mount = Mount::Folder { source, target, access: Access::ReadWrite, frozen };
    Place { mounts: vec![mount], ..scene.place() }
}

#[tokio::test]
async fn what_is_frozen_can_be_read_and_neither_written_nor_replaced() {
    let scene = Scene::new();
    fs::create_dir_all(scene.folder().join(".git/hooks")).unwrap();
    fs::write(scene.folder().join(".git/config"), "text").unwrap();
    fs::write(scene.folder().join("file"), "text").unwrap();
    let code = "print(open('.git/config').read(), open('file').read())\n\
                print(*[attempt(deed) for deed in (lambda: open('.git/config', 'a'), lambda: open('.git/hooks/new', 'w'), \
                lambda: os.remove('.git/config'), lambda: os.chmod('.git/config', 0o777), lambda: open('file', 'w'))])\n\
                os.mkdir('other'); os.mkdir('.git2')\n\
                print(*[attempt(deed) for deed in (lambda: os.rename('.git', 'away'), lambda: os.rename('other', '.git'), \
                lambda: os.rmdir('.git'), lambda: os.remove('file'), lambda: os.link('.git/config', 'config'), \
                lambda: os.rename('.git/config', 'config'))])\n\
                print(call(316, -100, b'.git', -100, b'.git2', 2))\n\
                open('new', 'w').write('new'); print(sorted(os.listdir('.')))";
    let report = scene.python_in(frozen(&scene, &[".git", "file"]), code).await;
    assert_eq!(
        report.stdout.text(),
        "text text\nEROFS EROFS EROFS EROFS EROFS\nEBUSY EBUSY EBUSY EBUSY EXDEV EXDEV\nEBUSY\n\
         ['.git', '.git2', 'file', 'new', 'other']\n",
        "{}",
        report.stderr.text()
    );
    assert_eq!(fs::read_to_string(scene.folder().join(".git/config")).unwrap(), "text");
    // Others, and whoever comes later, can do with it what they like.
    assert!(scene.bash("echo more >> .git/config && mv .git away").await.success());
}

#[tokio::test]
async fn what_is_frozen_at_any_depth_stays_where_folders_above_it_are_moved() {
    let scene = Scene::new();
    fs::create_dir_all(scene.folder().join("a/b/.git")).unwrap();
    fs::write(scene.folder().join("a/b/.git/config"), "text").unwrap();
    let code = "print(*[attempt(deed) for deed in (lambda: open('a/b/.git/config', 'w'), lambda: os.rename('a/b', 'c'), \
                lambda: open('c/.git/config', 'w'), lambda: os.rename('c/.git', 'd'), lambda: open('c/new', 'w'))])";
    let report = scene.python_in(frozen(&scene, &["a/b/.git"]), code).await;
    assert_eq!(report.stdout.text(), "EROFS ok EROFS EBUSY ok\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn no_job_starts_where_what_is_to_be_frozen_is_gone_or_reached_by_a_link() {
    let scene = Scene::new();
    fs::create_dir_all(scene.folder().join("real/.git")).unwrap();
    std::os::unix::fs::symlink("real", scene.folder().join("link")).unwrap();
    std::os::unix::fs::symlink(scene.home.path(), scene.folder().join("out")).unwrap();
    for path in [".git", "missing/.git", "link", "link/.git", "out", "out/x"] {
        let refused = scene.sandbox.spawn(Job::new(frozen(&scene, &[path]), ["true"])).await.unwrap().wait().await;
        assert!(matches!(refused, Err(Error::Moved(_))), "{path}: {refused:?}");
    }
}

#[tokio::test]
async fn only_what_is_below_the_folder_can_be_frozen() {
    let scene = Scene::new();
    for name in ["", ".", "..", "a/../b", "/a", "a/", "a//b", "a\0b"] {
        let refused = scene.sandbox.spawn(Job::new(frozen(&scene, &[name]), ["true"])).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{name:?}");
    }
}
