//! Git's own files in a folder: tools do not change them, and programs not those that git on the host runs.

use crate::folder_checkouts::on_sqlite;
use crate::folders::Pair;
use crate::programs::{left_out, run, run_in, tree, write};
use crate::test_workspace::{TestWorkspace, put};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::Arc;
use tokio::task::yield_now;
use toolrest_core::{
    Change, Changeset, CheckedIn, Destination, ErrorKind, KeepLimits, LeftOutReason, Removal, Result, Role, WsPath,
};
use toolrest_directory::Root;
use toolrest_store::Page;
use toolrest_workspaces::{AllowedRoot, FolderOptions, Repositories, Scratch, StoredWorkspaces};

fn path(path: &str) -> WsPath {
    WsPath::posix(path).unwrap()
}

fn moved(from: &str, to: &str) -> Change {
    Change::Move { from: path(from), to: Destination::Exactly(path(to)) }
}

fn removed(at: &str, removal: Removal) -> Change {
    Change::Remove { path: path(at), removal }
}

async fn commit(pair: &Pair, change: Change) -> Result<()> {
    pair.commit(pair.in_folder, Changeset::one(change)).await.map(drop)
}

/// A repository, a file `.git` of another, and links that lead into the first.
fn repositories(pair: &Pair) {
    let root = pair.root.path();
    write(root, &[(".git/config", "own"), (".git/HEAD", "ref"), (".git/empty", ""), ("sub/.git", "gitdir: x")]);
    write(root, &[("f", "f"), ("deep/nested/.git/HEAD", "ref"), ("prepared/config", "evil")]);
    symlink(".git", root.join("to-git")).unwrap();
    symlink("../.git/config", root.join("sub/to-config")).unwrap();
    symlink(".git/new-by-link", root.join("dangling")).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_do_not_change_repositories() {
    let pair = on_sqlite().await;
    repositories(&pair);
    let before = tree(pair.root.path());
    let refused = [
        put("/.git/config", "evil"),
        put("/.git/hooks/pre-commit", "evil"),
        put("/sub/.git", "gitdir: ../evil"),
        put("/deep/nested/.git/hooks/x", "evil"),
        put("/new/.git/config", "evil"),
        put("/new/.git", "gitdir: evil"),
        put("/.GIT/config", "evil"),
        put("/git~1/config", "evil"),
        put("/.g\u{200c}it/config", "evil"),
        put("/.git /config", "evil"),
        put("/to-git/config", "evil"),
        put("/to-git/hooks/x", "evil"),
        put("/sub/to-config", "evil"),
        put("/dangling", "evil"),
        Change::MakeDir(path("/made/.git")),
        Change::MakeDir(path("/.git/hooks")),
        Change::Touch(path("/.git/config")),
        Change::Touch(path("/.git/new")),
        Change::Touch(path("/to-git/HEAD")),
        moved("/prepared", "/deep/.git"),
        moved("/prepared/config", "/.git/hooks"),
        moved("/.git/config", "/config"),
        moved("/.git", "/elsewhere"),
        moved("/sub/.git", "/sub/git"),
        removed("/.git/config", Removal::File),
        removed("/deep/nested/.git/HEAD", Removal::File),
        removed("/sub/.git", Removal::Single),
    ];
    for change in refused {
        let shown = format!("{change:?}");
        let error = commit(&pair, change).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Forbidden, "{shown}: {error:?}");
        assert!(error.message.contains("folders.git_writable"), "{shown}: {error:?}");
        assert_eq!(tree(pair.root.path()), before, "{shown}");
    }
    // A link that leads there is no file of the repository's, nor is what only looks like one.
    for change in [
        removed("/to-git", Removal::Single),
        put("/.gitignore", "x"),
        put("/.github/x", "x"),
        put("/x.git/config", "x"),
        moved("/deep", "/moved"),
        moved("/moved", "/deep"),
    ] {
        commit(&pair, change).await.unwrap();
    }
    // One change among others takes all of them along.
    let changes = vec![put("/fine", "x"), put("/.git/config", "evil")];
    let error = pair.commit(pair.in_folder, Changeset { changes, ..Changeset::default() }).await.unwrap_err();
    assert_eq!((error.kind, pair.path("fine").exists()), (ErrorKind::Forbidden, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_within_a_repository_is_no_workspace() {
    let room = TestWorkspace::on_sqlite().await;
    for folder in [".git", ".git/hooks", "deep/.GIT/modules/x"] {
        let home = tempfile::tempdir().unwrap();
        let allowed = home.path().canonicalize().unwrap();
        fs::create_dir_all(allowed.join(folder)).unwrap();
        symlink(allowed.join(folder), allowed.join("link")).unwrap();
        let data = tempfile::tempdir().unwrap();
        let options = |repositories| FolderOptions {
            allowed_roots: vec![AllowedRoot::for_all(allowed.clone())],
            journal_dir: data.path().join("journals"),
            repositories,
            ..FolderOptions::default()
        };
        let opened = async |options, path: &str| {
            let scratch = Scratch::open(&data.path().join("checkouts")).unwrap();
            let workspaces = StoredWorkspaces::new(Arc::clone(&room.store), options, scratch);
            workspaces.allowed_root(&allowed.join(path), "anyone").await
        };
        for path in [folder, "link"] {
            let error = opened(options(Repositories::ReadOnly), path).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Forbidden, "{path}: {error:?}");
            assert!(error.message.contains("folders.git_writable"), "{error:?}");
        }
        opened(options(Repositories::Writable), folder).await.unwrap();
        opened(options(Repositories::ReadOnly), "").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_can_open_repositories_and_undo_stays_out_of_them_after_that() {
    let room = TestWorkspace::on_sqlite().await;
    let open = FolderOptions { repositories: Repositories::Writable, ..FolderOptions::default() };
    let pair = Pair::with(tempfile::tempdir().unwrap(), &room, open).await;
    repositories(&pair);
    commit(&pair, put("/.git/config", "evil")).await.unwrap();
    commit(&pair, put("/to-git/hooks/pre-commit", "evil")).await.unwrap();
    commit(&pair, removed("/deep/nested/.git/HEAD", Removal::File)).await.unwrap();
    assert_eq!((pair.text(".git/config"), pair.text(".git/hooks/pre-commit")), ("evil".into(), "evil".into()));
    let closed = pair.reopened(FolderOptions::default());
    let error = closed.undo(closed.in_folder).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Forbidden, "{error:?}");
    let access = toolrest_core::Access {
        workspace: closed.in_folder,
        user: closed.user,
        person: closed.user,
        need: Role::Viewer,
        rules: None,
    };
    let trash = closed.store.trash(access, Page { before: None, limit: 10 }).await.unwrap();
    let head = trash.iter().find(|entry| entry.path.as_str() == "/deep/nested/.git/HEAD").unwrap();
    let error = commit(&closed, Change::Restore(head.id)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Forbidden, "{error:?}");
    assert!(!closed.path("deep/nested/.git/HEAD").exists());
}

/// A repository with a branch that conflicts with `main`.
const CONFLICTING: &str = "git init -qb main . && git config user.name me && git config user.email me@example.com && \
     echo 1 > f && git add f && git commit -qm one && git checkout -qb topic && echo 2 > f && git commit -qam two && \
     echo 3 > g && git add g && git commit -qm three && git checkout -q main && echo other > f && git commit -qam other && \
     git checkout -q topic";

const AUTHOR: &str = "export GIT_AUTHOR_NAME=me GIT_AUTHOR_EMAIL=me@example.com GIT_COMMITTER_NAME=me \
     GIT_COMMITTER_EMAIL=me@example.com HOME=/nowhere; git config --global --add safe.directory '*' 2>/dev/null || true;";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebase_goes_on_from_one_program_to_the_next_and_runs_nothing_on_the_host() {
    let pair = on_sqlite().await;
    let root = pair.root.path();
    run_in(root, CONFLICTING);
    let done = pair.runs(&format!("{AUTHOR} git rebase main >/dev/null 2>&1 || true; test -d .git/rebase-merge")).await;
    assert!(!left_out(&done).iter().any(|(_, reason)| *reason == LeftOutReason::GitConfig), "{done:?}");
    assert!(pair.path(".git/rebase-merge/git-rebase-todo").exists());
    // A line that runs something does not get there, and the list stays as it is.
    let todo = pair.text(".git/rebase-merge/git-rebase-todo");
    let script =
        "echo \"exec touch $PWD/pwned\" >> .git/rebase-merge/git-rebase-todo; echo ../x > .git/rebase-merge/strategy";
    let done = pair.runs(script).await;
    for name in ["/.git/rebase-merge/git-rebase-todo", "/.git/rebase-merge/strategy"] {
        assert!(left_out(&done).contains(&(name, LeftOutReason::GitConfig)), "{done:?}");
    }
    assert_eq!(pair.text(".git/rebase-merge/git-rebase-todo"), todo);
    pair.runs(&format!("{AUTHOR} echo both > f; git add f; GIT_EDITOR=true git rebase --continue >/dev/null 2>&1"))
        .await;
    assert!(!pair.path(".git/rebase-merge").exists());
    run_in(root, "test -z \"$(git status --porcelain)\" && test $(git log --oneline | wc -l) = 4 && test ! -e pwned");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_leads_into_a_repository_stays_in_the_view() {
    let pair = on_sqlite().await;
    let root = pair.root.path();
    run_in(root, CONFLICTING);
    // Git checks out what the index names, without a look at where that leads.
    let script = r#"id=$(printf '#!/bin/sh\ntouch pwned\n' | git hash-object -w --stdin)
        export GIT_DIR=$PWD/.git; /usr/bin/python3 - "$id" <<'EOF'
import hashlib, struct, sys
entry = lambda path, mode, id: struct.pack('>10I', 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + bytes.fromhex(id) + struct.pack('>H', len(path)) + path
pad = lambda entry: entry + b'\0' * (8 - len(entry) % 8)
body = b'DIRC' + struct.pack('>2I', 2, 1) + pad(entry(b'.git/hooks/post-checkout', 0o100755, sys.argv[1]))
open('.git/index', 'wb').write(body + hashlib.sha1(body).digest())
EOF"#;
    let done = pair.runs(script).await;
    assert!(left_out(&done).contains(&("/.git/index", LeftOutReason::GitConfig)), "{done:?}");
    run_in(
        root,
        "git checkout -q -- . && git checkout -q main && test ! -e pwned && test ! -e .git/hooks/post-checkout",
    );
    // An ordinary commit is brought over with its index.
    pair.runs(&format!("{AUTHOR} echo more > new; git add new; git commit -qm more")).await;
    run_in(root, "test -z \"$(git status --porcelain)\" && git show HEAD:new | grep -q more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_judged_by_the_hashes_of_its_repository() {
    let pair = on_sqlite().await;
    let root = pair.root.path();
    run_in(root, &format!("git init -q --object-format=sha256 . && {AUTHOR} git commit -q --allow-empty -m first"));
    let done = pair.runs(&format!("{AUTHOR} echo more > new; git add new; git commit -qm more")).await;
    assert!(!left_out(&done).iter().any(|(_, reason)| *reason == LeftOutReason::GitConfig), "{done:?}");
    run_in(root, "test -z \"$(git status --porcelain)\" && git show HEAD:new | grep -q more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_git_follows_stays_in_the_view() {
    let pair = on_sqlite().await;
    let root = pair.root.path();
    run_in(root, CONFLICTING);
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    let script = "mkdir -p .git/objects/info .git/remotes .git/worktrees/w .git/rebase-apply .git/sequencer .git/modules/m; \
        echo /secret > .git/objects/info/alternates; echo 'URL: /x' > .git/remotes/origin; echo /x/.git > .git/worktrees/w/gitdir; \
        echo --unsafe-paths > .git/rebase-apply/apply-opt; printf \"LD_PRELOAD='x'\\n\" > .git/rebase-apply/author-script; \
        printf '[options]\\n strategy = ../x\\n' > .git/sequencer/opts; echo 'x y' > .git/BISECT_NAMES; \
        echo '* filter=x' > .git/info/attributes; mkdir .GIT; echo x > .GIT/config";
    run(&checkout.execution_root(), script);
    let done = pair.check_in(&mut checkout).await;
    for name in [
        ".git/objects/info/alternates",
        ".git/remotes",
        ".git/worktrees/w/gitdir",
        ".git/rebase-apply/apply-opt",
        ".git/rebase-apply/author-script",
        ".git/sequencer/opts",
        ".git/BISECT_NAMES",
        ".GIT/config",
    ] {
        assert!(fs::symlink_metadata(pair.path(name)).is_err(), "{name}");
        assert!(left_out(&done).contains(&(&format!("/{name}"), LeftOutReason::GitConfig)), "{name}: {done:?}");
    }
    // Filters are what the configuration says, which stays as it is.
    assert!(pair.path(".git/info/attributes").exists());
}

/// Runs a script on a view, with another one in the folder itself when what the first did has been looked at, but not
/// committed yet.
async fn between_scan_and_commit(pair: &Pair, script: &str, theirs: &str) -> CheckedIn {
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    run(&checkout.execution_root(), script);
    let root = Root::open(pair.root.path()).unwrap();
    let turn = root.lock(pair.journals.path()).unwrap();
    let cx = pair.cx(pair.in_folder).await;
    let check_in = tokio::spawn(async move { checkout.check_in(&cx).await.unwrap() });
    while !is_lock_waited_for(pair) {
        yield_now().await;
    }
    run_in(pair.root.path(), theirs);
    drop(turn);
    check_in.await.unwrap()
}

/// Whether somebody waits for the lock of one of the folder's journals.
fn is_lock_waited_for(pair: &Pair) -> bool {
    let journals = fs::read_dir(pair.journals.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().ino());
    let journals: Vec<String> = journals.map(|inode| format!(":{inode} ")).collect();
    let locks = fs::read_to_string("/proc/locks").unwrap();
    locks.lines().any(|lock| lock.contains("->") && journals.iter().any(|journal| lock.contains(journal)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_appears_before_the_commit_leads_no_program_into_a_repository() {
    let planted = "printf '#!/bin/sh\ntouch pwned\n' > HERE; chmod +x HERE";
    for (here, theirs) in [
        ("x", "ln -s .git/hooks/pre-commit x"),
        ("d/pre-commit", "ln -s .git/hooks d"),
        ("kept/pre-commit", "mv kept away; ln -s .git/hooks kept"),
        ("kept/file", "rm kept/file; ln -s ../.git/hooks/pre-commit kept/file"),
        ("kept/deep/hooks/pre-commit", "ln -s ../.git kept/deep"),
    ] {
        let pair = on_sqlite().await;
        let root = pair.root.path();
        write(root, &[(".git/config", "own"), (".git/hooks/sample", "s"), ("kept/file", "f")]);
        let before = tree(&root.join(".git"));
        let folder = here.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let script = format!("mkdir -p {folder}; {}", planted.replace("HERE", here));
        let done = between_scan_and_commit(&pair, &script, theirs).await;
        assert_eq!(tree(&root.join(".git")), before, "{theirs}: {done:?}");
        assert!(!done.conflicts.is_empty(), "{theirs}: {done:?}");
        // Nothing is lost: what the program wrote is a conflict copy.
        let kept = tree(root).into_iter().any(|(path, text)| text.contains("pwned") && path.contains("conflict"));
        assert!(kept, "{theirs}: {done:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_exchanges_links_and_files_is_followed() {
    let pair = on_sqlite().await;
    let root = pair.root.path();
    write(root, &[("target/file", "t"), ("file", "f")]);
    symlink("target", root.join("link")).unwrap();
    symlink("file", root.join("to-file")).unwrap();
    pair.runs("rm link; mkdir link; echo new > link/file; rm to-file; echo own > to-file; rm -r target").await;
    assert_eq!(
        (pair.text("link/file"), pair.text("to-file"), pair.text("file")),
        ("new\n".into(), "own\n".into(), "f".into())
    );
    assert!(!pair.path("target").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_can_remove_whole_repositories() {
    let pair = on_sqlite().await;
    let root = pair.root.path();
    write(
        root,
        &[(".git/config", "own"), ("sub/.git/config", "own"), ("sub/f", "f"), ("file/.git", "gitdir: x"), ("f", "f")],
    );
    pair.runs("rm -r .git sub; rm file/.git; echo changed > f").await;
    assert_eq!(crate::programs::named(&tree(root)), ["f", "file/"]);
}
