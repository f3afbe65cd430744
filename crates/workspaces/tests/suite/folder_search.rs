//! Searching and finding in real folders.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use toolrest_core::{
    Depth, ErrorKind, Find, FindResult, IgnoredFiles, Interrupt, PathFilter, Result, Search, SearchResult, WsPath,
};
use toolrest_directory::Root;
use toolrest_ops::{Case, FolderFilter, Glob, Pattern, SkipRules, SlashlessPattern, Syntax};
use toolrest_workspaces::{find_in_folder, search_folder};

struct Scene {
    place: TempDir,
    root: Root,
}

impl Scene {
    fn with(files: &[(&str, &[u8])]) -> Self {
        let place = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
        for folder in ["root", "outside"] {
            fs::create_dir(place.path().join(folder)).unwrap();
        }
        let root = Root::open(&place.path().join("root")).unwrap();
        let scene = Self { place, root };
        for (path, bytes) in files {
            scene.put(path, bytes);
        }
        scene
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.place.path().join("root").join(path)
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), bytes).unwrap();
    }

    fn search(&self, search: &Search) -> Result<SearchResult> {
        self.search_on(search, 4)
    }

    fn search_on(&self, search: &Search, threads: usize) -> Result<SearchResult> {
        let matcher = search.pattern.compile().unwrap();
        search_folder(&self.root, search, &*matcher, &Interrupt::at(search.deadline), threads)
    }

    fn find(&self, glob: &str, limit: usize, ignored: IgnoredFiles) -> Result<FindResult> {
        let paths: Arc<dyn PathFilter> = Arc::new(Glob::new(glob, WsPath::root(), SlashlessPattern::Path).unwrap());
        let find = Find {
            folder: WsPath::root(),
            depth: Depth::Descendants,
            paths: Some(paths),
            ignored,
            limit,
            deadline: soon(),
        };
        find_in_folder(&self.root, &find, &Interrupt::at(find.deadline), 4)
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn within(path: &str, text: &str, syntax: Syntax) -> Search {
    let within = WsPath::posix(path).unwrap();
    let extent = SkipRules { hidden: false, ignored: IgnoredFiles::LeaveOut };
    let below = FolderFilter::new(within.clone(), None, extent).unwrap();
    Search {
        pattern: Arc::new(Pattern { text: text.to_owned(), syntax, case: Case::Sensitive }),
        within,
        paths: Some(Arc::new(below)),
        ignored: IgnoredFiles::LeaveOut,
        limit: 1000,
        context: 0,
        limit_bytes: 32 << 20,
        deadline: soon(),
    }
}

fn ripgrep(text: &str) -> Search {
    within("/", text, Syntax::Ripgrep)
}

fn shown(found: &SearchResult) -> Vec<String> {
    found.matches.iter().map(|line| format!("{}:{}:{}", line.path, line.line_number, line.line)).collect()
}

#[test]
fn lines_come_by_path_and_then_by_number() {
    let scene = Scene::with(&[
        ("a/b", b"needle\nhay\nneedle 2\n"),
        ("a.txt", b"hay\nneedle"),
        ("a b/c", b"needle\r\n"),
        (".hidden/x", b"needle\n"),
        (".git/x", b"needle\n"),
        (".gitignore", b"*.log\n"),
        ("x.log", b"needle\n"),
    ]);
    let found = scene.search(&ripgrep("needle")).unwrap();
    assert_eq!(shown(&found), ["/a b/c:1:needle\r", "/a.txt:2:needle", "/a/b:1:needle", "/a/b:3:needle 2"]);
    assert_eq!((found.truncated, found.skipped.ignored), (false, 1));
    let all = Search { paths: None, ignored: IgnoredFiles::Include, ..ripgrep("needle") };
    assert_eq!(scene.search(&all).unwrap().matches.len(), 6, "what git keeps for itself is left out");
    let named = Search { paths: None, ..within("/.git", "needle", Syntax::Ripgrep) };
    assert_eq!(scene.search(&named).unwrap().matches.len(), 1);
    let found = scene.search(&Search { context: 1, ..ripgrep("needle 2") }).unwrap();
    assert_eq!((&found.matches[0].before[..], found.matches[0].after.len()), (&["hay".to_owned()][..], 0));
}

#[test]
fn the_first_lines_are_given_whatever_the_limit_and_the_number_of_threads() {
    let scene = Scene::with(&[]);
    for number in 0..400 {
        let lines = number % 7;
        let text = "needle\nhay\n".repeat(lines);
        scene.put(&format!("f{}/g{}/file {number}", number % 5, number % 3), text.as_bytes());
        scene.put(&format!("f{}/file {number}.bin", number % 5), b"\0");
    }
    let all = scene.search(&Search { limit: 10_000, ..ripgrep("needle") }).unwrap();
    assert_eq!((all.matches.len(), all.truncated, all.skipped.binary), (1197, false, 400));
    for limit in [1, 2, 10, 100, 500, 1196, 1197, 1198] {
        for threads in [1, 2, 3, 8] {
            let found = scene.search_on(&Search { limit, ..ripgrep("needle") }, threads).unwrap();
            let count = limit.min(all.matches.len());
            assert_eq!(found.matches, all.matches[..count], "{limit} lines on {threads} threads");
            assert_eq!(found.truncated, limit < all.matches.len());
        }
    }
    let few_bytes = scene.search(&Search { limit_bytes: 5000, ..ripgrep("needle") }).unwrap();
    let count = few_bytes.matches.len();
    assert!(count > 5 && count < 100 && few_bytes.truncated);
    assert_eq!(few_bytes.matches, all.matches[..count]);
}

#[test]
fn what_is_named_is_searched_whatever_the_rules_say() {
    let scene = Scene::with(&[
        (".gitignore", b"target/\n*.log\n"),
        ("target/made/file", b"needle\n"),
        ("x.log", b"needle\n"),
        (".hidden", b"needle\n"),
    ]);
    symlink("x.log", scene.path("link")).unwrap();
    symlink("target/made", scene.path("folder link")).unwrap();
    symlink("../outside", scene.path("out")).unwrap();
    let found = |path: &str| scene.search(&Search { paths: None, ..within(path, "needle", Syntax::Ripgrep) });
    for (path, line) in [
        ("/x.log", "/x.log:1:needle"),
        ("/.hidden", "/.hidden:1:needle"),
        ("/target", "/target/made/file:1:needle"),
        ("/link", "/link:1:needle"),
        ("/folder link", "/folder link/file:1:needle"),
    ] {
        assert_eq!(shown(&found(path).unwrap()), [line]);
    }
    assert_eq!(found("/missing").unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(found("/x.log/below").unwrap_err().kind, ErrorKind::ThroughFile);
    assert_eq!(found("/out").unwrap_err().kind, ErrorKind::OutsideWorkspace);
}

#[test]
fn every_encoding_that_ripgrep_reads_is_searched() {
    let utf16: Vec<u8> = "\u{feff}one\nnädel 😀\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let scene = Scene::with(&[
        ("latin1", b"one\nn\xe4del needle \xe9\n"),
        ("mark", b"\xef\xbb\xbfneedle first\n"),
        ("utf16", &utf16),
        ("binary", b"needle\0"),
    ]);
    let found = scene.search(&ripgrep("^needle|del ")).unwrap();
    assert_eq!(shown(&found), ["/latin1:2:nädel needle é", "/mark:1:needle first", "/utf16:2:nädel 😀"]);
    assert_eq!(found.skipped.binary, 1);
}

