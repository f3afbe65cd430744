#![allow(clippy::unwrap_used)]

use super::*;
use crate::{CallInfo, NewUser, Place, Postgres, PostgresOptions, Purge, Sqlite, Store};
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use toolrest_core::{
    CallId, Change, Changeset, ChatId, Content, Destination, ErrorKind, FileId, FileType, IgnoredFiles, LinePattern,
    Parents, Put, Removal, Requirement, Role, ToolError, WorkspaceId, now,
};

/// A store with a workspace, and a second store on the same database where there can be one.
struct Room {
    writers: Vec<Arc<dyn Store>>,
    database: Arc<dyn Searchable>,
    searcher: Arc<Searcher>,
    access: Access,
    _folder: Option<tempfile::TempDir>,
}

const CACHE_BYTES: usize = 64 << 20;

impl Room {
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
        let workspace = writers[0].create_workspace(user, "room".into(), Place::Database).await.unwrap().id;
        let access = Access { workspace, user, need: Role::Editor };
        Self { writers, database, searcher: Arc::new(Searcher::new(cache_bytes)), access, _folder: folder }
    }

    async fn put(&self, path: &str, content: Content, file_type: FileType) {
        commit(&*self.writers[0], self.access, put(path, content, file_type)).await.unwrap();
    }

    async fn text(&self, path: &str, text: &str) {
        self.put(path, Content::Text(text.into()), FileType::Document).await;
    }

    async fn search(&self, needle: &str) -> Result<Found> {
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

/// Numbers that look random and are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// Changes files in every way there is, until told to stop. What cannot be done just now is left out.
async fn meddle(store: Arc<dyn Store>, access: Access, mut dice: Dice, stop: Arc<AtomicBool>) -> u64 {
    let (mut done, mut removed, mut chats): (u64, Vec<FileId>, Vec<ChatId>) = (0, Vec::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let mut file = || WsPath::posix(&format!("/d{}/f{}", dice.roll(5), dice.roll(12))).unwrap();
        let (one, other) = (file(), file());
        let folder = |n: usize| WsPath::posix(&format!("/d{n}")).unwrap();
        let change = match dice.roll(16) {
            0..=6 => put(one.as_str(), Content::Text(format!("text {}", dice.roll(1000))), FileType::Document),
            7 | 8 => Change::Move { from: one, to: Destination::Exactly(other) },
            9 => Change::Move { from: folder(dice.roll(5)), to: Destination::Exactly(folder(5 + dice.roll(2))) },
            10 => Change::Move { from: folder(5 + dice.roll(2)), to: Destination::Exactly(folder(dice.roll(5))) },
            11 | 12 => Change::Remove { path: one, removal: Removal::Single },
            13 if !removed.is_empty() => Change::Restore(removed.swap_remove(dice.roll(removed.len()))),
            14 if chats.len() < 3 => {
                chats.extend(store.create_chat(access, format!("chat {done}")).await.map(|chat| chat.id));
                continue;
            }
            15 if !chats.is_empty() => {
                let chat = chats[dice.roll(chats.len())];
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

/// What an index says, so that two can be compared.
fn said(files: &[Arc<IndexedFile>]) -> Vec<(String, FileId, Source)> {
    files.iter().map(|file| (file.path.to_string(), file.id, file.source)).collect()
}

/// Searches a list of files, as the product does.
async fn answer(searcher: &Searcher, job: &Job, files: &Arc<Vec<Arc<IndexedFile>>>) -> Found {
    let texts: Arc<dyn Texts> = Arc::<dyn Searchable>::clone(&job.database);
    let scan = Arc::new(Scan::new(job, job.compiled().await.unwrap(), texts));
    scan.run(files, searcher.threads, Keep::Texts).await.unwrap();
    scan.found()
}

/// Brings an index up to date and compares it, and what is found by it, with the whole list of the same snapshot.
async fn follow(searcher: &Searcher, job: &Job) -> usize {
    let (memory, books) = (searcher.cache.memory(job.access.workspace), searcher.cache.books());
    let memory = searcher.cache.used(job.access.workspace, &memory);
    let known = memory.index();
    let (changes, mut files) = job.database.snapshot(job.access, known.cursor, Rest::Unknown).await.unwrap();
    let index = known.after(changes, books);
    let mut all: Vec<Arc<IndexedFile>> = Vec::new();
    loop {
        let page = files.page(all.last().map(|file| &file.path), 50).await.unwrap();
        let is_last = page.len() < 50;
        all.extend(page.into_iter().map(|file| file.indexed(books, None)));
        if is_last {
            break;
        }
    }
    if known.is_complete {
        assert_eq!(said(&index.files), said(&all));
        let (followed, fresh) =
            (answer(searcher, job, &index.files).await, answer(searcher, job, &Arc::new(all)).await);
        assert_eq!(followed, fresh);
        memory.keep(known.cursor, &index);
        return fresh.matches.len();
    }
    memory.keep(known.cursor, &index.extended(&all, true));
    all.len()
}

async fn no_index_is_ever_stale(room: Room) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for writer in 0..6 {
        let store = Arc::clone(&room.writers[writer % room.writers.len()]);
        writers.spawn(meddle(store, room.access, Dice(writer as u64), Arc::clone(&stop)));
    }
    let mut followers = JoinSet::new();
    let end = Instant::now() + Duration::from_secs(6);
    for _ in 0..2 {
        let (searcher, database, access) = (Arc::clone(&room.searcher), Arc::clone(&room.database), room.access);
        followers.spawn(async move {
            let mut answers = 0;
            while Instant::now() < end {
                // Among the words of all texts and chats.
                let search = Search { limit: 10_000, ..search_for("t") };
                let interrupt = Arc::new(Interrupt::at(search.deadline));
                let turn = Arc::new(searcher.turns.wait(access, search.deadline).await.unwrap());
                let job = Job { database: Arc::clone(&database), access, search, interrupt, turn };
                answers += usize::from(follow(&searcher, &job).await > 0);
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
async fn no_index_is_ever_stale_on_sqlite() {
    no_index_is_ever_stale(Room::on_sqlite(CACHE_BYTES).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_index_is_ever_stale_with_two_replicas_on_postgres() {
    no_index_is_ever_stale(Room::on_postgres(CACHE_BYTES).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_never_waits_for_a_second_connection() {
    let room = Arc::new(Room::on_postgres_with(0, 1).await);
    for n in 0..200 {
        room.text(&format!("/{n}.txt"), "needle").await;
    }
    let mut searches = JoinSet::new();
    for _ in 0..12 {
        let room = Arc::clone(&room);
        searches.spawn(async move { room.search("needle").await.unwrap().matches.len() });
    }
    assert!(searches.join_all().await.into_iter().all(|found| found == 200));
}

async fn an_unfinished_search_leaves_the_next_one_less_to_do(room: Room) {
    for n in 0..1_000 {
        room.text(&format!("/{n:04}.txt"), "needle").await;
    }
    let slow = |pause_ms: u64| Search {
        pattern: Arc::new(Slow { pause: Duration::from_millis(pause_ms) }),
        deadline: Instant::now() + Duration::from_millis(1_500),
        ..search_for("needle")
    };
    let access = room.access;
    let timed_out = room.searcher.search(Arc::clone(&room.database), access, slow(20)).await.unwrap_err();
    assert_eq!(timed_out.kind(), ErrorKind::Timeout);
    let index = room.searcher.cache.memory(access.workspace).index();
    let held = index.files.iter().filter(|file| file.text.is_held()).count();
    assert!(held > 20, "{held} texts of {} files are kept", index.files.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unfinished_search_leaves_the_next_one_less_to_do_on_sqlite() {
    an_unfinished_search_leaves_the_next_one_less_to_do(Room::on_sqlite(CACHE_BYTES).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unfinished_search_leaves_the_next_one_less_to_do_on_postgres() {
    an_unfinished_search_leaves_the_next_one_less_to_do(Room::on_postgres(CACHE_BYTES).await).await;
}

/// Takes its time over each text and finds nothing; over a text that says so, it takes for ever.
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
async fn an_answer_that_is_complete_does_not_wait_for_what_comes_after_it() {
    let room = Room::on_sqlite(CACHE_BYTES).await;
    for n in 0..16 {
        room.text(&format!("/a{n:02}.txt"), &"!".repeat(100)).await;
    }
    for n in 0..32 {
        room.text(&format!("/b{n:02}.txt"), "for ever").await;
    }
    let search = Search { pattern: Arc::new(Slow { pause: Duration::ZERO }), ..search_for("!") };
    let begun = Instant::now();
    let found = room.searcher.search(Arc::clone(&room.database), room.access, search).await.unwrap();
    assert_eq!((found.matches.len(), found.truncated), (1000, true));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_account_cannot_take_all_turns() {
    let room = Arc::new(Room::on_sqlite(CACHE_BYTES).await);
    room.text("/slow.txt", "for ever").await;
    let user = NewUser { email: "other@example.com".into(), password_hash: "none".into(), full_name: None };
    let user = room.writers[0].create_user(user).await.unwrap().id;
    let other = room.writers[0].create_workspace(user, "other".into(), Place::Database).await.unwrap().id;
    let other = Access { workspace: other, user, ..room.access };
    let change = put("/a.txt", Content::Text("needle".into()), FileType::Document);
    commit(&*room.writers[0], other, change).await.unwrap();
    let mut crowd = JoinSet::new();
    for _ in 0..50 {
        let room = Arc::clone(&room);
        crowd.spawn(async move {
            let search = Search { pattern: Arc::new(Slow { pause: Duration::ZERO }), ..search_for("!") };
            room.searcher.search(Arc::clone(&room.database), room.access, search).await
        });
    }
    while room.searcher.turns.is_free_for(room.access) {
        tokio::task::yield_now().await;
    }
    let search = Search { deadline: Instant::now() + Duration::from_secs(20), ..search_for("needle") };
    let found = room.searcher.search(Arc::clone(&room.database), other, search).await.unwrap();
    assert_eq!(found.matches.len(), 1);
    crowd.abort_all();
}

async fn changes_that_were_forgotten_make_it_read_anew(room: Room) {
    room.text("/a.txt", "needle").await;
    assert_eq!(room.search("needle").await.unwrap().matches.len(), 1);
    for round in 0..11_000 / 100 {
        let changes = (0..100).map(|n| {
            put(&format!("/f{}", (round * 100 + n) % 300), Content::Text(round.to_string()), FileType::Document)
        });
        let call = CallInfo {
            id: CallId::new(),
            toolset: "test".into(),
            tool: "test".into(),
            caller: room.access.user,
            started_at: now(),
        };
        let changes = Changeset { changes: changes.collect(), ..Changeset::default() };
        room.writers[0].commit(room.access, changes, call).await.unwrap();
    }
    // The second purge forgets what was there at the first.
    for _ in 0..2 {
        room.writers[0].purge(Purge::default()).await.unwrap();
    }
    room.text("/b.txt", "needle").await;
    let found: Vec<String> =
        room.search("needle").await.unwrap().matches.iter().map(|one| one.path.to_string()).collect();
    assert_eq!(found, ["/a.txt", "/b.txt"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_were_forgotten_make_it_read_anew_on_sqlite() {
    changes_that_were_forgotten_make_it_read_anew(Room::on_sqlite(CACHE_BYTES).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_were_forgotten_make_it_read_anew_on_postgres() {
    changes_that_were_forgotten_make_it_read_anew(Room::on_postgres(CACHE_BYTES).await).await;
}

async fn what_is_no_text_is_counted(room: Room) {
    room.put("/a.bin", Content::Bytes(b"needle\0\xff".to_vec()), FileType::File).await;
    room.text("/b.txt", "needle").await;
    for _ in 0..2 {
        let found = room.search("needle").await.unwrap();
        assert_eq!((found.matches.len(), found.skipped.binary), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_text_is_counted_on_sqlite() {
    what_is_no_text_is_counted(Room::on_sqlite(CACHE_BYTES).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_text_is_counted_on_postgres() {
    what_is_no_text_is_counted(Room::on_postgres(0).await).await;
}

fn lines(count: usize, words: &str) -> String {
    (0..count).flat_map(|line| [words.to_owned(), format!(" on line {line}\n")]).collect()
}

async fn memory_stays_within_its_bound(room: Room, cache_bytes: usize) {
    let mut rooms: Vec<WorkspaceId> = vec![room.access.workspace];
    for n in 0..5 {
        rooms.push(
            room.writers[0].create_workspace(room.access.user, format!("room {n}"), Place::Database).await.unwrap().id,
        );
    }
    let filler = lines(3_000, "some words");
    for workspace in &rooms {
        let access = Access { workspace: *workspace, ..room.access };
        for n in 0..20 {
            let text = format!("{filler}{}needle {n}\n", n * 7919);
            let change = put(&format!("/{n}.txt"), Content::Text(text), FileType::Document);
            commit(&*room.writers[0], access, change).await.unwrap();
        }
    }
    // What is searched now and then is told apart from what is searched all the time.
    let order: Vec<usize> = (0..6).chain([0, 1, 0, 2, 0, 3, 5, 4, 0]).collect();
    let mut most = 0;
    for at in order {
        let access = Access { workspace: rooms[at], ..room.access };
        let found = room.searcher.search(Arc::clone(&room.database), access, search_for("needle")).await.unwrap();
        assert_eq!(found.matches.len(), 20);
        most = most.max(room.searcher.cache.used_bytes());
    }
    let whole = 6 * 20 * filler.len();
    assert!(most <= cache_bytes, "{most} of {cache_bytes}");
    assert!(whole > 2 * cache_bytes && most > cache_bytes / 4, "{most} of {cache_bytes}, with {whole} in all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_stays_within_its_bound_on_sqlite() {
    memory_stays_within_its_bound(Room::on_sqlite(2 << 20).await, 2 << 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_stays_within_its_bound_on_postgres() {
    memory_stays_within_its_bound(Room::on_postgres(3 << 20).await, 3 << 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_workspace_too_large_for_memory_keeps_what_fits_in_less_room() {
    let room = Room::on_sqlite(1 << 20).await;
    for n in 0..40 {
        let text = lines(3_000, &format!("some words of {n}"));
        room.text(&format!("/{n:02}.txt"), &format!("{text}needle")).await;
    }
    for _ in 0..6 {
        assert_eq!(room.search("needle").await.unwrap().matches.len(), 40);
        // In the product this runs beside; here it has to be over.
        room.searcher.cache.make_room();
    }
    let index = room.searcher.cache.memory(room.access.workspace).index();
    let held: BTreeSet<bool> = index.files.iter().map(|file| file.text.is_held()).collect();
    assert!(held.contains(&true), "something is kept");
    assert!(room.searcher.cache.used_bytes() <= 1 << 20);
}
