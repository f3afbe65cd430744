//! A folder on disk: searching it against ripgrep, finding files in it against fd.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use toolrest_core::{Depth, Find, IgnoredFiles, Interrupt, PathFilter, Search, WsPath};
use toolrest_directory::Root;
use toolrest_ops::{Bare, Below, Case as OpsCase, Extent, Glob, Pattern as OpsPattern, Syntax};
use toolrest_workspaces::{find_in_folder, search_folder};

use super::patterns::{Case, PATTERNS, Pattern};
use super::ripgrep::{self, MODES};
use super::{Files, LIMIT, Times, milliseconds};
use crate::cases::Effort;
use crate::process::Folder;
use crate::report::{Figure, Report, Target, median, number};

/// Folders with files of two kinds in them: all together 40,000 entries.
const FOLDERS: usize = 2000;
const FILES_PER_FOLDER: usize = 19;
/// The ways to ask fd for the same, of which the fastest counts.
const FD_MODES: [&[&str]; 3] = [
    &["--type=f", "--extension=rs"],
    &["--type=f", "--extension=rs", "--no-ignore", "--hidden"],
    &["--type=f", "--extension=rs", "--no-ignore", "--hidden", "--threads=1"],
];
/// One round is short, and a machine has its moods.
const ROUNDS: usize = 4;

pub fn fd_version() -> String {
    let output =
        Command::new("fdfind").arg("--version").output().expect("fd is installed (Debian: apt-get install fd-find)");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

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
    let root = Root::open(&folder).expect("the folder can be opened");
    let mut times = Times::default();
    let mut lines = [0; PATTERNS.len()];
    // By pattern, mode and round.
    let mut theirs: [[Vec<f64>; MODES.len()]; PATTERNS.len()] = Default::default();
    for _ in 0..effort.rounds * ROUNDS {
        for (index, pattern) in PATTERNS.iter().enumerate() {
            for (mode, measured) in MODES.iter().zip(&mut theirs[index]) {
                let answer = ripgrep::search(&folder, pattern, mode);
                measured.push(milliseconds(answer.elapsed));
                lines[index] = answer.lines;
            }
            let (elapsed, matches) = search(&root, pattern);
            assert_eq!(matches, lines[index], "ours and rg's matches of {}", pattern.text);
            times.ours[index].push(milliseconds(elapsed));
        }
    }
    let fastest = theirs.each_ref().map(|modes| {
        let by_median = |one: &usize, other: &usize| median(&modes[*one]).total_cmp(&median(&modes[*other]));
        (0..MODES.len()).min_by(by_median).expect("there are modes")
    });
    times.theirs = theirs.iter().zip(fastest).map(|(modes, mode)| modes[mode].clone()).collect();
    let explanation = format!(
        "What `file.search` does in a folder, in the process, with `.gitignore` heeded and hidden files passed over, as a \
         part of the wall time of `rg` (of its four modes, without ignore files and with hidden files, the one with the \
         fastest median), in turns, files in the page cache. {}; both stop at {LIMIT} lines; ours are the first by path.",
        files.described()
    );
    report.section("Search in a folder", explanation);
    let beside = |index: usize| format!(" of `rg {}`; {} lines", MODES[fastest[index]], lines[index]);
    times.figures(|_| Target::AtMost(1.0), beside, report);
    report.add(times.geometric_mean(Target::AtMost(1.0)));
}

fn search(root: &Root, pattern: &Pattern) -> (Duration, usize) {
    let start = Instant::now();
    let case = if pattern.case == Case::Ignored { OpsCase::Ignored } else { OpsCase::Sensitive };
    let compiled = OpsPattern { text: pattern.text.to_owned(), syntax: Syntax::Ripgrep, case };
    let extent = Extent { hidden: false, ignored: IgnoredFiles::LeaveOut };
    let search = Search {
        pattern: Arc::new(compiled),
        within: WsPath::root(),
        paths: Some(Arc::new(Below::new(WsPath::root(), None, extent).expect("there is no glob"))),
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
    let place = Folder::new("tree");
    let folder = place.path();
    make_tree(&folder);
    let root = Root::open(&folder).expect("the folder can be opened");
    let expected = FOLDERS * FILES_PER_FOLDER.div_ceil(2);
    let mut theirs: [Vec<f64>; FD_MODES.len()] = Default::default();
    let mut ours: [Vec<f64>; 2] = Default::default();
    for _ in 0..effort.rounds * ROUNDS {
        for (mode, measured) in FD_MODES.iter().zip(&mut theirs) {
            let (elapsed, found) = by_fd(&folder, mode);
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
            "`**/*.rs` in a tree of {FOLDERS} folders with {FILES_PER_FOLDER} files each, half of them chosen, in the \
             process, as a part of the wall time of `fdfind --extension rs` (of three ways to ask it the one with the \
             fastest median), in turns. Ours come sorted."
        ),
    );
    for (case, ours, target) in [
        ("`glob`, 1,000 given, all counted", &ours[0], Target::AtMost(1.2)),
        // fd looks at no sizes and times.
        ("`file.list`, all with size and time", &ours[1], Target::None),
    ] {
        report.add(Figure {
            case: case.to_owned(),
            unit: "×",
            rounds: ours.iter().zip(fastest).map(|(ours, theirs)| ours / theirs).collect(),
            target,
            beside: format!("{} ms against {} ms of `fdfind`", number(median(ours)), number(median(fastest))),
        });
    }
    report.add(Figure {
        case: "`glob`".to_owned(),
        unit: "ms",
        rounds: ours[0].clone(),
        target: Target::AtMost(300.0),
        beside: String::new(),
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
    let glob: Arc<dyn PathFilter> = Arc::new(Glob::new("**/*.rs", WsPath::root(), Bare::Path).expect("a glob"));
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
