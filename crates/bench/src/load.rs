//! Load on a server: one thread per connection, each sending a request as soon as the last one is answered.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::contents::{self, Numbers, STAMP_DIGITS};
use crate::process;
use crate::server::{Cpu, Server, Session};

/// The server writes the records of reads in batches, within a second. CPU time is measured until then, because that
/// work belongs to the requests of the round.
const BATCHED_WRITES: Duration = Duration::from_millis(1200);

/// The requests of one connection.
pub trait Requests: Send {
    fn next(&mut self) -> &[u8];
}

/// The same request every time.
pub struct Repeated(pub Vec<u8>);

impl Requests for Repeated {
    fn next(&mut self) -> &[u8] {
        &self.0
    }
}

/// Writes of new contents to random existing documents.
pub struct Updates {
    requests: Vec<Vec<u8>>,
    /// Positions of the document's number and of the stamp in each request.
    digits_at: Vec<(usize, usize)>,
    documents: usize,
    numbers: Numbers,
    next_text: usize,
}

impl Updates {
    /// Texts that a connection sends in turn, each time with a new stamp.
    const TEXTS: usize = 16;
    const DOCUMENT_DIGITS: usize = 6;

    /// Creates the documents that [`Updates::new`] writes to.
    pub fn prepare(server: &Server, workspace: &str, documents: usize, size: usize) {
        server.prepare(documents, |session, index| {
            let text = contents::prose(index as u64, size);
            session.write(workspace, &Self::path(index), &text);
        });
    }

    pub fn path(document: usize) -> String {
        format!("/documents/{document:0width$}.md", width = Self::DOCUMENT_DIGITS)
    }

    pub fn new(server: &Server, workspace: &str, documents: usize, size: usize, connection: usize) -> Self {
        let seed = 1000 * connection as u64;
        let requests: Vec<Vec<u8>> = (0..Self::TEXTS as u64)
            .map(|text| {
                let content = contents::prose(seed + text, size);
                let args = json!({"path": Self::path(0), "content": content});
                server.render_tool(workspace, "write", &args)
            })
            .collect();
        let path = Self::path(0);
        let name = &path.as_bytes()[path.len() - Self::DOCUMENT_DIGITS - ".md".len()..];
        let digits_at =
            requests.iter().map(|request| (find(request, name), find(request, &[b'0'; STAMP_DIGITS]))).collect();
        Self { requests, digits_at, documents, numbers: Numbers::from_seed(seed + 7), next_text: 0 }
    }
}

impl Requests for Updates {
    fn next(&mut self) -> &[u8] {
        self.next_text = (self.next_text + 1) % self.requests.len();
        let request = &mut self.requests[self.next_text];
        let (name, stamp) = self.digits_at[self.next_text];
        let document = self.numbers.below(self.documents) as u64;
        contents::write_number(&mut request[name..name + Self::DOCUMENT_DIGITS], document);
        contents::stamp(&mut request[stamp..]);
        request
    }
}

fn find(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|window| window == part).expect("the request contains it")
}

/// The measurements of one round.
pub struct Round {
    elapsed: Duration,
    /// Latencies of all answered requests, ascending.
    latencies: Vec<Duration>,
    pub cpu: Cpu,
    pub generator_cpu: Duration,
}

impl Round {
    fn new(elapsed: Duration, mut latencies: Vec<Duration>, cpu: Cpu, generator_cpu: Duration) -> Self {
        assert!(!latencies.is_empty(), "no request was answered in a round");
        latencies.sort_unstable();
        Self { elapsed, latencies, cpu, generator_cpu }
    }

    pub fn requests_per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the CPU time of server and database per request.
    pub fn cpu_ms(&self) -> f64 {
        self.per_request_ms(self.cpu.server + self.cpu.database)
    }

    pub fn per_request_ms(&self, total: Duration) -> f64 {
        total.as_secs_f64() * 1e3 / self.latencies.len() as f64
    }

    pub fn latency_ms(&self, percent: usize) -> f64 {
        let index = (self.latencies.len() * percent / 100).min(self.latencies.len() - 1);
        self.latencies[index].as_secs_f64() * 1e3
    }
}

/// Sends requests for `duration` on `connections` connections at once.
pub fn run<R: Requests>(
    server: &Server,
    connections: usize,
    duration: Duration,
    requests: impl Fn(usize) -> R,
) -> Round {
    // Requests are rendered before the round.
    run_on(server, duration, (0..connections).map(|index| (requests(index), server.session())).collect())
}

/// Sends requests for `duration`, each connection its own.
pub fn run_on<R: Requests>(server: &Server, duration: Duration, prepared: Vec<(R, Session)>) -> Round {
    let own = std::process::id();
    let start_barrier = Barrier::new(prepared.len() + 1);
    thread::scope(|scope| {
        let workers: Vec<_> = prepared
            .into_iter()
            .map(|(mut requests, session)| {
                let start_barrier = &start_barrier;
                scope.spawn(move || {
                    let mut latencies = Vec::with_capacity(1 << 16);
                    start_barrier.wait();
                    let start = Instant::now();
                    let mut sent = start;
                    while sent - start < duration {
                        let reply = session.exchange(requests.next());
                        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
                        let answered = Instant::now();
                        latencies.push(answered - sent);
                        sent = answered;
                    }
                    latencies
                })
            })
            .collect();
        let (cpu, generator_cpu) = (server.cpu(), process::cpu(own));
        start_barrier.wait();
        let start = Instant::now();
        let latencies = workers.into_iter().flat_map(|worker| worker.join().expect("no worker panics")).collect();
        let elapsed = start.elapsed();
        let generator_cpu = process::cpu(own).saturating_sub(generator_cpu);
        thread::sleep(BATCHED_WRITES);
        Round::new(elapsed, latencies, server.cpu().since(cpu), generator_cpu)
    })
}
