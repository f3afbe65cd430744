//! Searching: against ripgrep on the same files, and against PostgreSQL's own way on the same rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use self::corpus::Corpus;
use self::patterns::{PATTERNS, Pattern};
use self::ripgrep::MODES;
use super::Effort;
use crate::client::Connection;
use crate::postgres::Cluster;
use crate::process::Folder;
use crate::report::{Figure, Report, Target, median, number};
use crate::server::{Backend, Server};

mod cold;
mod corpus;
pub mod folder;
pub mod large;
mod one_hit;
mod patterns;
pub mod ripgrep;
mod write_cost;

/// The most matches that the tool gives.
const LIMIT: usize = 1000;
const FILE_BYTES: usize = 10_000;
/// Keeps nothing in memory.
const NO_CACHE: (&str, &str) = ("TOOLREST__SEARCH__CACHE_BYTES", "0");
/// Is nowhere, has no literal and so has every file read.
const EVERYTHING: Pattern = Pattern {
    name: "everything",
    kind: patterns::Kind::NoLiteral,
    text: r"^\d{30}$",
    case: patterns::Case::Kept,
    syntax: patterns::Syntax::Expression,
};

pub fn run(toolrest: &Path, cluster: &Cluster, effort: Effort, report: &mut Report) {
    eprintln!("search");
    let files = Files::new(effort.searched_files);
    let sqlite = files.load(toolrest, Backend::Sqlite);
    let postgres = files.load(toolrest, Backend::Postgres(cluster));
    against_ripgrep(&files, &sqlite, &postgres, effort, report);
    cold::run(cluster, &files, &postgres, effort, report);
    drop((sqlite, postgres));
    for backend in [Backend::Sqlite, Backend::Postgres(cluster)] {
        one_hit::run(toolrest, backend, effort, report);
    }
    write_cost::run(cluster, effort, report);
}

/// The files on disk, where ripgrep looks.
struct Files {
    corpus: Corpus,
    folder: Folder,
    bytes: usize,
}

/// The files in a workspace of a server.
struct Loaded<'a> {
    server: Server<'a>,
    workspace: String,
}

impl Files {
    fn new(count: usize) -> Self {
        let corpus = Corpus::new(count, FILE_BYTES);
        let folder = Folder::new("corpus");
        let bytes = corpus.write_to(&folder.path());
        Self { corpus, folder, bytes }
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.folder.path().join(&path[1..])).expect("a file of the corpus can be read")
    }

    fn load<'a>(&self, toolrest: &Path, backend: Backend<'a>) -> Loaded<'a> {
        let server = Server::start(toolrest, backend, "search");
        let workspace = server.session().create_workspace("search");
        server.prepare(self.corpus.files, |session, index| {
            let path = self.corpus.path(index);
            session.write(&workspace, &path, &self.text(&path));
        });
        Loaded { server, workspace }
    }

    fn described(&self) -> String {
        format!(
            "{} files of generated source code, {} MB",
            number(self.corpus.files as f64),
            number(self.bytes as f64 / 1e6)
        )
    }
}

/// One connection that searches.
struct Searcher<'a> {
    server: &'a Server<'a>,
    workspace: &'a str,
    connection: Connection,
}

impl<'a> Searcher<'a> {
    fn new(server: &'a Server<'a>, workspace: &'a str) -> Self {
        Self { server, workspace, connection: server.connect() }
    }

    /// A search's wall time, and how many lines it found.
    fn search(&mut self, args: &Value) -> (Duration, usize) {
        let request = self.server.render_tool(self.workspace, "grep", args);
        let start = Instant::now();
        let response = self.connection.exchange(&request);
        let elapsed = start.elapsed();
        let answer: Value = serde_json::from_slice(response.body).expect("an answer is JSON");
        assert_eq!(answer["success"], true, "grep for {args} answered {answer}");
        let matches = answer["result"]["matches"].as_array().expect("there is a list of matches").len();
        let is_cut = answer["result"]["truncated"] == true;
        assert_eq!(is_cut, matches == LIMIT, "grep for {args}: {matches} matches, truncated: {is_cut}");
        (elapsed, matches)
    }
}

