//! What search costs those who write: the store's own statement with and without what only searches need.

use std::time::Instant;

use sha2::{Digest, Sha256};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};
use toolrest_core::{FileType, Form, Role, now};
use uuid::Uuid;
use zstd::bulk::Compressor;

use self::signature::Signature;
use crate::cases::sql_writes::{WORKSPACE, Way, connect, measure};
use crate::cases::{Effort, each, latencies, middle};
use crate::contents;
use crate::load::Round;
use crate::postgres::Cluster;
use crate::report::{Figure, Report, Target};

#[allow(dead_code, reason = "the store's own code; only what a write does with it is measured")]
#[path = "../../../../store/src/signature.rs"]
mod signature;

/// A round is cut in slices and the two take turns, so that a neighbour's burst on the disk meets both.
const SLICES: u32 = 2;
const CONTENT_BYTES: usize = 4096;
const SOURCE: &str = include_str!("../../../../store/src/postgres/put.rs");

/// What is in the statement for searches only, and what stands there without.
const FOR_SEARCHES: [(&str, &str); 3] = [
    (", changed AS (\n    INSERT INTO changes (ws, file_id) SELECT $1, id FROM target\n)", ""),
    ("encoding, data, signature)", "encoding, data)"),
    ("$13, $26 FROM", "$13 FROM"),
];

pub fn run(cluster: &Cluster, effort: Effort, report: &mut Report) {
    eprintln!("what search costs writers");
    report.section(
        "What search costs writers, PostgreSQL",
        "8 clients write new versions of 4 KB to 2,000 files, SQL only: the store's own statement for one write, with \
         and without its parts for searches, in turns. With them it adds a row to the list of changes and a signature \
         to the content, which the client computes.",
    );
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let address = cluster.create_database("write_cost");
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for index in 0..=effort.rounds * SLICES as usize {
        // The first time around is the warm-up.
        let duration = if index == 0 { effort.warm_up } else { effort.round / SLICES };
        let without_round = runtime.block_on(measure::<Put<false>>(cluster, &address, duration));
        let with_round = runtime.block_on(measure::<Put<true>>(cluster, &address, duration));
        if index > 0 {
            without.push(without_round);
            with.push(with_round);
        }
    }
    for (case, rounds) in [("with what searches need", &with), ("without", &without)] {
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
    let more = |cost: fn(&Round) -> f64| {
        with.iter().zip(&without).map(|(with, without)| 100.0 * (cost(with) / cost(without) - 1.0)).collect()
    };
    report.add(Figure {
        case: "more CPU time a write".to_owned(),
        unit: "%",
        rounds: more(|round| round.cpu_ms() + round.per_request_ms(round.generator_cpu)),
        target: Target::AtMost(15.0),
        beside: "database and client together".to_owned(),
    });
    report.add(Figure {
        case: "more time a write".to_owned(),
        unit: "%",
        rounds: more(|round| 1.0 / round.requests_per_second()),
        target: Target::AtMost(15.0),
        beside: "by writes a second, which hang on the disk's syncs".to_owned(),
    });
    report.add(signature_figure(effort));
}

fn signature_figure(effort: Effort) -> Figure {
    let texts: Vec<String> = (0..100).map(|seed| contents::prose(seed, CONTENT_BYTES)).collect();
    let round = |_| {
        let start = Instant::now();
        for text in &texts {
            std::hint::black_box(Signature::of(text.as_bytes()));
        }
        start.elapsed().as_secs_f64() * 1e6 / texts.len() as f64
    };
    Figure {
        case: "the signature of 4 KB".to_owned(),
        unit: "µs",
        rounds: (0..4 * effort.rounds).map(round).collect(),
        target: Target::None,
        beside: "computed alone, on one core; SQLite's writes pay this too".to_owned(),
    }
}

/// The store's statement, taken from its source.
fn statement(searched: bool) -> String {
    let begin = SOURCE.split_once("const PUT: &str = \"").expect("the store has the statement").1;
    let mut sql = begin.split_once("\";").expect("the statement ends").0.replace("\\\"", "\"");
    for (with, without) in FOR_SEARCHES {
        assert!(sql.contains(with), "the store's statement no longer has {with}");
        if !searched {
            sql = sql.replace(with, without);
        }
    }
    sql
}

/// The store's write, with what searches need or without.
struct Put<const SEARCHED: bool> {
    client: Client,
    statement: Statement,
    compressor: Compressor<'static>,
}

impl<const SEARCHED: bool> Way for Put<SEARCHED> {
    const SCHEMA: &'static str = if SEARCHED {
        concat!(
            "DROP SCHEMA public CASCADE; CREATE SCHEMA public;",
            include_str!("../../../../store/migrations/postgres/0001_ground_floor.sql"),
            include_str!("../../../../store/migrations/postgres/0002_search.sql"),
            include_str!("../sql_writes/grown.sql")
        )
    } else {
        concat!(
            "DROP SCHEMA public CASCADE; CREATE SCHEMA public;",
            include_str!("../../../../store/migrations/postgres/0001_ground_floor.sql"),
            include_str!("../sql_writes/grown.sql")
        )
    };
    const COUNT_VERSIONS: &'static str = "SELECT count(*) FROM versions";

    async fn prepare(address: &str) -> Self {
        let client = connect(address).await;
        // As the store sets up its connections.
        let setup = "SET jit = off; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off";
        client.batch_execute(setup).await.expect("settings can be made");
        let statement = client.prepare(&statement(SEARCHED)).await.expect("it prepares");
        Self { client, statement, compressor: Compressor::new(3).expect("zstd starts") }
    }

    async fn write(&mut self, path: &str, text: &str) {
        let hash = Sha256::digest(text);
        let data = self.compressor.compress(text.as_bytes()).expect("a text compresses");
        let signature = SEARCHED.then(|| Signature::of(text.as_bytes()));
        let (folder, name) = path.rsplit_once('/').expect("a path has a folder");
        let size = i64::try_from(text.len()).expect("texts here are short");
        let at = now();
        let quoted = format!("\"{path}\"");
        let parameters: [&(dyn ToSql + Sync); 26] = [
            &WORKSPACE,
            &WORKSPACE,
            &Role::Editor.code(),
            &path,
            &folder,
            &name,
            &FileType::Document.code(),
            &hash.as_slice(),
            &hash.as_slice(),
            &Form::Text.code(),
            &size,
            &1_i16,
            &data,
            &Uuid::now_v7(),
            &Uuid::now_v7(),
            &Uuid::now_v7(),
            &at,
            &None::<&[u8]>,
            &Uuid::now_v7(),
            &"bench",
            &"write",
            &at,
            &0_i64,
            &quoted,
            &None::<Uuid>,
            &signature.as_ref().map(Signature::as_bytes),
        ];
        let used = if SEARCHED { &parameters[..] } else { &parameters[..25] };
        let row = self.client.query_one(&self.statement, used).await.expect("the statement runs");
        assert!(row.get::<_, Option<Uuid>>(1).is_some(), "the statement writes one version");
    }
}
