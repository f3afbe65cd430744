#![allow(clippy::unwrap_used)]

use super::*;
use crate::{CallInfo, Location, NewUser, Postgres, PostgresOptions, Purge, Sqlite, Store};
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use toolrest_core::{
    CallId, Change, Changeset, ChatId, Content, Destination, ErrorKind, FileId, FileType, IgnoredFiles, LinePattern,
    Parents, Put, Removal, Requirement, Role, ToolError, WorkspaceId, now,
};

/// A workspace in a store, and for PostgreSQL a second store on the same database.
struct TestStores {
    writers: Vec<Arc<dyn Store>>,
    database: Arc<dyn Searchable>,
    searcher: Arc<Searcher>,
    access: Access,
    _folder: Option<tempfile::TempDir>,
}

const CACHE_BYTES: usize = 64 << 20;

impl TestStores {
    async fn on_sqlite(cache_bytes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Sqlite::open(&folder.path().join("test.db"), cache_bytes).unwrap());
        let database = store.searchable();
        Self::new(vec![store], database, cache_bytes, Some(folder)).await
    }

    async fn on_postgres(cache_bytes: usize) -> Self {
        Self::on_postgres_with(cache_bytes, 6).await
    }

    async fn on_postgres_with(cache_bytes: usize, pool_size: usize) -> Self {
        let url = tokio::task::spawn_blocking(|| toolrest_testkit::Postgres::shared().create_database()).await.unwrap();
        let mut stores = Vec::new();
        for _ in 0..2 {
            let second = Duration::from_secs(1);
            let options = PostgresOptions {
                pool_size,
                statement_timeout: 30 * second,
                wait_timeout: 30 * second,
                search_cache_bytes: cache_bytes,
            };
            stores.push(Postgres::connect(&url, options).await.unwrap());
        }
        let database = Arc::new(stores[0].clone());
        let writers = stores.into_iter().map(|store| Arc::new(store) as Arc<dyn Store>).collect();
        Self::new(writers, database, cache_bytes, None).await
    }

    async fn new(
        writers: Vec<Arc<dyn Store>>,
        database: Arc<dyn Searchable>,
        cache_bytes: usize,
        folder: Option<tempfile::TempDir>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let email = format!("searcher-{}@example.com", NEXT.fetch_add(1, Ordering::Relaxed));
        let user = NewUser { email, password_hash: "none".into(), full_name: None };
        let user = writers[0].create_user(user).await.unwrap().id;
        let workspace = writers[0].create_workspace(user, "test".into(), Location::Database).await.unwrap().id;
        let access = Access { workspace, user, person: user, need: Role::Editor, rules: None };
        Self { writers, database, searcher: Arc::new(Searcher::new(cache_bytes)), access, _folder: folder }
    }

    async fn put(&self, path: &str, content: Content, file_type: FileType) {
        commit(&*self.writers[0], self.access, put(path, content, file_type)).await.unwrap();
    }

    async fn text(&self, path: &str, text: &str) {
        self.put(path, Content::Text(text.into()), FileType::Document).await;
    }

    async fn search(&self, needle: &str) -> Result<SearchResult> {
        self.searcher.search(Arc::clone(&self.database), self.access, search_for(needle)).await
    }
}

fn search_for(needle: &str) -> Search {
    let requirements = vec![Requirement { literals: vec![needle.as_bytes().to_vec()] }];
    Search {
        pattern: Arc::new(Literal { needle: needle.to_owned(), requirements }),
        within: WsPath::root(),
        paths: None,
        ignored: IgnoredFiles::Include,
        limit: 1000,
        context: 0,
        limit_bytes: 1 << 20,
        deadline: Instant::now() + Duration::from_secs(60),
    }
}

fn put(path: &str, content: Content, file_type: FileType) -> Change {
    Change::Put(Put {
        path: WsPath::posix(path).unwrap(),
        file_type,
        content,
        parents: Parents::Create,
        executable: None,
    })
}

async fn commit(store: &dyn Store, access: Access, change: Change) -> Result<toolrest_core::Commit> {
    let call = CallInfo {
        id: CallId::new(),
        toolset: "test".into(),
        tool: "test".into(),
        caller: access.user,
        started_at: now(),
        details: toolrest_core::CallDetails::default(),
        record: crate::RecordPlace::WithCommit,
        approval: None,
        guard: Arc::default(),
    };
    store.commit(access, Changeset::one(change), call).await
}

