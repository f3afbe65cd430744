use super::*;
use std::net::SocketAddr;

/// Accepts a connection and reads from it up to `until`. Returns the bytes and the connection.
async fn heard(web: &TcpListener, until: &str) -> (String, TcpStream) {
    let (mut stream, _) = web.accept().await.unwrap();
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).ends_with(until) {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "{}", String::from_utf8_lossy(&bytes));
    }
    (String::from_utf8(bytes).unwrap(), stream)
}

struct Scene {
    /// The listener that plays the host.
    web: TcpListener,
    address: SocketAddr,
    proxy: Option<Proxy>,
}

impl Scene {
    async fn new() -> Self {
        Self::with(
            ProxyLimits::default(),
            OutboundConnector { allow_private: vec!["127.0.0.0/8".parse().unwrap()], ..OutboundConnector::default() },
        )
        .await
    }

    async fn with(limits: ProxyLimits, outside: OutboundConnector) -> Self {
        let web = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let allowed = format!("localhost:{}", web.local_addr().unwrap().port());
        let allow = AllowList::new([allowed.as_str()]).unwrap();
        Self { web, address, proxy: Some(serve(listener, allow, outside, &limits)) }
    }

    /// Returns the allowed host.
    fn host(&self) -> String {
        format!("localhost:{}", self.web.local_addr().unwrap().port())
    }

    async fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// Sends a request and returns the whole answer.
    async fn answer(&self, request: &str) -> String {
        all(self.send(request).await).await
    }

    /// Opens a tunnel to the host and returns both ends.
    async fn tunnel(&self) -> (TcpStream, TcpStream) {
        let mut client = self.send(&format!("CONNECT {} HTTP/1.1\r\n\r\n", self.host())).await;
        let (server, _) = self.web.accept().await.unwrap();
        let mut answer = [0; 39];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 200 Connection established\r\n\r\n");
        (client, server)
    }
}

async fn all(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// Waits until the other side closes the connection.
async fn is_cut(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0]).await, Ok(0) | Err(_))
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_until_both_have_ended() {
    let scene = Scene::new().await;
    let (mut client, mut server) = scene.tunnel().await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut question = String::new();
    server.read_to_string(&mut question).await.unwrap();
    server.write_all(b"answer").await.unwrap();
    drop(server);
    assert_eq!((question.as_str(), all(client).await.as_str()), ("question", "answer"));
}

#[tokio::test]
async fn bytes_sent_together_with_connect_are_not_lost() {
    let scene = Scene::new().await;
    let client = scene.send(&format!("CONNECT {} HTTP/1.1\r\n\r\nearly", scene.host())).await;
    let (text, _server) = heard(&scene.web, "early").await;
    assert_eq!(text, "early");
    drop(client);
}

#[tokio::test]
async fn a_plain_request_is_answered() {
    let scene = Scene::new().await;
    let request = format!("POST http://{}/path HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", scene.host());
    let client = scene.send(&request).await;
    let (text, mut server) = heard(&scene.web, "body").await;
    assert!(text.starts_with(&format!("POST /path HTTP/1.1\r\nHost: {}\r\n", scene.host())), "{text}");
    server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
    drop(server);
    assert_eq!(all(client).await, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

#[tokio::test]
async fn nothing_after_the_one_request_is_forwarded() {
    let scene = Scene::new().await;
    let host = scene.host();
    let second = "GET /smuggled HTTP/1.1\r\nHost: internal\r\n\r\n";
    let client = scene.send(&format!("GET http://{host}/ HTTP/1.1\r\n\r\n{second}")).await;
    let (first, mut server) = heard(&scene.web, "\r\n\r\n").await;
    server.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    server.shutdown().await.unwrap();
    assert_eq!(all(client).await, "HTTP/1.1 200 OK\r\n\r\n");
    let rest = all(server).await;
    assert!(
        first.ends_with("Connection: close\r\n\r\n") && !first.contains("smuggled") && rest.is_empty(),
        "{first}{rest}"
    );
}

#[tokio::test]
async fn an_answer_before_the_end_of_the_body_is_forwarded() {
    let scene = Scene::new().await;
    let client =
        scene.send(&format!("PUT http://{}/ HTTP/1.1\r\nContent-Length: 100\r\n\r\nbegin", scene.host())).await;
    let (_, mut server) = heard(&scene.web, "begin").await;
    server.write_all(b"HTTP/1.1 413 Too Large\r\n\r\n").await.unwrap();
    drop(server);
    assert_eq!(all(client).await, "HTTP/1.1 413 Too Large\r\n\r\n");
}

#[tokio::test]
async fn hosts_that_are_not_listed_are_refused_with_a_reason() {
    let scene = Scene::new().await;
    for request in [
        "CONNECT example.com:443 HTTP/1.1\r\n\r\n",
        "CONNECT localhost:443 HTTP/1.1\r\n\r\n",
        "GET http://example.com/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        &format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", scene.web.local_addr().unwrap().port()),
    ] {
        let answer = scene.answer(request).await;
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains("is not on the list of hosts"),
            "{request}: {answer}"
        );
    }
}

