//! A folder on disk: searching compared with ripgrep, finding files compared with fd.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use toolrest_core::{Depth, Find, IgnoredFiles, Interrupt, PathFilter, Search, WsPath};
use toolrest_directory::Root;
use toolrest_ops::{Case as OpsCase, FolderFilter, Glob, Pattern as OpsPattern, SkipRules, SlashlessPattern, Syntax};
use toolrest_testkit::temp_folder;
use toolrest_workspaces::{find_in_folder, search_folder};

use super::patterns::{Case, PATTERNS, Pattern};
use super::ripgrep::RipgrepTimes;
use super::{Files, LIMIT, Times, milliseconds};
use crate::cases::Effort;
use crate::report::{Figure, Report, Target, median, number};

/// Folders with files of two types: 40,000 entries in total.
const FOLDERS: usize = 2000;
const FILES_PER_FOLDER: usize = 19;
/// Equivalent arguments for fd, of which the fastest is compared.
const FD_MODES: [&[&str]; 3] = [
    &["--type=f", "--extension=rs"],
    &["--type=f", "--extension=rs", "--no-ignore", "--hidden"],
    &["--type=f", "--extension=rs", "--no-ignore", "--hidden", "--threads=1"],
];
/// Rounds here are short and vary, so there are more of them.
const ROUNDS: usize = 4;

pub fn run(effort: Effort, report: &mut Report) {
    eprintln!("search in a folder");
    let files = Files::new(effort.searched_files);
    against_ripgrep(&files, effort, report);
    drop(files);
    against_fd(effort, report);
}

