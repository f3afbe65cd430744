//! Measures search time and server memory in a workspace many times larger than the search cache.

use std::path::Path;

use serde_json::{Value, json};

use super::corpus::Corpus;
use super::{Searcher, milliseconds};
use crate::cases::Effort;
use crate::report::{Figure, Report, Target, number};
use crate::server::{Backend, Server};

const FILES: usize = 100_000;
const FILE_BYTES: usize = 20_000;
const CACHE_MIB: usize = 256;
/// Allowed growth of the server's memory since the start, in addition to the size of the cache.
const MARGIN_MB: f64 = 150.0;

pub fn run(toolrest: &Path, effort: Effort, report: &mut Report) {
    eprintln!("search in a very large workspace");
    report.section(
        "Search in a very large workspace, SQLite",
        format!(
            "{} files of {} KB on average, {} GB together; `search.cache_bytes` is {CACHE_MIB} MiB. Memory is that of \
             the server process (RSS) in MB (10⁶ bytes), after the searches. It includes the mapped pages of the \
             database file, which the kernel can reclaim at any time.",
            number(FILES as f64),
            FILE_BYTES / 1000,
            FILES * FILE_BYTES / 1_000_000_000
        ),
    );
    let corpus = Corpus::new(FILES, FILE_BYTES);
    let writer = Server::start(toolrest, Backend::Sqlite);
    let workspace = writer.session().create_workspace("large");
    writer.prepare(FILES, |session, index| session.write(&workspace, &corpus.path(index), &corpus.text(index)));

    // Another process, so that memory used for writing is not measured.
    let cache_bytes = (CACHE_MIB << 20).to_string();
    let server = writer.replica(&[("TOOLREST__SEARCH__CACHE_BYTES", &cache_bytes)]);
    let base = server.resident_memory();
    let searcher = Searcher::new(&server, &workspace);
    let cases: [(&str, Value); 3] = [
        ("rare literal", json!({"pattern": "quizzical_lathe"})),
        ("common literal", json!({"pattern": "return"})),
        (
            "rare, no literal, in a tenth of the folders",
            json!({"pattern": r"\d{7}[a-f]+\d", "path_pattern": "/src/*/*_*3/*.rs"}),
        ),
    ];
    let mut times: [Vec<f64>; 3] = Default::default();
    let mut lines = [0; 3];
    for _ in 0..effort.rounds {
        for (index, (_, args)) in cases.iter().enumerate() {
            let (elapsed, matches) = searcher.search(args);
            times[index].push(milliseconds(elapsed));
            lines[index] = matches;
        }
    }
    for (index, (case, _)) in cases.iter().enumerate() {
        report.add(Figure {
            case: (*case).to_owned(),
            unit: "ms",
            rounds: times[index].clone(),
            target: Target::None,
            notes: format!("{} lines", lines[index]),
        });
    }
    let resident = server.resident_memory();
    let bound = |base: f64| base + (CACHE_MIB << 20) as f64 / 1e6 + MARGIN_MB;
    let bounds = [
        ("memory", resident.total_mb, base.total_mb),
        ("memory without mapped files", resident.anonymous_mb, base.anonymous_mb),
    ];
    for (case, after, before) in bounds {
        report.add(Figure {
            case: case.to_owned(),
            unit: "MB",
            rounds: vec![after],
            target: Target::AtMost(bound(before)),
            notes: format!("{} MB after the start", number(before)),
        });
    }
}
