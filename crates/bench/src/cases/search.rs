//! Searching, compared with ripgrep on the same files and with plain SQL on the same rows.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use toolrest_testkit::{Postgres, temp_folder};

use self::corpus::Corpus;
use self::patterns::{PATTERNS, Pattern};
use self::ripgrep::RipgrepTimes;
use super::Effort;
use crate::report::{Figure, Report, Target, median, number};
use crate::server::{Backend, Server, Session};

mod cold;
mod corpus;
pub mod folder;
pub mod large;
mod one_hit;
mod patterns;
mod ripgrep;

/// The maximum number of matches that the tool returns.
const LIMIT: usize = 1000;
const FILE_BYTES: usize = 10_000;
/// Turns the search cache off.
const NO_CACHE: (&str, &str) = ("TOOLREST__SEARCH__CACHE_BYTES", "0");
/// A pattern without matches and without a literal, so that a search reads every file.
const READ_ALL: Pattern = Pattern {
    name: "read all",
    kind: patterns::Kind::NoLiteral,
    text: r"^\d{30}$",
    case: patterns::Case::Kept,
    syntax: patterns::Syntax::Expression,
};

pub fn run(toolrest: &Path, postgres: &Postgres, effort: Effort, report: &mut Report) {
    eprintln!("search");
    let files = Files::new(effort.searched_files);
    let on_sqlite = files.load(toolrest, Backend::Sqlite);
    let on_postgres = files.load(toolrest, Backend::Postgres(postgres));
    against_ripgrep(&files, &on_sqlite, &on_postgres, effort, report);
    cold::run(postgres, &files, &on_postgres, effort, report);
    drop((on_sqlite, on_postgres));
    for backend in [Backend::Sqlite, Backend::Postgres(postgres)] {
        one_hit::run(toolrest, backend, effort, report);
    }
}

/// The files on disk, which ripgrep searches.
struct Files {
    corpus: Corpus,
    folder: TempDir,
    bytes: usize,
}

/// The files in a workspace of a server.
struct LoadedFiles<'a> {
    server: Server<'a>,
    workspace: String,
}

impl Files {
    fn new(count: usize) -> Self {
        let corpus = Corpus::new(count, FILE_BYTES);
        let folder = temp_folder("corpus");
        let bytes = corpus.write_to(folder.path());
        Self { corpus, folder, bytes }
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.folder.path().join(&path[1..])).expect("a file of the corpus can be read")
    }

    fn load<'a>(&self, toolrest: &Path, backend: Backend<'a>) -> LoadedFiles<'a> {
        let server = Server::start(toolrest, backend);
        let workspace = server.session().create_workspace("search");
        server.prepare(self.corpus.files, |session, index| {
            let path = self.corpus.path(index);
            session.write(&workspace, &path, &self.text(&path));
        });
        LoadedFiles { server, workspace }
    }

    fn description(&self) -> String {
        format!(
            "{} files of generated source code, {} MB",
            number(self.corpus.files as f64),
            number(self.bytes as f64 / 1e6)
        )
    }
}

/// A connection for searches in one workspace.
struct Searcher<'a> {
    server: &'a Server<'a>,
    workspace: &'a str,
    session: Session,
}

impl<'a> Searcher<'a> {
    fn new(server: &'a Server<'a>, workspace: &'a str) -> Self {
        Self { server, workspace, session: server.session() }
    }

    /// Searches, and returns the wall time and the number of lines found.
    fn search(&self, args: &Value) -> (Duration, usize) {
        let request = self.server.render_tool(self.workspace, "grep", args);
        let start = Instant::now();
        let reply = self.session.exchange(&request);
        let elapsed = start.elapsed();
        let answer: Value = serde_json::from_slice(&reply.body).expect("an answer is JSON");
        assert_eq!(answer["success"], true, "grep for {args} answered {answer}");
        let matches = answer["result"]["matches"].as_array().expect("there is a list of matches").len();
        let is_truncated = answer["result"]["truncated"] == true;
        assert_eq!(is_truncated, matches == LIMIT, "grep for {args}: {matches} matches, truncated: {is_truncated}");
        (elapsed, matches)
    }
}

