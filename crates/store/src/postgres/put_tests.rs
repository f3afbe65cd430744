//! Compares the one-statement put with the plan: both get the same random puts on the same random states.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::accounts::NewUser;
use crate::blob::{Compression, prepare};
use crate::{AccountStore, CallInfo, FileStore, Location, PostgresOptions, RecordPlace, WorkspaceStore};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use toolrest_core::{
    Access, CallDetails, CallId, Content, Destination, FileType, JsonText, Parents, Removal, Role, UserId, WorkspaceId,
    WsPath,
};

/// The paths that changes choose from: files and folders at the root, below a folder, and below what may be a file.
const PATHS: [&str; 9] = ["/a", "/b", "/d", "/d/a", "/d/e", "/d/e/a", "/a/x", "/chats", "/chats/chat.chat"];

const ROLES: [Role; 3] = [Role::Viewer, Role::Editor, Role::Owner];

/// A file, by the index of a path. It stands for the file that has the path when the step is applied.
type PathIndex = prop::sample::Index;

/// A condition of a put. Values of existing files make conditions that hold, and conditions that another file meets.
#[derive(Clone, Debug)]
enum Condition {
    Hash { path: PathIndex, hash_of: PathIndex },
    Absent(PathIndex),
    NotEncoded(PathIndex),
    Version { file: PathIndex, version_of: PathIndex },
    At { file: PathIndex, path: PathIndex },
}

/// A put that both implementations apply.
#[derive(Clone, Debug)]
struct TestedPut {
    path: PathIndex,
    file_type: FileType,
    content: Content,
    parents: Parents,
    executable: Option<bool>,
    conditions: Vec<Condition>,
    need: Role,
}

