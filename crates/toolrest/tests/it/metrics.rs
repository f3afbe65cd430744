//! `GET /metrics`: its format, its numbers, and who may read it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;
use toolrest_testkit::{Client, Request, Server, Workspace, eventually};

use crate::on::On;
use crate::toolset::SYSTEM;

on_both_databases![
    calls_change_the_metrics,
    the_metrics_at_the_address_of_the_server_need_the_token,
    names_that_callers_make_up_are_not_in_the_metrics,
];
on!(folder, Folder: calls_change_the_metrics);

const TOKEN: &str = "a token for the monitoring system";

/// A value of the metrics, by its name and its sorted labels.
type Samples = BTreeMap<(String, Vec<(String, String)>), f64>;

async fn fetch(client: &Client) -> String {
    let reply = client.send(Request::new("GET", "/metrics").bearer(TOKEN)).await;
    assert_eq!(reply.status, 200, "{reply}");
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    reply.text.clone()
}

/// Whether a text is a name of a metric or a label.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// Parses the text format, and checks each line of it.
fn parse(text: &str) -> Samples {
    let (mut samples, mut helps, mut types) = (Samples::new(), BTreeSet::new(), BTreeMap::new());
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').expect("a help text");
            assert!(is_name(name) && !words.is_empty() && helps.insert(name.to_owned()), "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind) && helps.contains(name), "{line}");
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
            let (name, labels) = match series.split_once('{') {
                Some((name, labels)) => (name, labels.strip_suffix('}').unwrap_or_else(|| panic!("{line}"))),
                None => (series, ""),
            };
            let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
            let family = of_histogram.filter(|family| types.get(*family).is_some_and(|kind| kind == "histogram"));
            assert!(types.contains_key(family.unwrap_or(name)), "no type for {line}");
            let mut pairs: Vec<(String, String)> = Vec::new();
            for pair in labels.split(',').filter(|pair| !pair.is_empty()) {
                let (label, text) = pair.split_once('=').unwrap_or_else(|| panic!("{line}"));
                let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                let text = text.filter(|text| !text.contains(['"', '\\'])).unwrap_or_else(|| panic!("{line}"));
                assert!(is_name(label), "{line}");
                pairs.push((label.to_owned(), text.to_owned()));
            }
            pairs.sort();
            let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(samples.insert((name.to_owned(), pairs), value).is_none(), "twice: {line}");
        }
    }
    assert_eq!(helps, types.keys().cloned().collect());
    check_histograms(&samples);
    samples
}

/// Checks that the buckets of each histogram are cumulative, and that the last one is its count.
fn check_histograms(samples: &Samples) {
    let counts = samples.iter().filter(|((name, _), _)| name == "toolrest_call_duration_seconds_count");
    let mut checked = 0;
    for ((_, labels), count) in counts {
        let buckets = samples.iter().filter(|((name, of_it), _)| {
            name == "toolrest_call_duration_seconds_bucket" && labels.iter().all(|label| of_it.contains(label))
        });
        let bound = |labels: &[(String, String)]| {
            let (_, bound) = labels.iter().find(|(name, _)| name == "le").unwrap();
            bound.replace("+Inf", "inf").parse::<f64>().unwrap()
        };
        let mut buckets: Vec<(f64, f64)> = buckets.map(|((_, labels), value)| (bound(labels), *value)).collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!((buckets.len(), buckets[0].0, buckets[15].0), (17, 0.0005, 60.0));
        assert!(buckets.is_sorted_by(|a, b| a.1 <= b.1), "{labels:?}: {buckets:?}");
        assert_eq!(buckets[16], (f64::INFINITY, *count));
        checked += 1;
    }
    assert!(checked > 30, "every tool has a histogram");
}

/// Returns a value; none if there is no such series.
fn value(samples: &Samples, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let mut labels: Vec<_> = labels.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    labels.sort();
    samples.get(&(format!("toolrest_{name}"), labels)).copied()
}

/// Starts a server with a token for metrics.
fn start(on: On) -> Server {
    on.options().env("TOOLREST__METRICS__TOKEN", TOKEN).start()
}