/// The times of both sides in milliseconds, by pattern and round.
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
    /// Our time as a part of theirs, in each round. Where they had fewer rounds, those serve again.
    fn ratios(&self, pattern: usize) -> Vec<f64> {
        self.ours[pattern].iter().zip(self.theirs[pattern].iter().cycle()).map(|(ours, theirs)| ours / theirs).collect()
    }

    fn figures(&self, target: impl Fn(&Pattern) -> Target, beside: impl Fn(usize) -> String, report: &mut Report) {
        for (index, pattern) in PATTERNS.iter().enumerate() {
            report.add(Figure {
                case: pattern.shown(),
                unit: "×",
                rounds: self.ratios(index),
                target: target(pattern),
                beside: format!(
                    "{} ms against {} ms{}",
                    number(median(&self.ours[index])),
                    number(median(&self.theirs[index])),
                    beside(index)
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
            beside: String::new(),
        }
    }
}

fn against_ripgrep(files: &Files, sqlite: &Loaded, postgres: &Loaded, effort: Effort, report: &mut Report) {
    let folder: PathBuf = files.folder.path();
    let uncached = sqlite.server.replica(&[NO_CACHE]);
    let mut searchers = [
        Searcher::new(&sqlite.server, &sqlite.workspace),
        Searcher::new(&postgres.server, &postgres.workspace),
        Searcher::new(&uncached, &sqlite.workspace),
    ];
    for searcher in &mut searchers {
        assert_eq!(searcher.search(&EVERYTHING.args()).1, 0);
    }
    let mut times = [Times::default(), Times::default(), Times::default()];
    let mut lines = [0; PATTERNS.len()];
    // By pattern, mode and round.
    let mut theirs: [[Vec<f64>; MODES.len()]; PATTERNS.len()] = Default::default();
    for _ in 0..effort.rounds {
        for (index, pattern) in PATTERNS.iter().enumerate() {
            for (mode, measured) in MODES.iter().zip(&mut theirs[index]) {
                let answer = ripgrep::search(&folder, pattern, mode);
                measured.push(milliseconds(answer.elapsed));
                lines[index] = answer.lines;
            }
            for (searcher, times) in searchers.iter_mut().zip(&mut times) {
                let (elapsed, matches) = searcher.search(&pattern.args());
                assert_eq!(matches, lines[index], "ours and rg's matches of {}", pattern.text);
                times.ours[index].push(milliseconds(elapsed));
            }
        }
    }
    let fastest = theirs.each_ref().map(|modes| {
        let by_median = |one: &usize, other: &usize| median(&modes[*one]).total_cmp(&median(&modes[*other]));
        (0..MODES.len()).min_by(by_median).expect("there are modes")
    });
    for times in &mut times {
        times.theirs = theirs.iter().zip(fastest).map(|(modes, mode)| modes[mode].clone()).collect();
    }

    let beside = |index: usize| format!(" of `rg {}`; {} lines", MODES[fastest[index]], lines[index]);
    let explanation = format!(
        "`grep` over HTTP as a part of the wall time of `rg` (of its four modes the one with the fastest median, \
         files in the page cache), in turns. {}; both stop at {LIMIT} lines and find as many.",
        files.described()
    );
    let [warm_sqlite, warm_postgres, uncached] = times;
    for (name, times) in [("SQLite", warm_sqlite), ("PostgreSQL", warm_postgres)] {
        report.section(
            format!("Search in memory, {name}"),
            format!("{explanation} Everything was searched once before."),
        );
        times.figures(Pattern::warm_target, beside, report);
        report.add(times.geometric_mean(Target::AtMost(0.10)));
    }
    report.section("Search without a cache, SQLite", format!("{explanation} `search.cache_bytes` is 0."));
    uncached.figures(|_| Target::AtMost(0.65), beside, report);
    report.add(uncached.geometric_mean(Target::AtMost(0.65)));
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