/// A step that changes the state, or a put that is compared.
#[derive(Clone, Debug)]
enum Step {
    Put(TestedPut),
    MakeDir(PathIndex),
    Remove(PathIndex),
    Move(PathIndex, PathIndex),
    CreateChat,
    SetRole(Role),
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        4 => "[a-c]{0,3}".prop_map(Content::Text),
        2 => Just(Content::Bytes(b"\0\xff\xfe".to_vec())),
        2 => Just(Content::of_bytes("\u{feff}marked".into())),
        2 => Just(Content::Json(JsonText::parse(r#"{"text":"document"}"#.to_owned()).unwrap())),
        // Long enough to be compressed.
        1 => Just(Content::Text("repeated ".repeat(200))),
    ]
}

fn file_type() -> impl Strategy<Value = FileType> {
    use FileType::{Canvas, Chat, Document, File, Folder};
    prop_oneof![6 => Just(Document), 3 => Just(File), 1 => Just(Canvas), 1 => Just(Chat), 1 => Just(Folder)]
}

fn condition() -> impl Strategy<Value = Condition> {
    let path = any::<PathIndex>;
    prop_oneof![
        (path(), path()).prop_map(|(path, hash_of)| Condition::Hash { path, hash_of }),
        path().prop_map(|path| Condition::Hash { path, hash_of: path }),
        path().prop_map(Condition::Absent),
        path().prop_map(Condition::NotEncoded),
        (path(), path()).prop_map(|(file, version_of)| Condition::Version { file, version_of }),
        path().prop_map(|file| Condition::Version { file, version_of: file }),
        (path(), path()).prop_map(|(file, path)| Condition::At { file, path }),
    ]
}

fn tested_put() -> impl Strategy<Value = TestedPut> {
    let parents = prop_oneof![Just(Parents::Create), Just(Parents::Require)];
    let executable = prop_oneof![8 => Just(None), 1 => any::<bool>().prop_map(Some)];
    let conditions = prop_oneof![3 => Just(Vec::new()), 3 => prop::collection::vec(condition(), 1..3)];
    let need = prop_oneof![6 => Just(Role::Editor), 1 => Just(Role::Viewer), 1 => Just(Role::Owner)];
    let put = (any::<PathIndex>(), file_type(), content(), parents, executable, conditions, need);
    put.prop_flat_map(|(path, file_type, content, parents, executable, conditions, need)| {
        // Most conditions are about the file that is put: others rarely decide.
        let own = any::<bool>().prop_map(move |is_own| is_own.then_some(path));
        let fitting_type = content.form().plain_type();
        let file_type = prop_oneof![2 => Just(fitting_type), 1 => Just(file_type)];
        (own, file_type, Just((path, content, parents, executable, conditions, need)))
    })
    .prop_map(|(own, file_type, (path, content, parents, executable, mut conditions, need))| {
        if let Some(own) = own {
            for condition in &mut conditions {
                condition.retarget(own);
            }
        }
        TestedPut { path, file_type, content, parents, executable, conditions, need }
    })
}

impl Condition {
    /// Makes the condition be about this path; the value that is expected stays.
    fn retarget(&mut self, own: PathIndex) {
        match self {
            Self::Hash { path, .. } | Self::Absent(path) | Self::NotEncoded(path) | Self::At { file: path, .. } => {
                *path = own;
            }
            Self::Version { version_of, .. } => *version_of = own,
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let path = any::<PathIndex>;
    prop_oneof![
        12 => tested_put().prop_map(Step::Put),
        2 => path().prop_map(Step::MakeDir),
        2 => path().prop_map(Step::Remove),
        2 => (path(), path()).prop_map(|(from, to)| Step::Move(from, to)),
        1 => Just(Step::CreateChat),
        1 => prop::sample::select(&ROLES[..]).prop_map(Step::SetRole),
    ]
}

/// A workspace with an owner, and a member who makes the puts.
struct TestWorkspace {
    store: Postgres,
    workspace: WorkspaceId,
    owner: UserId,
    member: UserId,
}

impl TestWorkspace {
    async fn create(store: &Postgres) -> Self {
        let (owner, _) = new_user(store).await;
        let (member, email) = new_user(store).await;
        let workspace = store.create_workspace(owner, "tested".into(), Location::Database).await.unwrap().id;
        let created = Self { store: store.clone(), workspace, owner, member };
        store.add_member(created.access(owner, Role::Owner), email, Role::Editor).await.unwrap();
        created
    }

    fn access(&self, user: UserId, need: Role) -> Access {
        Access { workspace: self.workspace, user, person: user, need, rules: None }
    }

    fn call(&self) -> CallInfo {
        let (toolset, tool) = ("test".into(), "put".into());
        let details = CallDetails {
            correlation: "correlation".into(),
            key: None,
            path: Some(WsPath::posix("/a").unwrap()),
            args: Some(r#"{"content":"x"}"#.into()),
        };
        let record = RecordPlace::WithCommit;
        CallInfo {
            id: CallId::new(),
            toolset,
            tool,
            caller: self.member,
            started_at: now(),
            details,
            record,
            approval: None,
            guard: Arc::default(),
        }
    }

    /// The file or folder that has the path now.
    async fn entry(&self, path: PathIndex) -> Option<toolrest_core::Entry> {
        self.store.stat(self.access(self.owner, Role::Owner), &at(path)).await.unwrap()
    }

    async fn changeset(&self, put: &TestedPut) -> Changeset {
        let mut expect = Vec::new();
        for condition in &put.conditions {
            expect.push(match condition {
                Condition::Absent(path) => Expect::Absent(at(*path)),
                Condition::NotEncoded(path) => Expect::NotEncoded(at(*path)),
                Condition::Hash { path, hash_of } => {
                    let hash = self.entry(*hash_of).await.and_then(|entry| entry.hash);
                    Expect::Hash(at(*path), hash.unwrap_or(ContentHash([0; 32])))
                }
                Condition::Version { file, version_of } => {
                    let version = self.entry(*version_of).await.and_then(|entry| entry.version);
                    Expect::Version(self.file(*file).await, version.unwrap_or(VersionId(uuid::Uuid::nil())))
                }
                Condition::At { file, path } => Expect::At(self.file(*file).await, at(*path)),
            });
        }
        let TestedPut { path, file_type, content, parents, executable, .. } = put.clone();
        let change = Change::Put(Put { path: at(path), file_type, content, parents, executable });
        Changeset::one(change).expecting(expect)
    }

    async fn file(&self, path: PathIndex) -> FileId {
        self.entry(path).await.map_or(FileId(uuid::Uuid::nil()), |entry| entry.id)
    }

    /// Applies a step other than a put; returns whether it succeeded.
    async fn apply(&self, step: &Step, number: usize) -> bool {
        let owner = self.access(self.owner, Role::Owner);
        let change = match step {
            Step::Put(_) => return true,
            Step::MakeDir(path) => Change::MakeDir(at(*path)),
            Step::Remove(path) => Change::Remove { path: at(*path), removal: Removal::Single },
            Step::Move(from, to) => Change::Move { from: at(*from), to: Destination::Exactly(at(*to)) },
            Step::CreateChat if self.entry_at("/chats/chat.chat").await => return true,
            Step::CreateChat => return self.store.create_chat(owner, "chat".into()).await.is_ok(),
            Step::SetRole(role) => return self.store.set_role(owner, self.member, *role).await.is_ok(),
        };
        let call = CallInfo { tool: format!("step {number}").into(), ..self.call() };
        let pending = self.pending(owner, Changeset::one(change), vec![None], call).await;
        self.store.commit_in_transaction(&pending).await.is_ok()
    }

    async fn entry_at(&self, path: &str) -> bool {
        let access = self.access(self.owner, Role::Owner);
        self.store.stat(access, &WsPath::posix(path).unwrap()).await.unwrap().is_some()
    }

    async fn pending(
        &self,
        access: Access,
        changes: Changeset,
        contents: Vec<Option<Prepared>>,
        call: CallInfo,
    ) -> Arc<PendingCommit> {
        let reserved = crate::quota::reserve(&self.store, access, 0).await.unwrap();
        let signals = Arc::clone(&self.store.signals);
        Arc::new(PendingCommit { access, changes, contents, call, reserved, signals })
    }

    /// Applies a put by the plan.
    async fn put_by_plan(&self, put: &TestedPut) -> std::result::Result<i64, String> {
        let (changes, contents) = prepare(self.changeset(put).await, Compression::WherePays).await.unwrap();
        let access = self.access(self.member, put.need);
        let put = self.store.commit_in_transaction(&self.pending(access, changes, contents, self.call()).await).await;
        put.map(|(_, stored)| stored).map_err(|error| error.to_string())
    }

    /// Applies a put by the one statement; none if the statement leaves it to the plan.
    async fn put_by_statement(&self, put: &TestedPut) -> Option<std::result::Result<i64, String>> {
        let (changes, contents) = prepare(self.changeset(put).await, Compression::WherePays).await.unwrap();
        let access = self.access(self.member, put.need);
        let put = self.store.put_in_one_statement(&self.pending(access, changes, contents, self.call()).await).await;
        put.map(|put| put.map(|(_, stored)| stored)).map_err(|error| error.to_string()).transpose()
    }

    /// All rows of the workspace as text. Ids are replaced by numbers in the order in which they were created.
    async fn dump(&self) -> Vec<String> {
        let mut ids: Vec<(String, String)> = Vec::new();
        let mut dump = Vec::new();
        for (table, sql) in DUMPS {
            for row in self.store.execute(sql, &[&self.workspace.0]).await.unwrap() {
                let mut text: String = row.get(0);
                for (id, name) in &ids {
                    text = text.replace(id, name);
                }
                if let Some(id) = row.get::<_, Option<String>>(1) {
                    ids.push((id, format!("{table} {}", ids.len())));
                }
                dump.push(format!("{table}: {text}"));
            }
        }
        dump
    }
}

/// For each table: its rows as text, in the order of their creation, and the id that later rows refer to. Times are
/// replaced by whether they are that of the last commit.
const DUMPS: [(&str, &str); 6] = [
    (
        "file",
        "SELECT ROW(path, dir, name, display_name, kind, is_virtual, head_seq, head_hash, head_blob, head_form, size, mode,
             deleted_at IS NOT NULL, updated_at = (SELECT max(created_at) FROM commits WHERE ws = $1),
             created_at = (SELECT max(created_at) FROM commits WHERE ws = $1),
             (SELECT v.seq FROM versions v WHERE v.ws = f.ws AND v.file_id = f.id AND v.id = f.head_version))::text, id::text
         FROM files f WHERE ws = $1 ORDER BY id",
    ),
    (
        "version",
        "SELECT ROW(file_id, seq, hash, form, blob, size, (SELECT m.role FROM members m WHERE m.ws = $1 AND m.user_id = author),
             (SELECT count(*) FROM commits c WHERE c.ws = $1 AND c.id <= commit_id), created_at = (
                 SELECT c.created_at FROM commits c WHERE c.ws = $1 AND c.id = commit_id))::text, id::text
         FROM versions WHERE ws = $1 ORDER BY id",
    ),
    ("blob", "SELECT ROW(key, size, encoding, data, signature)::text, NULL FROM blobs WHERE ws = $1 ORDER BY key"),
    (
        "commit",
        "SELECT ROW(toolset, tool, undoes, changes::jsonb, (SELECT m.role FROM members m
             WHERE m.ws = $1 AND m.user_id = author))::text, id::text
         FROM commits WHERE ws = $1 ORDER BY id",
    ),
    (
        "call",
        "SELECT ROW(correlation, principal = user_id, toolset, tool, path, args, outcome, message, commit_id, duration_us >= 0,
             (SELECT m.role FROM members m WHERE m.ws = $1 AND m.user_id = calls.user_id))::text, NULL
         FROM calls WHERE ws = $1 AND tool = 'put' ORDER BY id",
    ),
    ("change", "SELECT ROW(file_id, count(*))::text, NULL FROM changes WHERE ws = $1 GROUP BY file_id ORDER BY file_id"),
];

