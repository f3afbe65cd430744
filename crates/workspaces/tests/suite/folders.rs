//! A folder and a database, given the same changes, end up the same.

use crate::test_workspace::{TestWorkspace, new_user, on_both_stores};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use toolrest_core::{
    Access, CallCx, Caller, Change, Changeset, Commit, Content, Depth, Destination, Effect, EffectKind, Engine,
    ErrorKind, FileType, Limits, NoRecords, NoRules, Parents, Put, Removal, Result, Role, SymbolicLinks, Toolsets,
    UserId, WorkspaceId, Workspaces, WsPath,
};
use toolrest_store::{Location, Page, Purge, Store};
use toolrest_workspaces::{AllowedRoot, FolderOptions, GuardedPath, HistoryLimits, Scratch, StoredWorkspaces};

on_both_stores![
    a_folder_and_a_database_agree_about_any_changes,
    a_preview_shows_the_effects_of_the_commit_that_follows_it,
    every_commit_in_a_folder_can_be_undone,
    the_oldest_history_goes_first_and_what_files_hold_stays,
    a_commit_that_exceeds_the_limit_of_history_drops_the_oldest_at_once,
];

const ROUNDS: u64 = 1000;

/// Two workspaces of one user: one in the database, one in a folder.
pub(crate) struct Pair {
    engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) user: UserId,
    in_database: WorkspaceId,
    pub(crate) in_folder: WorkspaceId,
    pub(crate) root: TempDir,
    pub(crate) journals: TempDir,
}

fn engine(
    store: &Arc<dyn Store>,
    root: &TempDir,
    journals: &TempDir,
    options: FolderOptions,
) -> (Engine, Arc<StoredWorkspaces>) {
    let options = FolderOptions {
        allowed_roots: vec![AllowedRoot::for_all(root.path().canonicalize().unwrap())],
        journal_dir: journals.path().to_owned(),
        ..options
    };
    let scratch = Scratch::open(&journals.path().join("checkouts")).unwrap();
    let workspaces = Arc::new(StoredWorkspaces::new(Arc::clone(store), options, scratch));
    let (policy, recorder) = (Arc::new(NoRules), Arc::new(NoRecords));
    let engine = Engine::new(Toolsets::default(), Arc::clone(&workspaces) as _, policy, recorder, Limits::default());
    (engine, workspaces)
}

impl Pair {
    pub(crate) async fn of(stored: &TestWorkspace) -> Self {
        Self::at(tempfile::tempdir().unwrap(), stored).await
    }

    pub(crate) async fn at(root: TempDir, stored: &TestWorkspace) -> Self {
        Self::with(root, stored, FolderOptions::default()).await
    }

    /// With the options of the operator, but for the places.
    pub(crate) async fn with(root: TempDir, stored: &TestWorkspace, options: FolderOptions) -> Self {
        let journals = tempfile::tempdir().unwrap();
        let store = Arc::clone(&stored.store);
        let user = new_user(&*store).await;
        let (engine, workspaces) = engine(&store, &root, &journals, options);
        let place = Location::Directory { root: workspaces.allowed_root(root.path(), "anyone").await.unwrap() };
        let in_folder = store.create_workspace(user, "folder".into(), place).await.unwrap().id;
        let in_database = store.create_workspace(user, "database".into(), Location::Database).await.unwrap().id;
        Self { engine, store, user, in_database, in_folder, root, journals }
    }

    /// The same folder after the operator has changed the options.
    pub(crate) fn reopened(self, options: FolderOptions) -> Self {
        let (engine, _) = engine(&self.store, &self.root, &self.journals, options);
        Self { engine, ..self }
    }

    pub(crate) async fn cx(&self, workspace: WorkspaceId) -> CallCx {
        self.engine.rest_context("test", workspace, Caller::person(self.user), Role::Editor).await.unwrap()
    }

