//! The metrics of a process, in the text format of Prometheus.
//!
//! Labels have a bounded number of values: names of known tools, kinds of errors, names of queues. Nothing that a caller
//! chooses becomes a label.

use crate::connection::{Connections, StallTimeout};
use crate::http::App;
use crate::runtime::Runtime;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderValue, StatusCode, header};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::{fmt, fmt::Write as _, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use toolrest_core::{DURATION_BUCKETS_US, ToolCounts};

/// Maximum time for counting the stored bytes. A database that does not answer must not delay the other metrics.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time for receiving the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of connections to the listener for metrics.
const MAX_CONNECTIONS: usize = 64;

/// Returns all metrics. `connections` is the number of open HTTP connections, if there is a server.
pub(crate) async fn text(runtime: &Runtime, connections: Option<usize>) -> String {
    let load = runtime.store.load();
    let stored = tokio::time::timeout(DATABASE_TIMEOUT, runtime.store.stored_bytes()).await;
    let mut text = Text::default();
    text.gauge("build_info", "The version of the server and the kind of its database.");
    text.sample("", &[("version", env!("CARGO_PKG_VERSION")), ("database", load.database)], 1);
    calls(&mut text, runtime);
    let [(calls, of_calls), (heavy, of_heavy)] = runtime.engine.queues();
    let searches = load.searches + runtime.workspaces.folder_searches();
    let queues = [(calls, of_calls), (heavy, of_heavy), ("programs", runtime.executor.queue()), ("searches", searches)];
    text.gauge("queue_running", "Slots of a queue in use.");
    for (queue, depth) in queues {
        text.sample("", &[("queue", queue)], depth.taken);
    }
    text.gauge("queue_waiting", "Callers that wait for a slot of a queue.");
    for (queue, depth) in queues {
        text.sample("", &[("queue", queue)], depth.waiting);
    }
    if let Some(pool) = load.pool {
        text.gauge("database_connections", "Open connections to PostgreSQL.");
        text.sample("", &[("state", "used")], pool.open.saturating_sub(pool.idle));
        text.sample("", &[("state", "idle")], pool.idle);
        text.one("database_connections_limit", "Maximum number of connections to PostgreSQL.", pool.limit);
        text.one("database_connections_waiting", "Requests that wait for a connection to PostgreSQL.", pool.waiting);
    }
    if let Some(queued) = load.queued_writes {
        text.one("sqlite_queued_writes", "Writes that wait for the writer of SQLite.", queued);
    }
    text.counter("program_runs_total", "Ended programs and background processes.");
    for (outcome, count) in runtime.executor.ended_runs() {
        text.sample("", &[("outcome", outcome.name())], count);
    }
    text.one(
        "programs_running",
        "Programs that run now, without background processes.",
        runtime.executor.queue().taken,
    );
    text.one("background_processes", "Background processes that run now.", runtime.processes.running());
    text.one("search_cache_bytes", "Bytes in the search cache.", load.search_cache_bytes);
    text.one("search_cache_limit_bytes", "Maximum size of the search cache.", load.search_cache_limit_bytes);
    // Left out while the database does not answer: 0 would be wrong.
    if let Ok(Ok(bytes)) = stored {
        text.one("stored_bytes", "Bytes that all workspaces store in the database.", bytes);
    }
    text.one("call_records_pending", "Records of calls that wait to be written.", runtime.records.pending());
    if let Some(open) = connections {
        text.one("http_connections", "Open HTTP connections.", open);
    }
    text.0
}

fn calls(text: &mut Text, runtime: &Runtime) {
    let counts = runtime.engine.metrics().counts();
    text.counter("calls_total", "Tool calls by outcome: ok, or the kind of the error.");
    for ToolCounts { toolset, tool, ok, errors, .. } in &counts {
        let mut outcome = |outcome: &str, count: u64| {
            text.sample("", &[("toolset", toolset), ("tool", tool), ("outcome", outcome)], count);
        };
        outcome("ok", *ok);
        for (kind, count) in errors {
            outcome(&format!("{kind:?}"), *count);
        }
    }
    text.family("call_duration_seconds", "histogram", "Durations of tool calls, including the time in queues.");
    for ToolCounts { toolset, tool, buckets, total_us, .. } in &counts {
        let labels = [("toolset", *toolset), ("tool", *tool)];
        let bounds = DURATION_BUCKETS_US.iter().map(|us| seconds(*us).to_string()).chain(["+Inf".to_owned()]);
        let mut total = 0;
        for (bound, count) in bounds.zip(buckets) {
            total += count;
            text.sample("_bucket", &[labels[0], labels[1], ("le", &bound)], total);
        }
        text.sample("_sum", &labels, seconds(*total_us));
        text.sample("_count", &labels, total);
    }
    text.one("calls_running", "Tool calls under way, including those that wait.", runtime.engine.metrics().under_way());
}

fn seconds(us: u64) -> f64 {
    Duration::from_micros(us).as_secs_f64()
}

/// Writes the text format. All names begin with `toolrest_`.
#[derive(Default)]
struct Text(String, &'static str);

impl Text {
    /// Begins a family of samples.
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.1 = name;
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP toolrest_{name} {help}\n# TYPE toolrest_{name} {kind}\n");
    }

    fn gauge(&mut self, name: &'static str, help: &str) {
        self.family(name, "gauge", help);
    }

    fn counter(&mut self, name: &'static str, help: &str) {
        self.family(name, "counter", help);
    }

    /// Adds a gauge without labels.
    fn one(&mut self, name: &'static str, help: &str, value: impl fmt::Display) {
        self.gauge(name, help);
        self.sample("", &[], value);
    }

    /// Adds a sample of the last family.
    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        let _ = write!(self.0, "toolrest_{}{suffix}", self.1);
        for (place, (name, label)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let escaped = label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{before}{name}=\"{escaped}\"");
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
}

/// Returns the answer with all metrics.
pub(crate) async fn answer(app: &App) -> Response {
    let mut response = text(&app.runtime, Some(app.connections.open())).await.into_response();
    let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// Serves the metrics, and nothing else, on a listener of their own.
pub(crate) async fn serve(app: Arc<App>, listener: TcpListener) {
    let show = |State(app): State<Arc<App>>| async move { answer(&app).await };
    let router = Router::new().route("/metrics", get(show)).fallback(async || StatusCode::NOT_FOUND).with_state(app);
    let open = Connections::new(MAX_CONNECTIONS);
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection for metrics");
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        // A proxy may use the whole limit; so may a monitoring system here.
        let Some(slot) = open.enter(peer.ip().to_canonical(), true) else { continue };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(StallTimeout::new(stream)), TowerToHyperService::new(router.clone()));
        tokio::spawn(async move {
            let _slot = slot;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection for metrics ended early");
            }
        });
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