fn threads() -> usize {
    thread::available_parallelism().map_or(2, usize::from)
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn against_ripgrep(files: &Files, effort: Effort, report: &mut Report) {
    let folder = files.folder.path();
    let root = Root::open(folder).expect("the folder can be opened");
    let mut times = Times::default();
    let mut theirs = RipgrepTimes::default();
    for _ in 0..effort.rounds * ROUNDS {
        for (index, pattern) in PATTERNS.iter().enumerate() {
            let lines = theirs.measure(folder, index);
            let (elapsed, matches) = search(&root, pattern);
            assert_eq!(matches, lines, "ours and rg's matches of {}", pattern.text);
            times.ours[index].push(milliseconds(elapsed));
        }
    }
    times.theirs = theirs.fastest();
    let explanation = format!(
        "What `file.search` does in a folder, in the process, respecting `.gitignore` and skipping hidden files, as a \
         fraction of the wall time of `rg` (of its four modes, without ignore files and with hidden files, the one with \
         the fastest median), in turns, files in the page cache. {}; both stop at {LIMIT} lines; ours are the first by path.",
        files.description()
    );
    report.section("Search in a folder", explanation);
    times.figures(|_| Target::AtMost(1.0), |index| theirs.notes(index), report);
    report.add(times.geometric_mean(Target::AtMost(1.0)));
}

fn search(root: &Root, pattern: &Pattern) -> (Duration, usize) {
    let start = Instant::now();
    let case = if pattern.case == Case::Ignored { OpsCase::Ignored } else { OpsCase::Sensitive };
    let compiled = OpsPattern { text: pattern.text.to_owned(), syntax: Syntax::Ripgrep, case };
    let extent = SkipRules { hidden: false, ignored: IgnoredFiles::LeaveOut };
    let search = Search {
        pattern: Arc::new(compiled),
        within: WsPath::root(),
        paths: Some(Arc::new(FolderFilter::new(WsPath::root(), None, extent).expect("there is no glob"))),
        ignored: IgnoredFiles::LeaveOut,
        limit: LIMIT,
        context: 0,
        limit_bytes: 32 << 20,
        deadline: deadline(),
    };
    let matcher = search.pattern.compile().expect("the pattern is right");
    let interrupt = Interrupt::at(search.deadline);
    let found = search_folder(root, &search, &*matcher, &interrupt, threads()).expect("the search ends");
    (start.elapsed(), found.matches.len())
}

fn against_fd(effort: Effort, report: &mut Report) {
    let folder = temp_folder("tree");
    let folder = folder.path();
    make_tree(folder);
    let root = Root::open(folder).expect("the folder can be opened");
    let expected = FOLDERS * FILES_PER_FOLDER.div_ceil(2);
    let mut theirs: [Vec<f64>; FD_MODES.len()] = Default::default();
    let mut ours: [Vec<f64>; 2] = Default::default();
    for _ in 0..effort.rounds * ROUNDS {
        for (mode, measured) in FD_MODES.iter().zip(&mut theirs) {
            let (elapsed, found) = by_fd(folder, mode);
            assert_eq!(found, expected, "what fd found");
            measured.push(milliseconds(elapsed));
        }
        for (limit, measured) in [1000, usize::MAX].into_iter().zip(&mut ours) {
            let (elapsed, found) = find(&root, limit);
            assert_eq!(found, expected, "what we found");
            measured.push(milliseconds(elapsed));
        }
    }
    let fastest = theirs.iter().min_by(|one, other| median(one).total_cmp(&median(other))).expect("there are modes");
    report.section(
        "Files of a folder by a glob",
        format!(
            "`**/*.rs` in a tree of {FOLDERS} folders with {FILES_PER_FOLDER} files each, of which half match, in \
             the process, as a fraction of the wall time of `fdfind --extension rs` (of three equivalent commands the \
             one with the fastest median), in turns. Our results are sorted."
        ),
    );
    for (case, ours, target) in [
        ("`glob`, 1,000 returned, all counted", &ours[0], Target::AtMost(1.2)),
        // fd does not read sizes and times.
        ("`file.list`, all with size and time", &ours[1], Target::None),
    ] {
        report.add(Figure {
            case: case.to_owned(),
            unit: "×",
            rounds: ours.iter().zip(fastest).map(|(ours, theirs)| ours / theirs).collect(),
            target,
            notes: format!("{} ms against {} ms of `fdfind`", number(median(ours)), number(median(fastest))),
        });
    }
    report.add(Figure {
        case: "`glob`".to_owned(),
        unit: "ms",
        rounds: ours[0].clone(),
        target: Target::AtMost(300.0),
        notes: String::new(),
    });
}

fn make_tree(folder: &Path) {
    for number in 0..FOLDERS {
        let folder = folder.join(format!("part {}/{}/folder {number}", number % 10, number % 37));
        fs::create_dir_all(&folder).expect("folders can be made");
        for file in 0..FILES_PER_FOLDER {
            let kind = if file % 2 == 0 { "rs" } else { "md" };
            fs::write(folder.join(format!("some file {file}.{kind}")), "").expect("a file can be written");
        }
    }
}

fn find(root: &Root, limit: usize) -> (Duration, usize) {
    let start = Instant::now();
    let glob: Arc<dyn PathFilter> =
        Arc::new(Glob::new("**/*.rs", WsPath::root(), SlashlessPattern::Path).expect("a glob"));
    let find = Find {
        folder: WsPath::root(),
        depth: Depth::Descendants,
        paths: Some(glob),
        ignored: IgnoredFiles::LeaveOut,
        limit,
        deadline: deadline(),
    };
    let interrupt = Interrupt::at(find.deadline);
    let found = find_in_folder(root, &find, &interrupt, threads()).expect("the walk ends");
    assert_eq!(found.files.len(), found.total.min(limit));
    (start.elapsed(), found.total)
}

fn by_fd(folder: &Path, mode: &[&str]) -> (Duration, usize) {
    let start = Instant::now();
    let output = Command::new("fdfind")
        .args(mode)
        .arg("--color=never")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("fd runs");
    let elapsed = start.elapsed();
    (elapsed, output.stdout.split(|byte| *byte == b'\n').count() - 1)
}