#[tokio::test]
async fn a_listed_name_with_a_private_address_is_refused() {
    let scene = Scene::with(ProxyLimits::default(), OutboundConnector::default()).await;
    let answer = scene.answer(&format!("CONNECT {} HTTP/1.1\r\n\r\n", scene.host())).await;
    assert!(answer.starts_with("HTTP/1.1 403 localhost leads to the server's own machine"), "{answer}");
}

#[tokio::test]
async fn an_unreachable_host_is_reported() {
    let Scene { web, address, proxy } = Scene::new().await;
    let port = web.local_addr().unwrap().port();
    drop(web);
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    let answer = all(client).await;
    assert!(answer.starts_with("HTTP/1.1 502 cannot connect to localhost"), "{answer}");
    drop(proxy);
}

#[tokio::test]
async fn an_invalid_request_is_refused_with_a_reason() {
    let answer = Scene::new().await.answer("GET / HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 the request is not valid: a proxy takes http://"), "{answer}");
}

#[tokio::test]
async fn more_connections_than_allowed_wait() {
    let limits = ProxyLimits { connections: 1, ..ProxyLimits::default() };
    let scene = Scene::with(limits, OutboundConnector::default()).await;
    let first = scene.send("CONNECT ").await;
    let mut second = scene.send("GET / HTTP/1.1\r\n\r\n").await;
    tokio::task::yield_now().await;
    let waiting = timeout(Duration::from_millis(100), second.read(&mut [0])).await;
    assert!(waiting.is_err(), "it was answered out of turn");
    drop(first);
    assert!(all(second).await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn the_total_number_of_bytes_is_limited() {
    let limits = ProxyLimits { total_bytes: 1000, ..ProxyLimits::default() };
    let outside =
        OutboundConnector { allow_private: vec!["127.0.0.0/8".parse().unwrap()], ..OutboundConnector::default() };
    let scene = Scene::with(limits, outside).await;
    let (mut client, mut server) = scene.tunnel().await;
    client.write_all(&[b'x'; 600]).await.unwrap();
    server.read_exact(&mut [0; 600]).await.unwrap();
    server.write_all(&[b'x'; 600]).await.unwrap();
    assert!(is_cut(&mut client).await && is_cut(&mut server).await);
    let answer = scene.answer(&format!("CONNECT {} HTTP/1.1\r\n\r\n", scene.host())).await;
    assert!(answer.starts_with("HTTP/1.1 403 the program has sent and received as much as it may"), "{answer}");
}

#[tokio::test]
async fn all_connections_end_with_the_proxy() {
    let mut scene = Scene::new().await;
    let (mut client, mut server) = scene.tunnel().await;
    drop(scene.proxy.take());
    assert!(is_cut(&mut client).await && is_cut(&mut server).await);
    // The socket is closed a moment after the task is aborted.
    while TcpStream::connect(scene.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_connection_to_a_host_ends_with_the_program() {
    let scene = Scene::new().await;
    let client = scene.send(&format!("GET http://{}/ HTTP/1.1\r\n\r\n", scene.host())).await;
    let (_, mut server) = heard(&scene.web, "\r\n\r\n").await;
    drop(client);
    assert!(is_cut(&mut server).await);
}