#[test]
fn postgres_patterns_find_the_same_lines_in_large_files() {
    let scene = Scene::with(&[]);
    let mut text = String::new();
    let mut number = 0;
    while text.len() < 35 << 20 {
        number += 1;
        text.push_str(if number % 100_000 == 7 { "needle\n" } else { "some line of hay that is not too short\n" });
    }
    text.push('\n');
    scene.put("large", text.as_bytes());
    let lines: Vec<u64> = (1..=number).filter(|number| number % 100_000 == 7).collect();
    for syntax in [Syntax::Ripgrep, Syntax::Postgres] {
        let found = scene.search(&Search { context: 2, ..within("/", "^needle$", syntax) }).unwrap();
        assert_eq!(found.matches.iter().map(|line| line.line_number).collect::<Vec<_>>(), lines);
        assert!(found.matches.iter().all(|line| (line.before.len(), line.after.len()) == (2, 2)));
    }
    // To PostgreSQL what follows the last newline is one more line.
    let empty = |syntax| scene.search(&within("/", "^$", syntax)).unwrap().matches.len();
    assert_eq!((empty(Syntax::Ripgrep), empty(Syntax::Postgres)), (1, 2));
}

#[test]
fn the_same_lines_are_found_as_by_ripgrep() {
    let scene = Scene::with(&[]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(&source).unwrap().chain(fs::read_dir(source.join("folder")).unwrap()) {
        let path = entry.unwrap().path();
        if path.is_file() {
            scene.put(&path.strip_prefix(&source).unwrap().to_string_lossy(), &fs::read(&path).unwrap());
        }
    }
    for pattern in ["fn ", r"^\s*$", r"\bSearch\b", "(?i)RESULT<", "[a-z]+_[a-z]+_[a-z]+\\(", "}$", "no such thing"] {
        #[allow(clippy::disallowed_methods, reason = "what is compared with has to be started")]
        let output = Command::new("rg")
            .args(["--no-config", "--no-heading", "--line-number", "--color=never", "--", pattern, "."])
            .current_dir(scene.path(""))
            .output();
        let Ok(output) = output else { return };
        let theirs: BTreeSet<String> =
            String::from_utf8(output.stdout).unwrap().lines().map(|line| line[1..].to_owned()).collect();
        let ours = scene.search(&Search { limit: 100_000, ..ripgrep(pattern) }).unwrap();
        assert_eq!(shown(&ours).into_iter().collect::<BTreeSet<_>>(), theirs, "{pattern}");
    }
}

#[test]
fn files_that_cannot_be_read_are_counted() {
    let scene = Scene::with(&[("a", b"needle\n"), ("closed", b"needle\n"), ("folder/x", b"needle\n")]);
    for (path, mode) in [("../..", 0o755), ("closed", 0), ("folder", 0)] {
        let path = if path == "../.." { scene.place.path().to_owned() } else { scene.path(path) };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let found = thread::scope(|scope| {
        let found = scope.spawn(|| {
            // Only this thread gives up its rights, and those that it starts.
            let nobody = rustix::fs::Uid::from_raw(65534);
            let _ = rustix::thread::set_thread_res_uid(nobody, nobody, nobody);
            scene.search(&ripgrep("needle"))
        });
        found.join().unwrap().unwrap()
    });
    fs::set_permissions(scene.path("folder"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(shown(&found), ["/a:1:needle"]);
    assert_eq!(found.skipped.unreadable, 2);
}

#[test]
fn files_that_shrink_and_vanish_meanwhile_do_no_harm() {
    let scene = Scene::with(&[]);
    let text = "hay\n".repeat(50_000);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for file in 0..20 {
                    let path = format!("folder/{file}");
                    scene.put(&path, text.as_bytes());
                    let opened = fs::OpenOptions::new().write(true).open(scene.path(&path)).unwrap();
                    opened.set_len(10).unwrap();
                    fs::remove_file(scene.path(&path)).unwrap();
                }
                fs::remove_dir(scene.path("folder")).unwrap();
            }
        });
        for _ in 0..300 {
            let found = scene.search(&ripgrep("needle")).unwrap();
            assert_eq!((found.matches.len(), found.skipped.unreadable), (0, 0));
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_search_ends_when_its_time_is_up() {
    let scene = Scene::with(&[("a", b"needle\n")]);
    let late = Search { deadline: Instant::now(), ..ripgrep("needle") };
    assert_eq!(scene.search(&late).unwrap_err().kind, ErrorKind::Cancelled);
}

#[test]
fn files_are_found_sorted_counted_and_described() {
    let scene = Scene::with(&[
        ("a/b.rs", b"1"),
        ("a.rs", b"22"),
        ("a b/c.rs", b""),
        ("target/x.rs", b""),
        ("a/skip.md", b""),
        (".gitignore", b"target/\n"),
    ]);
    let found = scene.find("**/*.rs", 10, IgnoredFiles::LeaveOut).unwrap();
    let files: Vec<_> = found.files.iter().map(|file| (file.path.as_str(), file.size)).collect();
    assert_eq!(files, [("/a b/c.rs", 0), ("/a.rs", 2), ("/a/b.rs", 1)]);
    assert_eq!((found.total, found.ignored), (3, 1));
    let modified = fs::metadata(scene.path("a.rs")).unwrap().modified().unwrap();
    let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(i128::from(found.files[1].updated_at.as_microsecond()), i128::try_from(since.as_micros()).unwrap());
    let found = scene.find("**/*.rs", 2, IgnoredFiles::Include).unwrap();
    assert_eq!((found.files.len(), found.total, found.ignored), (2, 4, 0));
    assert_eq!(scene.find("**/*.rs", 0, IgnoredFiles::Include).unwrap().total, 4);
}