    pub(crate) async fn commit(&self, workspace: WorkspaceId, changes: Changeset) -> Result<Commit> {
        let cx = self.cx(workspace).await;
        cx.workspace.commit(changes, &cx).await
    }

    pub(crate) async fn undo(&self, workspace: WorkspaceId) -> Result<Commit> {
        let cx = self.cx(workspace).await;
        let access = Access { workspace, user: self.user, person: self.user, need: Role::Editor, rules: None };
        let last = self.store.commits(access, Page { before: None, limit: 1 }).await?.remove(0);
        cx.workspace.commit(toolrest_ops::inverse_of_commit(&last), &cx).await
    }

    /// Every path with its content; a folder has none.
    async fn tree(&self, workspace: WorkspaceId) -> BTreeMap<String, Option<Content>> {
        let cx = self.cx(workspace).await;
        let listing = cx.workspace.list(&WsPath::root(), Depth::Descendants, 10_000).await.unwrap();
        let mut tree = BTreeMap::new();
        for entry in listing.entries {
            let file = cx.workspace.read(&entry.path, u64::MAX).await.unwrap();
            tree.insert(entry.path.to_string(), file.content);
        }
        tree
    }
}

/// A generator of pseudorandom numbers, which are the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    pub(crate) fn path(&mut self) -> WsPath {
        let depth = 1 + self.below(3);
        let names: Vec<&str> = (0..depth).map(|_| ["a", "b", "c-d"][usize::try_from(self.below(3)).unwrap()]).collect();
        WsPath::posix(&names.join("/")).unwrap()
    }

    fn change(&mut self) -> Change {
        match self.below(10) {
            0..=3 => {
                let (path, text) = (self.path(), format!("text {}\n", self.below(1000)));
                let parents = if self.below(3) == 0 { Parents::Require } else { Parents::Create };
                Change::Put(Put {
                    path,
                    file_type: FileType::Document,
                    content: Content::Text(text),
                    parents,
                    executable: None,
                })
            }
            4 => Change::MakeDir(self.path()),
            5..=6 => {
                let (from, to) = (self.path(), self.path());
                let to = match self.below(3) {
                    0 => Destination::Into(to),
                    1 => Destination::At(to),
                    _ => Destination::Exactly(to),
                };
                Change::Move { from, to }
            }
            7..=8 => {
                let removal = if self.below(2) == 0 { Removal::Single } else { Removal::File };
                Change::Remove { path: self.path(), removal }
            }
            _ => Change::Touch(self.path()),
        }
    }

    fn changes(&mut self) -> Changeset {
        let count = if self.below(3) == 0 { 2 + self.below(3) } else { 1 };
        Changeset { changes: (0..count).map(|_| self.change()).collect(), ..Changeset::default() }
    }
}

/// Whether a folder refused changes that only it cannot make at once.
fn is_tangled(result: &Result<Commit>) -> bool {
    result
        .as_ref()
        .is_err_and(|error| error.kind == ErrorKind::Conflict && error.message.starts_with("Several changes meet"))
}

async fn a_folder_and_a_database_agree_about_any_changes(room: TestWorkspace) {
    let pair = Pair::of(&room).await;
    let mut random = Random(1);
    let (mut made, mut refused, mut tangled) = (0, 0, 0);
    for round in 0..ROUNDS {
        let changes = random.changes();
        let in_folder = pair.commit(pair.in_folder, changes.clone()).await;
        if is_tangled(&in_folder) {
            tangled += 1;
            continue;
        }
        let in_database = pair.commit(pair.in_database, changes.clone()).await;
        let outcome = |result: &Result<Commit>| match result {
            Ok(commit) => Ok(commit.outcomes.iter().map(|outcome| (outcome.path.clone(), outcome.hash)).collect()),
            Err(error) => Err((error.kind, error.message.clone())),
        };
        let (folder, database): (Result<Vec<_>, _>, _) = (outcome(&in_folder), outcome(&in_database));
        assert_eq!(folder, database, "round {round}: {changes:?}");
        *if in_folder.is_ok() { &mut made } else { &mut refused } += 1;
        if round % 10 == 0 {
            assert_eq!(
                pair.tree(pair.in_folder).await,
                pair.tree(pair.in_database).await,
                "round {round}: {changes:?}"
            );
        }
    }
    assert_eq!(pair.tree(pair.in_folder).await, pair.tree(pair.in_database).await);
    assert!(made > 100 && refused > 100 && tangled < 50, "{made} made, {refused} refused, {tangled} tangled");
}

