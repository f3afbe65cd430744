//! Moving a folder with all its descendants.

use std::time::Instant;

use serde_json::json;

use super::Effort;
use crate::report::{Figure, Report, Target};
use crate::server::{Backend, Server};

const FOLDERS: usize = 100;
/// With the folders themselves this makes 10,000 descendants.
const FILES_PER_FOLDER: usize = 99;

pub fn run(server: &Server, effort: Effort, report: &mut Report) {
    let backend = server.backend();
    eprintln!("mv on {}", backend.name());
    report.section(
        format!("Moving a folder, {}", backend.name()),
        "`mv` over HTTP of a folder with 10,000 descendants (100 folders of 99 files), there and back.",
    );
    let session = server.session();
    let workspace = session.create_workspace("moves");
    server.prepare(FOLDERS, |session, folder| {
        session.tool(&workspace, "mkdir", &json!({"path": format!("/here/folder-{folder:03}")}));
    });
    server.prepare(FOLDERS * FILES_PER_FOLDER, |session, index| {
        let (folder, file) = (index / FILES_PER_FOLDER, index % FILES_PER_FOLDER);
        let path = format!("/here/folder-{folder:03}/file-{file:03}.md");
        session.write(&workspace, &path, &format!("File {index}.\n"));
    });
    let listing = session.tool(&workspace, "ls", &json!({"path": "/here", "recursive": true}));
    assert_eq!(listing["entries"].as_array().map(Vec::len), Some(FOLDERS * (FILES_PER_FOLDER + 1)));

    let (mut from, mut to) = ("/here", "/there");
    let mut moves_ms = Vec::new();
    // The first move is the warm-up.
    for _ in 0..=effort.moves {
        let args = json!({"source": from, "destination": to});
        let start = Instant::now();
        session.tool(&workspace, "mv", &args);
        moves_ms.push(start.elapsed().as_secs_f64() * 1e3);
        let last = format!("{to}/folder-{:03}/file-{:03}.md", FOLDERS - 1, FILES_PER_FOLDER - 1);
        assert!(session.read(&workspace, &last).starts_with("File"));
        (from, to) = (to, from);
    }
    report.add(Figure {
        case: "mv with 10,000 descendants".to_owned(),
        unit: "ms",
        rounds: moves_ms.split_off(1),
        target: match backend {
            Backend::Sqlite => Target::AtMost(100.0),
            Backend::Postgres(_) => Target::AtMost(350.0),
        },
        notes: format!("{} moves, wall time", effort.moves),
    });
}
