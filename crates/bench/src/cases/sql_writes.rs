//! Writes straight on PostgreSQL: our one statement against seven round trips.

use std::env;
use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

use self::one_statement::OneStatement;
use self::round_trips::{OnOurTables, OnUsualTables};
use self::the_store::TheStore;
use super::{Effort, each, fdatasync_figure, latencies, middle};
use crate::contents::{self, Numbers};
use crate::load::Round;
use crate::postgres::Cluster;
use crate::process;
use crate::report::{Figure, Report, Target};
use crate::server::Cpu;

mod one_statement;
mod round_trips;
mod the_store;

const CLIENTS: usize = 8;
const FILES: usize = 2000;
const CONTENT_BYTES: usize = 4096;
/// A round is cut in slices and the ways take turns, so that a neighbour's burst on the disk meets all of them.
const SLICES: u32 = 3;
pub const WORKSPACE: Uuid = Uuid::from_u128(1);

/// A way to write a new version of a file, prepared on one connection.
pub trait Way: Send + Sized + 'static {
    /// Makes the tables, with [`FILES`] files of [`WORKSPACE`] at the paths of [`path`], each of one version:
    /// on empty tables PostgreSQL would settle on plans that no grown database has.
    const SCHEMA: &'static str;
    const COUNT_VERSIONS: &'static str;

    fn prepare(address: &str) -> impl Future<Output = Self> + Send;
    fn write(&mut self, path: &str, text: &str) -> impl Future<Output = ()> + Send;
}

fn path(file: usize) -> String {
    format!("/src/folder-{}/file-{file}.rs", file % 40)
}

/// Runs the comparison on a database of its own.
pub fn run(cluster: &Cluster, effort: Effort, report: &mut Report) {
    eprintln!("writes straight on PostgreSQL");
    report.section(
        "Writes straight on PostgreSQL",
        format!(
            "{CLIENTS} clients write new versions of 4 KB to {FILES} files, SQL only, without the server. \
             The seven round trips: file by path, file by id, latest version, BEGIN, insert version, update file, COMMIT. \
             Usual tables are laid out as the original of this API has them: contents as jsonb, with its indexes."
        ),
    );
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let address = cluster.create_database("sql_writes");
    let (mut ours, mut usual, mut same_tables, mut store) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut syncs = Vec::new();
    for index in 0..=effort.rounds * SLICES as usize {
        // The first time around is the warm-up.
        let duration = if index == 0 { effort.warm_up } else { effort.round / SLICES };
        let usual_round = runtime.block_on(measure::<OnUsualTables>(cluster, &address, duration));
        let ours_round = runtime.block_on(measure::<OneStatement>(cluster, &address, duration));
        let same_tables_round = runtime.block_on(measure::<OnOurTables>(cluster, &address, duration));
        let store_round = runtime.block_on(measure::<TheStore>(cluster, &address, duration));
        if index > 0 {
            store.push(store_round);
            syncs.push(process::fdatasync_per_second(&env::temp_dir(), Duration::from_millis(200)));
            ours.push(ours_round);
            usual.push(usual_round);
            same_tables.push(same_tables_round);
        }
    }
    let speeds = [
        ("one statement", &ours),
        ("seven round trips, usual tables", &usual),
        ("seven round trips, our tables", &same_tables),
        ("the store's commit", &store),
    ];
    for (case, rounds) in speeds {
        report.add(Figure {
            case: case.to_owned(),
            unit: "/s",
            rounds: each(rounds, Round::requests_per_second),
            target: Target::None,
            beside: format!(
                "{}, CPU of the database {} ms a write, of the client {} ms",
                latencies(rounds),
                middle(rounds, Round::cpu_ms),
                middle(rounds, |round| round.per_request_ms(round.generator_cpu))
            ),
        });
    }
    report.add(fdatasync_figure(syncs));
    report.add(ratio("one statement against seven round trips", &ours, &usual, Target::AtLeast(2.5), "usual tables"));
    report.add(ratio(
        "one statement against seven round trips, our tables for both",
        &ours,
        &same_tables,
        Target::None,
        "the same rows written: what the round trips alone cost",
    ));
    report.add(ratio(
        "the store's commit against seven round trips",
        &store,
        &usual,
        Target::None,
        "usual tables; the store also checks the membership and keeps a commit and the record of the call",
    ));
}

fn ratio(case: &str, ours: &[Round], theirs: &[Round], target: Target, beside: &str) -> Figure {
    Figure {
        case: case.to_owned(),
        unit: "×",
        rounds: ours
            .iter()
            .zip(theirs)
            .map(|(ours, theirs)| ours.requests_per_second() / theirs.requests_per_second())
            .collect(),
        target,
        beside: beside.to_owned(),
    }
}

pub async fn measure<W: Way>(cluster: &Cluster, address: &str, duration: Duration) -> Round {
    let admin = connect(address).await;
    // What the round before left to be flushed is not this one's burden. The checkpoint goes before the tables are
    // made, so that pages are in the state they have between checkpoints: written to since the last one.
    for preparation in ["CHECKPOINT", W::SCHEMA, "VACUUM ANALYZE"] {
        admin.batch_execute(preparation).await.expect("the tables can be made");
    }
    let mut writers = Vec::new();
    for _ in 0..CLIENTS {
        writers.push(W::prepare(address).await);
    }

    let own = std::process::id();
    let (database, generator) = (cluster.cpu(), process::cpu(own));
    let start = Instant::now();
    let tasks: Vec<_> = writers
        .into_iter()
        .enumerate()
        .map(|(index, writer)| tokio::spawn(write_until(writer, index, start + duration)))
        .collect();
    let mut latencies = Vec::new();
    let mut writers = Vec::new();
    for task in tasks {
        let (writer, measured) = task.await.expect("a writer stays in order");
        latencies.extend(measured);
        // Kept until the end: a backend that leaves is no part of writing.
        writers.push(writer);
    }
    let elapsed = start.elapsed();
    let cpu = Cpu { server: Duration::ZERO, database: cluster.cpu().saturating_sub(database) };
    let generator_cpu = process::cpu(own).saturating_sub(generator);

    let row = admin.query_one(W::COUNT_VERSIONS, &[]).await.expect("versions can be counted");
    assert_eq!(usize::try_from(row.get::<_, i64>(0)), Ok(FILES + latencies.len()), "every write left one version");
    Round::new(elapsed, latencies, cpu, generator_cpu)
}

async fn write_until<W: Way>(mut writer: W, index: usize, deadline: Instant) -> (W, Vec<Duration>) {
    let mut texts: Vec<Vec<u8>> =
        (0..16).map(|text| contents::prose(1000 * index as u64 + text, CONTENT_BYTES).into_bytes()).collect();
    let paths: Vec<String> = (0..FILES).map(path).collect();
    let mut numbers = Numbers::from_seed(index as u64);
    let mut latencies = Vec::new();
    let mut sent = Instant::now();
    while sent < deadline {
        let turn = latencies.len() % texts.len();
        contents::stamp(&mut texts[turn]);
        let text = str::from_utf8(&texts[turn]).expect("prose is ASCII");
        writer.write(&paths[numbers.below(FILES)], text).await;
        let done = Instant::now();
        latencies.push(done - sent);
        sent = done;
    }
    (writer, latencies)
}

pub async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.expect("PostgreSQL takes connections");
    tokio::spawn(connection);
    client
}
