//! Hosts that play the web and GitHub. They listen on loopback addresses of their own, which the servers of the tests may
//! reach, unlike other addresses of the machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};

/// The address of the host that plays the web.
pub const WEB_ADDRESS: &str = "127.0.0.9";
/// The address of the host that plays GitHub.
pub const GITHUB_ADDRESS: &str = "127.0.0.10";

/// A request as the host received it.
#[derive(Clone, Debug)]
pub struct Received {
    pub method: String,
    /// The path with the query.
    pub target: String,
    /// The names in lower case.
    fields: Vec<(String, String)>,
    pub body: String,
}

impl Received {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}

type Answer = dyn Fn(&Received, &mut TcpStream) + Send + Sync;

/// A host. It runs until the test process ends.
pub struct WebHost {
    address: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl WebHost {
    /// Starts a host at a free port. Each connection is for one request.
    pub fn start(address: &str, answer: impl Fn(&Received, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let (address, received) = (listener.local_addr().unwrap().to_string(), Arc::<Mutex<Vec<_>>>::default());
        let (answer, log): (Arc<Answer>, _) = (Arc::new(answer), Arc::clone(&received));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                std::thread::spawn(move || serve(stream, &*answer, &log));
            }
        });
        Self { address, received }
    }

    /// Returns the host that all tests share.
    pub fn web() -> &'static Self {
        static WEB: OnceLock<WebHost> = OnceLock::new();
        WEB.get_or_init(|| Self::start(WEB_ADDRESS, crate::web_pages::answer))
    }

    /// Returns the address as `http://ADDRESS:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests to a path so far.
    pub fn received(&self, path: &str) -> Vec<Received> {
        self.received.lock().unwrap().iter().filter(|one| one.path() == path).cloned().collect()
    }
}

fn serve(mut stream: TcpStream, answer: &Answer, log: &Mutex<Vec<Received>>) {
    if let Some(received) = read(&stream) {
        log.lock().unwrap().push(received.clone());
        answer(&received, &mut stream);
    }
}

fn read(stream: &TcpStream) -> Option<Received> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut parts = line.split(' ');
    let (method, target) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    let mut fields = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut received = Received { method, target, fields, body: String::new() };
    let length = received.field("content-length").map_or(0, |value| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    received.body = String::from_utf8_lossy(&body).into_owned();
    Some(received)
}

/// Sends an answer. The other side may have closed the connection, as it may for answers that are too long.
pub fn send(stream: &mut TcpStream, status: u16, fields: &[(&str, &str)], body: &[u8]) {
    let fields = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<Vec<_>>().concat();
    let head = format!("HTTP/1.1 {status} Reason\r\nContent-Length: {}\r\n{fields}\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}