async fn calls_change_the_metrics(on: On) {
    let server = start(on);
    let client = server.client();
    let workspace = on.workspace_at(&server).await;
    let before = parse(&fetch(&client).await);
    let call = |tool, outcome| [("toolset", "workspace"), ("tool", tool), ("outcome", outcome)];
    assert_eq!(value(&before, "calls_total", &call("write", "ok")), Some(0.0));
    assert_eq!(value(&before, "calls_total", &call("read", "NotFound")), None);
    for n in 0..3 {
        workspace.write(&format!("/{n}.txt"), &"text ".repeat(1000 * (n + 1))).await;
    }
    workspace.ok("grep", json!({"pattern": "text"})).await;
    workspace.refused(404, "NOT_FOUND", "read", json!({"path": "/missing.txt"})).await;
    run(&workspace, "true", 0).await;
    run(&workspace, "exit 3", 3).await;
    let process = SYSTEM.ok(&workspace, "start_process", json!({"command": "sleep 100"})).await;
    let after = parse(&fetch(&client).await);
    assert_eq!(value(&after, "calls_total", &call("write", "ok")), Some(3.0));
    assert_eq!(value(&after, "calls_total", &call("read", "NotFound")), Some(1.0));
    let tool = [("toolset", "system"), ("tool", "run_code")];
    assert_eq!(value(&after, "call_duration_seconds_count", &tool), Some(2.0));
    assert!(value(&after, "call_duration_seconds_sum", &tool).unwrap() > 0.001);
    assert_eq!(value(&after, "program_runs_total", &[("outcome", "ok")]), Some(1.0));
    assert_eq!(value(&after, "program_runs_total", &[("outcome", "failed")]), Some(1.0));
    assert_eq!(value(&after, "background_processes", &[]), Some(1.0));
    assert_eq!(value(&after, "calls_running", &[]), Some(0.0));
    assert!(value(&after, "http_connections", &[]).unwrap() >= 1.0);
    assert_eq!(value(&after, "search_cache_limit_bytes", &[]), Some(f64::from(512 << 20)));
    for queue in ["calls", "heavy_work", "programs", "searches"] {
        assert_eq!(value(&after, "queue_waiting", &[("queue", queue)]), Some(0.0));
        assert!(value(&after, "queue_running", &[("queue", queue)]).is_some());
    }
    let is_postgres = matches!(on, On::Postgres);
    assert_eq!(value(&after, "sqlite_queued_writes", &[]).is_some(), !is_postgres);
    assert_eq!(value(&after, "database_connections_limit", &[]), is_postgres.then_some(10.0));
    let database = if is_postgres { "postgres" } else { "sqlite" };
    let build = [("version", env!("CARGO_PKG_VERSION")), ("database", database)];
    assert_eq!(value(&after, "build_info", &build), Some(1.0));
    SYSTEM.ok(&workspace, "stop_process", json!({"id": process["id"]})).await;
    let later = eventually("the counters are in the database", Duration::from_secs(20), async || {
        let later = parse(&fetch(&client).await);
        // Files in folders do not count.
        let is_stored = on == On::Folder || value(&later, "stored_bytes", &[]).unwrap() > 30_000.0;
        (is_stored && value(&later, "call_records_pending", &[]) == Some(0.0)).then_some(later)
    })
    .await;
    assert_eq!(value(&later, "program_runs_total", &[("outcome", "cancelled")]), Some(1.0));
    assert_eq!(value(&later, "background_processes", &[]), Some(0.0));
    if on != On::Folder {
        assert!(value(&later, "search_cache_bytes", &[]).unwrap() > 0.0);
    }
}

async fn run(workspace: &Workspace, code: &str, exit: i64) {
    let ran = SYSTEM.ok(workspace, "run_code", json!({"language": "bash", "code": code})).await;
    assert_eq!(ran["exitCode"], exit, "{ran}");
}

async fn the_metrics_at_the_address_of_the_server_need_the_token(on: On) {
    let with_token = start(on);
    let metrics = || Request::new("GET", "/metrics");
    let missing = Request::new("GET", "/missing");
    for request in [metrics(), metrics().bearer("another token"), metrics().bearer(""), metrics().bearer(&TOKEN[1..])] {
        let reply = with_token.client().send(request).await;
        assert_eq!(reply.status, 404, "{reply}");
    }
    parse(&fetch(&with_token.client()).await);
    let without = on.options().start();
    let reply = without.client().send(metrics().bearer(TOKEN)).await;
    let expected = without.client().send(missing).await;
    assert_eq!(reply.status, 404);
    assert_eq!(reply.json()["code"], expected.json()["code"]);
}

async fn names_that_callers_make_up_are_not_in_the_metrics(on: On) {
    let server = start(on);
    let workspace = on.workspace_at(&server).await;
    for name in ["hostile_name", "hostile\"} 1\ntoolrest_forged 1", "read\\", "unknown"] {
        for toolset in ["workspace", "file", "hostile_toolset"] {
            let reply = workspace.call_of(toolset, name, &json!({})).await;
            assert!(reply.status >= 400, "{reply}");
        }
    }
    let text = fetch(&server.client()).await;
    assert!(!text.contains("hostile") && !text.contains("forged"), "{text}");
    let samples = parse(&text);
    let unknown = [("toolset", "workspace"), ("tool", "unknown"), ("outcome", "UnknownTool")];
    assert_eq!(value(&samples, "calls_total", &unknown), Some(4.0));
    assert!(!text.contains(&workspace.id), "no workspace is named");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metrics_have_a_listener_of_their_own_that_serves_nothing_else() {
    let server = On::Sqlite.options().env("TOOLREST__METRICS__LISTEN", "127.0.0.1:0").start();
    let address = eventually("the address", Duration::from_secs(10), async || {
        let output = server.output();
        output
            .lines()
            .find_map(|line| line.split_once("metrics http://")?.1.strip_suffix("/metrics").map(str::to_owned))
    })
    .await;
    let client = Client::new(&address).without_schema_checks();
    let reply = client.send(Request::new("GET", "/metrics")).await;
    assert_eq!(reply.status, 200, "{reply}");
    parse(&reply.text);
    for path in ["/", "/health", "/api/v1/toolsets"] {
        assert_eq!(client.send(Request::new("GET", path)).await.status, 404, "{path}");
    }
    let reply = server.client().send(Request::new("GET", "/metrics")).await;
    assert_eq!(reply.status, 404, "without a token the server's own address has no metrics");
}