/// The parts of effects that do not depend on new ids.
fn shown(effects: &[Effect]) -> Vec<(EffectKind, WsPath, Option<WsPath>)> {
    effects.iter().map(|effect| (effect.op, effect.path.clone(), effect.from.clone())).collect()
}

async fn a_preview_shows_the_effects_of_the_commit_that_follows_it(room: TestWorkspace) {
    let pair = Pair::of(&room).await;
    for workspace in [pair.in_database, pair.in_folder] {
        let mut random = Random(3);
        let (mut made, mut refused) = (0, 0);
        for round in 0..ROUNDS / 4 {
            let changes = random.changes();
            let cx = pair.cx(workspace).await;
            let before = if round % 10 == 0 { Some(pair.tree(workspace).await) } else { None };
            let previewed = cx.workspace.preview(changes.clone(), &cx).await;
            if let Some(before) = before {
                assert_eq!(pair.tree(workspace).await, before, "round {round}: {changes:?}");
            }
            let done = pair.commit(workspace, changes.clone()).await;
            if is_tangled(&done) {
                continue;
            }
            match (previewed, done) {
                (Ok(previewed), Ok(done)) => {
                    let effects = match done.id {
                        Some(id) => cx.workspace.commit_info(id).await.unwrap().changes,
                        None => Vec::new(),
                    };
                    assert_eq!(shown(&previewed.effects), shown(&effects), "round {round}: {changes:?}");
                    let outcomes = |commit: &Commit| -> Vec<_> {
                        commit.outcomes.iter().map(|outcome| (outcome.path.clone(), outcome.hash)).collect()
                    };
                    assert_eq!(outcomes(&previewed.commit), outcomes(&done), "round {round}: {changes:?}");
                    assert_eq!(previewed.commit.id, None);
                    made += 1;
                }
                (Err(previewed), Err(done)) => {
                    assert_eq!((previewed.kind, previewed.message), (done.kind, done.message), "round {round}");
                    refused += 1;
                }
                (previewed, done) => panic!("round {round}: previewed {previewed:?}, done {done:?}: {changes:?}"),
            }
        }
        assert!(made > 20 && refused > 20, "{made} made, {refused} refused");
    }
}

/// What lies in a folder: bytes and modes by path.
fn on_disk(root: &Path) -> BTreeMap<String, (Option<Vec<u8>>, u32)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::metadata(&path).unwrap();
            let bytes = metadata.is_file().then(|| fs::read(&path).unwrap());
            if metadata.is_dir() {
                waiting.push(path.clone());
            }
            let mode = metadata.permissions().mode();
            found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), (bytes, mode));
        }
    }
    found
}