/// Our times and theirs in milliseconds, by pattern and round.
struct Times {
    ours: Vec<Vec<f64>>,
    theirs: Vec<Vec<f64>>,
}

impl Default for Times {
    fn default() -> Self {
        Self { ours: vec![Vec::new(); PATTERNS.len()], theirs: vec![Vec::new(); PATTERNS.len()] }
    }
}

impl Times {
    /// Returns our time divided by theirs for each round. If they have fewer rounds, these are used again.
    fn ratios(&self, pattern: usize) -> Vec<f64> {
        self.ours[pattern].iter().zip(self.theirs[pattern].iter().cycle()).map(|(ours, theirs)| ours / theirs).collect()
    }

    fn figures(&self, target: impl Fn(&Pattern) -> Target, notes: impl Fn(usize) -> String, report: &mut Report) {
        for (index, pattern) in PATTERNS.iter().enumerate() {
            report.add(Figure {
                case: pattern.shown(),
                unit: "×",
                rounds: self.ratios(index),
                target: target(pattern),
                notes: format!(
                    "{} ms against {} ms{}",
                    number(median(&self.ours[index])),
                    number(median(&self.theirs[index])),
                    notes(index)
                ),
            });
        }
    }

    fn geometric_mean(&self, target: Target) -> Figure {
        let ratios: Vec<Vec<f64>> = (0..PATTERNS.len()).map(|pattern| self.ratios(pattern)).collect();
        let mean =
            |round: usize| (ratios.iter().map(|rounds| rounds[round].ln()).sum::<f64>() / PATTERNS.len() as f64).exp();
        Figure {
            case: "geometric mean of all".to_owned(),
            unit: "×",
            rounds: (0..ratios[0].len()).map(mean).collect(),
            target,
            notes: String::new(),
        }
    }
}

fn against_ripgrep(
    files: &Files,
    on_sqlite: &LoadedFiles,
    on_postgres: &LoadedFiles,
    effort: Effort,
    report: &mut Report,
) {
    let folder = files.folder.path();
    let uncached = on_sqlite.server.replica(&[NO_CACHE]);
    let searchers = [
        Searcher::new(&on_sqlite.server, &on_sqlite.workspace),
        Searcher::new(&on_postgres.server, &on_postgres.workspace),
        Searcher::new(&uncached, &on_sqlite.workspace),
    ];
    for searcher in &searchers {
        assert_eq!(searcher.search(&READ_ALL.args()).1, 0);
    }
    let mut times = [Times::default(), Times::default(), Times::default()];
    let mut theirs = RipgrepTimes::default();
    for _ in 0..effort.rounds {
        for (index, pattern) in PATTERNS.iter().enumerate() {
            let lines = theirs.measure(folder, index);
            for (searcher, times) in searchers.iter().zip(&mut times) {
                let (elapsed, matches) = searcher.search(&pattern.args());
                assert_eq!(matches, lines, "ours and rg's matches of {}", pattern.text);
                times.ours[index].push(milliseconds(elapsed));
            }
        }
    }
    for times in &mut times {
        times.theirs = theirs.fastest();
    }

    let notes = |index: usize| theirs.notes(index);
    let explanation = format!(
        "`grep` over HTTP as a fraction of the wall time of `rg` (of its four modes the one with the fastest median, \
         files in the page cache), in turns. {}; both stop at {LIMIT} lines and find the same number.",
        files.description()
    );
    let [warm_sqlite, warm_postgres, uncached] = times;
    for (name, times) in [("SQLite", warm_sqlite), ("PostgreSQL", warm_postgres)] {
        report.section(
            format!("Search in memory, {name}"),
            format!("{explanation} All files were searched once before."),
        );
        times.figures(Pattern::warm_target, notes, report);
        report.add(times.geometric_mean(Target::AtMost(0.10)));
    }
    report.section("Search without a cache, SQLite", format!("{explanation} `search.cache_bytes` is 0."));
    uncached.figures(|_| Target::AtMost(0.65), notes, report);
    report.add(uncached.geometric_mean(Target::AtMost(0.65)));
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