#[derive(Clone)]
struct Literal {
    needle: String,
    requirements: Vec<Requirement>,
}

impl LinePattern for Literal {
    fn compile(&self) -> toolrest_core::Result<Arc<dyn LineMatcher>> {
        Ok(Arc::new(self.clone()))
    }
}

impl LineMatcher for Literal {
    fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    fn find_lines(
        &self,
        text: &[u8],
        _: &Interrupt,
        found: &mut dyn FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> toolrest_core::Result<()> {
        let mut start = 0;
        for line in text.split(|byte| *byte == b'\n') {
            let range = start..start + line.len();
            start = range.end + 1;
            if String::from_utf8_lossy(line).contains(&self.needle) && found(range).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// A deterministic sequence of pseudo-random numbers.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// Makes random changes until `stop` is set. Changes that fail are ignored.
async fn change_randomly(
    store: Arc<dyn Store>,
    access: Access,
    mut random: RandomNumbers,
    stop: Arc<AtomicBool>,
) -> u64 {
    let (mut done, mut removed, mut chats): (u64, Vec<FileId>, Vec<ChatId>) = (0, Vec::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let mut file = || WsPath::posix(&format!("/d{}/f{}", random.below(5), random.below(12))).unwrap();
        let (one, other) = (file(), file());
        let folder = |n: usize| WsPath::posix(&format!("/d{n}")).unwrap();
        let change = match random.below(16) {
            0..=6 => put(one.as_str(), Content::Text(format!("text {}", random.below(1000))), FileType::Document),
            7 | 8 => Change::Move { from: one, to: Destination::Exactly(other) },
            9 => Change::Move { from: folder(random.below(5)), to: Destination::Exactly(folder(5 + random.below(2))) },
            10 => Change::Move { from: folder(5 + random.below(2)), to: Destination::Exactly(folder(random.below(5))) },
            11 | 12 => Change::Remove { path: one, removal: Removal::Single },
            13 if !removed.is_empty() => Change::Restore(removed.swap_remove(random.below(removed.len()))),
            14 if chats.len() < 3 => {
                chats.extend(store.create_chat(access, format!("chat {done}")).await.map(|chat| chat.id));
                continue;
            }
            15 if !chats.is_empty() => {
                let chat = chats[random.below(chats.len())];
                done += u64::from(store.add_message(access, chat, "user".into(), "said".into()).await.is_ok());
                continue;
            }
            _ => continue,
        };
        let is_removal = matches!(change, Change::Remove { .. });
        if let Ok(commit) = commit(&*store, access, change).await {
            done += 1;
            removed.extend(commit.outcomes.iter().filter(|_| is_removal).map(|outcome| outcome.file));
        }
    }
    done
}

/// Returns the comparable part of an index.
fn described(files: &[Arc<IndexedFile>]) -> Vec<(String, FileId, Source)> {
    files.iter().map(|file| (file.path.to_string(), file.id, file.source)).collect()
}

/// Searches a list of files in the same way as the product.
async fn answer(searcher: &Searcher, job: &Job, files: &Arc<Vec<Arc<IndexedFile>>>) -> SearchResult {
    let texts: Arc<dyn Texts> = Arc::<dyn Searchable>::clone(&job.database);
    let scan = Arc::new(Scan::new(job, job.compiled().await.unwrap(), texts));
    scan.run(files, searcher.threads, Keep::Texts).await.unwrap();
    scan.found()
}

/// Updates an index and compares it, and its search results, with the whole list of the same snapshot.
async fn update_and_compare(searcher: &Searcher, job: &Job) -> usize {
    let (memory, budget) = (searcher.cache.memory(job.access.workspace), searcher.cache.budget());
    let memory = searcher.cache.used(job.access.workspace, &memory);
    let known = memory.index();
    let (changes, mut files) = job.database.snapshot(job.access, known.cursor, KnownList::Partial).await.unwrap();
    let index = known.after(changes, budget);
    let mut all: Vec<Arc<IndexedFile>> = Vec::new();
    loop {
        let page = files.page(all.last().map(|file| &file.path), 50).await.unwrap();
        let is_last = page.len() < 50;
        all.extend(page.into_iter().map(|file| file.indexed(budget, None)));
        if is_last {
            break;
        }
    }
    if known.is_complete {
        assert_eq!(described(&index.files), described(&all));
        let (followed, fresh) =
            (answer(searcher, job, &index.files).await, answer(searcher, job, &Arc::new(all)).await);
        assert_eq!(followed, fresh);
        memory.keep(known.cursor, &index);
        return fresh.matches.len();
    }
    memory.keep(known.cursor, &index.extended(&all, true));
    all.len()
}

async fn an_updated_index_equals_the_whole_list(stores: TestStores) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for writer in 0..6 {
        let store = Arc::clone(&stores.writers[writer % stores.writers.len()]);
        writers.spawn(change_randomly(store, stores.access, RandomNumbers(writer as u64), Arc::clone(&stop)));
    }
    let mut followers = JoinSet::new();
    let end = Instant::now() + Duration::from_secs(6);
    for _ in 0..2 {
        let (searcher, database, access) = (Arc::clone(&stores.searcher), Arc::clone(&stores.database), stores.access);
        followers.spawn(async move {
            let mut answers = 0;
            while Instant::now() < end {
                // A letter that occurs in all texts.
                let search = Search { limit: 10_000, ..search_for("t") };
                let interrupt = Arc::new(Interrupt::at(search.deadline));
                let slot = Arc::new(searcher.queue.wait(access, search.deadline).await.unwrap());
                let job = Job { database: Arc::clone(&database), access, search, interrupt, slot };
                answers += usize::from(update_and_compare(&searcher, &job).await > 0);
            }
            answers
        });
    }
    let answers: usize = followers.join_all().await.iter().sum();
    stop.store(true, Ordering::Relaxed);
    let changes: u64 = writers.join_all().await.iter().sum();
    assert!(answers > 30 && changes > 200, "{answers} answers and {changes} changes are too few to tell");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_updated_index_equals_the_whole_list_on_sqlite() {
    an_updated_index_equals_the_whole_list(TestStores::on_sqlite(CACHE_BYTES).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_updated_index_equals_the_whole_list_with_two_replicas_on_postgres() {
    an_updated_index_equals_the_whole_list(TestStores::on_postgres(CACHE_BYTES).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_never_waits_for_a_second_connection() {
    let stores = Arc::new(TestStores::on_postgres_with(0, 1).await);
    for n in 0..200 {
        stores.text(&format!("/{n}.txt"), "needle").await;
    }
    let mut searches = JoinSet::new();
    for _ in 0..12 {
        let stores = Arc::clone(&stores);
        searches.spawn(async move { stores.search("needle").await.unwrap().matches.len() });
    }
    assert!(searches.join_all().await.into_iter().all(|found| found == 200));
}

async fn a_search_that_times_out_leaves_texts_in_the_cache(stores: TestStores) {
    for n in 0..1_000 {
        stores.text(&format!("/{n:04}.txt"), "needle").await;
    }
    let slow = |pause_ms: u64| Search {
        pattern: Arc::new(Slow { pause: Duration::from_millis(pause_ms) }),
        deadline: Instant::now() + Duration::from_millis(1_500),
        ..search_for("needle")
    };
    let access = stores.access;
    let timed_out = stores.searcher.search(Arc::clone(&stores.database), access, slow(20)).await.unwrap_err();
    assert_eq!(timed_out.kind(), ErrorKind::Timeout);
    let index = stores.searcher.cache.memory(access.workspace).index();
    let cached = index.files.iter().filter(|file| file.text.is_cached()).count();
    assert!(cached > 20, "{cached} texts of {} files are kept", index.files.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_times_out_leaves_texts_in_the_cache_on_sqlite() {
    a_search_that_times_out_leaves_texts_in_the_cache(TestStores::on_sqlite(CACHE_BYTES).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_times_out_leaves_texts_in_the_cache_on_postgres() {
    a_search_that_times_out_leaves_texts_in_the_cache(TestStores::on_postgres(CACHE_BYTES).await).await;
}

/// Pauses for each text and finds exclamation marks; on the text "for ever" it runs until it is interrupted.
#[derive(Clone)]
struct Slow {
    pause: Duration,
}

impl LinePattern for Slow {
    fn compile(&self) -> toolrest_core::Result<Arc<dyn LineMatcher>> {
        Ok(Arc::new(self.clone()))
    }
}

impl LineMatcher for Slow {
    fn requirements(&self) -> &[Requirement] {
        &[]
    }

    #[allow(clippy::disallowed_methods, reason = "it is slow on purpose")]
    fn find_lines(
        &self,
        text: &[u8],
        interrupt: &Interrupt,
        found: &mut dyn FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> toolrest_core::Result<()> {
        thread::sleep(self.pause);
        if text == b"for ever" {
            while !interrupt.is_due() {
                thread::sleep(Duration::from_millis(1));
            }
            return Err(ToolError::new(ErrorKind::Cancelled, "stopped"));
        }
        for (start, byte) in text.iter().enumerate() {
            if *byte == b'!' && found(start..start + 1).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_complete_answer_does_not_wait_for_later_files() {
    let stores = TestStores::on_sqlite(CACHE_BYTES).await;
    for n in 0..16 {
        stores.text(&format!("/a{n:02}.txt"), &"!".repeat(100)).await;
    }
    for n in 0..32 {
        stores.text(&format!("/b{n:02}.txt"), "for ever").await;
    }
    let search = Search { pattern: Arc::new(Slow { pause: Duration::ZERO }), ..search_for("!") };
    let started = Instant::now();
    let found = stores.searcher.search(Arc::clone(&stores.database), stores.access, search).await.unwrap();
    assert_eq!((found.matches.len(), found.truncated), (1000, true));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_account_cannot_take_all_search_slots() {
    let stores = Arc::new(TestStores::on_sqlite(CACHE_BYTES).await);
    stores.text("/slow.txt", "for ever").await;
    let user = NewUser { email: "other@example.com".into(), password_hash: "none".into(), full_name: None };
    let user = stores.writers[0].create_user(user).await.unwrap().id;
    let other = stores.writers[0].create_workspace(user, "other".into(), Location::Database).await.unwrap().id;
    let other = Access { workspace: other, user, person: user, ..stores.access };
    let change = put("/a.txt", Content::Text("needle".into()), FileType::Document);
    commit(&*stores.writers[0], other, change).await.unwrap();
    let mut other_searches = JoinSet::new();
    for _ in 0..50 {
        let stores = Arc::clone(&stores);
        other_searches.spawn(async move {
            let search = Search { pattern: Arc::new(Slow { pause: Duration::ZERO }), ..search_for("!") };
            stores.searcher.search(Arc::clone(&stores.database), stores.access, search).await
        });
    }
    while stores.searcher.queue.has_free_slot(stores.access) {
        tokio::task::yield_now().await;
    }
    let search = Search { deadline: Instant::now() + Duration::from_secs(20), ..search_for("needle") };
    let found = stores.searcher.search(Arc::clone(&stores.database), other, search).await.unwrap();
    assert_eq!(found.matches.len(), 1);
    other_searches.abort_all();
}

async fn an_index_older_than_the_recorded_changes_is_rebuilt(stores: TestStores) {
    stores.text("/a.txt", "needle").await;
    assert_eq!(stores.search("needle").await.unwrap().matches.len(), 1);
    for round in 0..11_000 / 100 {
        let changes = (0..100).map(|n| {
            put(&format!("/f{}", (round * 100 + n) % 300), Content::Text(round.to_string()), FileType::Document)
        });
        let call = CallInfo {
            id: CallId::new(),
            toolset: "test".into(),
            tool: "test".into(),
            caller: stores.access.user,
            started_at: now(),
            details: toolrest_core::CallDetails::default(),
            record: crate::RecordPlace::WithCommit,
            approval: None,
            guard: Arc::default(),
        };
        let changes = Changeset { changes: changes.collect(), ..Changeset::default() };
        stores.writers[0].commit(stores.access, changes, call).await.unwrap();
    }
    // A purge deletes the changes recorded before the previous purge.
    for _ in 0..2 {
        stores.writers[0].purge(Purge::default()).await.unwrap();
    }
    stores.text("/b.txt", "needle").await;
    let found: Vec<String> =
        stores.search("needle").await.unwrap().matches.iter().map(|one| one.path.to_string()).collect();
    assert_eq!(found, ["/a.txt", "/b.txt"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_older_than_the_recorded_changes_is_rebuilt_on_sqlite() {
    an_index_older_than_the_recorded_changes_is_rebuilt(TestStores::on_sqlite(CACHE_BYTES).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_older_than_the_recorded_changes_is_rebuilt_on_postgres() {
    an_index_older_than_the_recorded_changes_is_rebuilt(TestStores::on_postgres(CACHE_BYTES).await).await;
}

async fn binary_files_are_counted(stores: TestStores) {
    stores.put("/a.bin", Content::Bytes(b"needle\0\xff".to_vec()), FileType::File).await;
    stores.text("/b.txt", "needle").await;
    for _ in 0..2 {
        let found = stores.search("needle").await.unwrap();
        assert_eq!((found.matches.len(), found.skipped.binary), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn binary_files_are_counted_on_sqlite() {
    binary_files_are_counted(TestStores::on_sqlite(CACHE_BYTES).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn binary_files_are_counted_on_postgres() {
    binary_files_are_counted(TestStores::on_postgres(0).await).await;
}

fn lines(count: usize, words: &str) -> String {
    (0..count).flat_map(|line| [words.to_owned(), format!(" on line {line}\n")]).collect()
}

async fn the_cache_stays_within_its_limit(stores: TestStores, cache_bytes: usize) {
    let mut workspaces: Vec<WorkspaceId> = vec![stores.access.workspace];
    for n in 0..5 {
        workspaces.push(
            stores.writers[0]
                .create_workspace(stores.access.user, format!("workspace {n}"), Location::Database)
                .await
                .unwrap()
                .id,
        );
    }
    let filler = lines(3_000, "some words");
    for workspace in &workspaces {
        let access = Access { workspace: *workspace, ..stores.access };
        for n in 0..20 {
            let text = format!("{filler}{}needle {n}\n", n * 7919);
            let change = put(&format!("/{n}.txt"), Content::Text(text), FileType::Document);
            commit(&*stores.writers[0], access, change).await.unwrap();
        }
    }
    // Some workspaces are searched rarely, others all the time.
    let order: Vec<usize> = (0..6).chain([0, 1, 0, 2, 0, 3, 5, 4, 0]).collect();
    let mut most = 0;
    for at in order {
        let access = Access { workspace: workspaces[at], ..stores.access };
        let found = stores.searcher.search(Arc::clone(&stores.database), access, search_for("needle")).await.unwrap();
        assert_eq!(found.matches.len(), 20);
        most = most.max(stores.searcher.cache.used_bytes());
    }
    let whole = 6 * 20 * filler.len();
    assert!(most <= cache_bytes, "{most} of {cache_bytes}");
    assert!(whole > 2 * cache_bytes && most > cache_bytes / 4, "{most} of {cache_bytes}, with {whole} in all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cache_stays_within_its_limit_on_sqlite() {
    the_cache_stays_within_its_limit(TestStores::on_sqlite(2 << 20).await, 2 << 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cache_stays_within_its_limit_on_postgres() {
    the_cache_stays_within_its_limit(TestStores::on_postgres(3 << 20).await, 3 << 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_larger_than_the_cache_keeps_what_fits() {
    let stores = TestStores::on_sqlite(1 << 20).await;
    for n in 0..40 {
        let text = lines(3_000, &format!("some words of {n}"));
        stores.text(&format!("/{n:02}.txt"), &format!("{text}needle")).await;
    }
    for _ in 0..6 {
        assert_eq!(stores.search("needle").await.unwrap().matches.len(), 40);
        // In the product this runs in the background; the test waits for it.
        stores.searcher.cache.evict();
    }
    let index = stores.searcher.cache.memory(stores.access.workspace).index();
    let cached: BTreeSet<bool> = index.files.iter().map(|file| file.text.is_cached()).collect();
    assert!(cached.contains(&true), "something is kept");
    assert!(stores.searcher.cache.used_bytes() <= 1 << 20);
}
