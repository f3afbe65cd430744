//! The first search of a replica that was just started, compared with a plain statement over the same rows.

use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls};
use toolrest_testkit::Postgres;

use super::patterns::{Case, PATTERNS, Pattern};
use super::{Files, LIMIT, LoadedFiles, Searcher, Times, milliseconds};
use crate::cases::Effort;
use crate::report::{Report, Target};

/// Plain statements that take longer than this are measured only once.
const MEASURED_ONCE_FROM: Duration = Duration::from_millis(700);
const BATCH: usize = 500;

/// The simplest statement for a search. The primary key gives the order, so that it can stop at the limit.
fn plain_statement(pattern: &Pattern) -> String {
    let operator = match pattern.case {
        Case::Ignored => "~*",
        Case::Kept => "~",
    };
    format!(
        r"SELECT path, n, line FROM docs, regexp_split_to_table(content, E'\n') WITH ORDINALITY AS l(line, n)
          WHERE line {operator} $1 ORDER BY path, n LIMIT {LIMIT}"
    )
}

pub fn run(postgres: &Postgres, files: &Files, loaded: &LoadedFiles, effort: Effort, report: &mut Report) {
    eprintln!("search on a cold replica");
    report.section(
        "Search on a cold replica, PostgreSQL",
        format!(
            "The first `grep` of a server process that was just started, over HTTP, as a fraction of the time of the plain \
             statement (`regexp_split_to_table`, `~` on each line, in the order of an index on the path, the same \
             limit) over the same {}. Plain statements that take longer than {} ms are measured once.",
            files.description(),
            MEASURED_ONCE_FROM.as_millis()
        ),
    );
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let client = runtime.block_on(connect(&postgres.create_database()));
    runtime.block_on(fill(&client, files));
    let mut times = Times::default();
    for _ in 0..effort.rounds {
        for (index, pattern) in PATTERNS.iter().enumerate() {
            let theirs = &mut times.theirs[index];
            let rows = if theirs.last().is_none_or(|last| *last < milliseconds(MEASURED_ONCE_FROM)) {
                let start = Instant::now();
                let rows = runtime.block_on(client.query(&plain_statement(pattern), &[&pattern.text]));
                theirs.push(milliseconds(start.elapsed()));
                Some(rows.expect("the plain statement runs").len())
            } else {
                None
            };
            let replica = loaded.server.replica(&[]);
            let (elapsed, matches) = Searcher::new(&replica, &loaded.workspace).search(&pattern.args());
            times.ours[index].push(milliseconds(elapsed));
            assert!(rows.is_none_or(|rows| rows == matches), "{}: {matches} matches, {rows:?} rows", pattern.text);
        }
    }
    times.figures(|_| Target::AtMost(1.0), |_| " of the plain statement".to_owned(), report);
    report.add(times.geometric_mean(Target::AtMost(0.2)));
}

async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.expect("PostgreSQL accepts connections");
    tokio::spawn(connection);
    client
}

async fn fill(client: &Client, files: &Files) {
    let schema = r#"SET jit = off; CREATE TABLE docs (path text COLLATE "C" PRIMARY KEY, content text NOT NULL)"#;
    client.batch_execute(schema).await.expect("the table can be made");
    let insert = client.prepare("INSERT INTO docs SELECT * FROM unnest($1::text[], $2::text[])").await;
    let insert = insert.expect("it prepares");
    let paths: Vec<String> = (0..files.corpus.files).map(|index| files.corpus.path(index)).collect();
    for paths in paths.chunks(BATCH) {
        let texts: Vec<String> = paths.iter().map(|path| files.text(path)).collect();
        client.execute(&insert, &[&paths, &texts]).await.expect("rows can be inserted");
    }
    client.batch_execute("VACUUM ANALYZE docs").await.expect("the table can be vacuumed");
}