async fn every_commit_in_a_folder_can_be_undone(room: TestWorkspace) {
    let pair = Pair::of(&room).await;
    let mut random = Random(7);
    let folder = pair.root.path();
    let (mut undone, mut tangled) = (0, 0);
    for round in 0..ROUNDS {
        // Somebody else is at work too.
        if random.below(3) == 0 {
            let place = folder.join(random.path().without_slash());
            if place.parent().is_some_and(Path::is_dir) && !place.is_dir() {
                fs::write(&place, format!("by others {round}").as_bytes()).unwrap();
                let mode = [0o600, 0o644, 0o755][usize::try_from(random.below(3)).unwrap()];
                fs::set_permissions(&place, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        let before = on_disk(folder);
        let changes = random.changes();
        let commit = pair.commit(pair.in_folder, changes.clone()).await;
        if !commit.is_ok_and(|commit| commit.id.is_some()) {
            // Nothing may be left of what was refused.
            assert_eq!(on_disk(folder), before, "round {round}: {changes:?}");
            continue;
        }
        if random.below(2) == 0 {
            continue;
        }
        let undo = pair.undo(pair.in_folder).await;
        match undo {
            _ if is_tangled(&undo) => tangled += 1,
            Ok(_) => {
                undone += 1;
                assert_eq!(on_disk(folder), before, "round {round}: undo of {changes:?}");
            }
            // Times are not taken back.
            Err(error) => {
                assert!(error.message.contains("changed nothing to undo"), "round {round}: {error:?} {changes:?}");
            }
        }
    }
    assert!(undone > 50 && tangled < 50, "{undone} undone, {tangled} tangled");
}

/// A text that does not compress well.
fn long_text(version: usize) -> String {
    let mut random = Random(version as u64);
    (0..500).map(|_| format!("{:08x}", random.below(1 << 30))).collect::<Vec<_>>().concat()
}

async fn a_commit_that_exceeds_the_limit_of_history_drops_the_oldest_at_once(room: TestWorkspace) {
    const LIMIT: u64 = 20_000;
    let history = HistoryLimits { total_bytes: Some(LIMIT), ..HistoryLimits::default() };
    let options = FolderOptions { history, ..FolderOptions::default() };
    let pair = Pair::with(tempfile::tempdir().unwrap(), &room, options).await;
    let access =
        Access { workspace: pair.in_folder, user: pair.user, person: pair.user, need: Role::Viewer, rules: None };
    let write = async |name: &str, version: usize| {
        let put = Put {
            path: WsPath::posix(name).unwrap(),
            file_type: FileType::Document,
            content: Content::Text(long_text(version)),
            parents: Parents::Require,
            executable: None,
        };
        let commit = pair.commit(pair.in_folder, Changeset::one(Change::Put(put))).await.unwrap();
        (commit.outcomes[0].file, pair.store.history_bytes(access).await.unwrap())
    };
    let mut kept = 0;
    for version in 1..=40 {
        let (file, bytes) = write("a.txt", version).await;
        assert!(bytes <= LIMIT, "version {version}: {bytes}");
        let versions = pair.store.versions(access, file, Page { before: None, limit: 100 }).await.unwrap();
        assert_eq!(versions.len(), version);
        let first = pair.store.version(access, file, versions[versions.len() - 1].id, i64::MAX).await;
        kept += usize::from(first.is_ok());
    }
    assert!((2..20).contains(&kept), "the first version was there after {kept} commits");
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!(fs::read_to_string(pair.root.path().join("a.txt")).unwrap(), long_text(39));
    // What files hold stays, also where it is more than the limit.
    for n in 0..10 {
        write(&format!("{n}.txt"), 100 + n).await;
    }
    pair.undo(pair.in_folder).await.unwrap();
    assert!(!pair.root.path().join("9.txt").exists());
}

async fn the_oldest_history_goes_first_and_what_files_hold_stays(room: TestWorkspace) {
    const VERSIONS: usize = 20;
    let pair = Pair::of(&room).await;
    let file = WsPath::posix("a.txt").unwrap();
    let text = long_text;
    let mut id = None;
    for version in 1..=VERSIONS {
        let content = Content::Text(text(version));
        let put = Put {
            path: file.clone(),
            file_type: FileType::Document,
            content,
            parents: Parents::Require,
            executable: None,
        };
        let commit = pair.commit(pair.in_folder, Changeset::one(Change::Put(put))).await.unwrap();
        id = Some(commit.outcomes[0].file);
    }
    let access =
        Access { workspace: pair.in_folder, user: pair.user, person: pair.user, need: Role::Viewer, rules: None };
    let before = pair.store.history_bytes(access).await.unwrap();
    assert!(before > 20_000, "{before}");
    let purge = |bytes| Purge { folder_history_bytes: Some(bytes), ..Purge::default() };
    assert_eq!(pair.store.purge(purge(before)).await.unwrap().dropped, 0);
    let dropped = pair.store.purge(purge(before / 2)).await.unwrap().dropped;
    assert!((9..=11).contains(&dropped), "{dropped}");
    assert!(pair.store.history_bytes(access).await.unwrap() <= before / 2);
    let versions = pair.store.versions(access, id.unwrap(), Page { before: None, limit: 100 }).await.unwrap();
    assert_eq!(versions.len(), VERSIONS, "the versions stay, with their hashes");
    for version in versions {
        let read = pair.store.version(access, id.unwrap(), version.id, i64::MAX).await;
        let seq = usize::try_from(version.seq).unwrap();
        match read {
            Ok((_, content)) => {
                assert_eq!((seq > usize::try_from(dropped).unwrap(), content), (true, Some(Content::Text(text(seq)))));
            }
            Err(error) => {
                assert_eq!((seq <= usize::try_from(dropped).unwrap(), error.kind()), (true, ErrorKind::NotFound));
            }
        }
    }
    // However little is allowed, what the file holds now can be undone to, and from.
    pair.store.purge(purge(0)).await.unwrap();
    let put = Put {
        path: file,
        file_type: FileType::Document,
        content: Content::Text("new".into()),
        parents: Parents::Require,
        executable: None,
    };
    pair.commit(pair.in_folder, Changeset::one(Change::Put(put))).await.unwrap();
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!(fs::read_to_string(pair.root.path().join("a.txt")).unwrap(), text(VERSIONS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_database_cannot_keep_now_is_kept_later() {
    let (room, url) = TestWorkspace::on_postgres_at().await;
    let execute = |sql: &str| toolrest_testkit::Postgres::shared().execute(&url, sql);
    let pair = Pair::of(&room).await;
    let put = |name: &str| {
        let (path, content) = (WsPath::posix(name).unwrap(), Content::Text(name.to_owned()));
        Changeset::one(Change::Put(Put {
            path,
            file_type: FileType::Document,
            content,
            parents: Parents::Require,
            executable: None,
        }))
    };
    for (code, kind) in [("disk_full", ErrorKind::StorageFull), ("admin_shutdown", ErrorKind::Unavailable)] {
        execute(&format!(
            "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql
                AS $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '{code}'; END $$;
             CREATE TRIGGER fail BEFORE INSERT ON commits EXECUTE FUNCTION fail()"
        ));
        pair.commit(pair.in_folder, put(&format!("{code}-1"))).await.unwrap();
        // Its place in the journal is not given away before.
        let error = pair.commit(pair.in_folder, put(&format!("{code}-2"))).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error:?}");
        assert!(!pair.root.path().join(format!("{code}-2")).exists());
        execute("DROP TRIGGER fail ON commits");
        pair.commit(pair.in_folder, put(&format!("{code}-3"))).await.unwrap();
        let access =
            Access { workspace: pair.in_folder, user: pair.user, person: pair.user, need: Role::Viewer, rules: None };
        let commits = pair.store.commits(access, Page { before: None, limit: 2 }).await.unwrap();
        let paths: Vec<&str> = commits.iter().map(|commit| commit.changes[0].path.as_str()).collect();
        assert_eq!(paths, [format!("/{code}-3"), format!("/{code}-1")]);
    }
}

#[tokio::test]
async fn the_servers_own_data_is_in_no_workspace() {
    let (room, allowed) = (TestWorkspace::on_sqlite().await, tempfile::tempdir().unwrap());
    let (data, free) = (allowed.path().join("data"), allowed.path().join("free"));
    // The environment is made later, by which time the folder around it must not be a workspace.
    let project = allowed.path().join("project");
    let python = GuardedPath { path: project.join("python"), what: "the environment", setting: "run.python_dir" };
    let options = FolderOptions {
        allowed_roots: vec![AllowedRoot::for_all(allowed.path().canonicalize().unwrap())],
        journal_dir: data.join("journals"),
        guarded: vec![GuardedPath::data(data.clone()), python],
        history: HistoryLimits::default(),
        ..FolderOptions::default()
    };
    fs::create_dir_all(&options.journal_dir).unwrap();
    for folder in [&free, &project] {
        fs::create_dir(folder).unwrap();
    }
    let scratch = Scratch::open(&data.join("checkouts")).unwrap();
    let workspaces = StoredWorkspaces::new(Arc::clone(&room.store), options, scratch);
    let link = allowed.path().join("link");
    std::os::unix::fs::symlink(data.join("checkouts"), &link).unwrap();
    for (folder, setting) in [
        (allowed.path(), "server.data_dir"),
        (&data, "server.data_dir"),
        (&data.join("journals"), "server.data_dir"),
        (&data.join("checkouts"), "server.data_dir"),
        (&link, "server.data_dir"),
        (&project, "run.python_dir"),
    ] {
        let refusal = workspaces.allowed_root(folder, "anyone").await.unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::Forbidden, "{folder:?}");
        assert!(refusal.message.contains(setting), "{folder:?}: {}", refusal.message);
    }
    workspaces.allowed_root(&free, "anyone").await.unwrap();
}

#[tokio::test]
async fn a_root_for_some_accounts_is_opened_by_no_other() {
    let (room, home) = (TestWorkspace::on_sqlite().await, tempfile::tempdir().unwrap());
    let home_path = home.path().canonicalize().unwrap();
    let (hers, deeper, shared) = (home_path.join("hers"), home_path.join("hers/deeper"), home_path.join("shared"));
    for folder in [&deeper, &shared] {
        fs::create_dir_all(folder).unwrap();
    }
    let data = tempfile::tempdir().unwrap();
    let options = FolderOptions {
        allowed_roots: vec![
            AllowedRoot::for_all(home_path.clone()),
            AllowedRoot { folder: hers.clone(), accounts: Some(vec!["ada@example.com".into()]) },
        ],
        journal_dir: data.path().join("journals"),
        guarded: Vec::new(),
        history: HistoryLimits::default(),
        ..FolderOptions::default()
    };
    let scratch = || Scratch::open(&data.path().join("checkouts")).unwrap();
    let workspaces = StoredWorkspaces::new(Arc::clone(&room.store), options.clone(), scratch());
    for folder in [&hers, &deeper, &shared, &home_path] {
        workspaces.allowed_root(folder, "ada@example.com").await.unwrap();
    }
    workspaces.allowed_root(&shared, "bob@example.com").await.unwrap();
    // Above it, because that would show it.
    for folder in [&hers, &deeper, &home_path] {
        let refusal = workspaces.allowed_root(folder, "bob@example.com").await.unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::Forbidden, "{folder:?}");
    }
    // A workspace that was made while it was allowed is closed too, also while another has the folder open.
    let ada = new_user(&*room.store).await;
    let bob = new_user(&*room.store).await;
    let email = room.store.user(ada).await.unwrap().unwrap().email;
    let place = Location::Directory { root: hers.to_str().unwrap().to_owned() };
    let hers_id = room.store.create_workspace(ada, "hers".into(), place.clone()).await.unwrap().id;
    let his_id = room.store.create_workspace(bob, "his".into(), place).await.unwrap().id;
    let mut options = options;
    options.allowed_roots[1].accounts = Some(vec![email]);
    let workspaces = StoredWorkspaces::new(Arc::clone(&room.store), options, scratch());
    let access = |workspace, user| Access { workspace, user, person: user, need: Role::Viewer, rules: None };
    workspaces.open(access(hers_id, ada), SymbolicLinks::Follow).await.unwrap();
    for _ in 0..2 {
        let refusal = workspaces.open(access(his_id, bob), SymbolicLinks::Follow).await.err().unwrap();
        assert_eq!(refusal.kind, ErrorKind::Forbidden);
    }
}