fn at(path: PathIndex) -> WsPath {
    WsPath::posix(PATHS[path.index(PATHS.len())]).unwrap()
}

async fn new_user(store: &Postgres) -> (UserId, String) {
    let email = format!("{}@example.com", uuid::Uuid::now_v7());
    let user = NewUser { email: email.clone(), password_hash: "none".into(), full_name: None };
    (store.create_user(user).await.unwrap().id, email)
}

/// Applies the steps to two workspaces that are equal at first: the puts by the statement to the one, and by the plan to
/// the other. Returns how many puts there were, and how many the statement made.
async fn compare(store: &Postgres, steps: &[Step]) -> std::result::Result<(usize, usize), TestCaseError> {
    let (tested, reference) = (TestWorkspace::create(store).await, TestWorkspace::create(store).await);
    let (mut puts, mut by_statement) = (0, 0);
    for (number, step) in steps.iter().enumerate() {
        let Step::Put(put) = step else {
            prop_assert_eq!(tested.apply(step, number).await, reference.apply(step, number).await);
            continue;
        };
        puts += 1;
        let before = tested.dump().await;
        let planned = reference.put_by_plan(put).await;
        if let Some(put) = tested.put_by_statement(put).await {
            by_statement += 1;
            prop_assert_eq!(put, planned, "step {}", number);
        } else {
            prop_assert_eq!(tested.dump().await, before, "step {} is left to the plan but changes rows", number);
            let _ = tested.put_by_plan(put).await;
        }
        prop_assert_eq!(tested.dump().await, reference.dump().await, "after step {}", number);
    }
    Ok((puts, by_statement))
}

#[test]
fn the_one_statement_put_decides_and_writes_as_the_plan_does() {
    let url = toolrest_testkit::Postgres::shared().create_database();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let second = Duration::from_secs(1);
    let options = PostgresOptions {
        pool_size: 2,
        statement_timeout: 30 * second,
        wait_timeout: 30 * second,
        search_cache_bytes: 0,
    };
    let store = runtime.block_on(Postgres::connect(&url, options)).unwrap();
    let (all, by_statement) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut runner =
        TestRunner::new(Config { cases: 100, max_shrink_iters: 200, failure_persistence: None, ..Config::default() });
    runner
        .run(&prop::collection::vec(step(), 1..25), |steps| {
            let (puts, made) = runtime.block_on(compare(&store, &steps))?;
            all.fetch_add(puts, Ordering::Relaxed);
            by_statement.fetch_add(made, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
    let (all, by_statement) = (all.into_inner(), by_statement.into_inner());
    assert!(by_statement > all / 10, "the statement made only {by_statement} of {all} puts");
}
