use super::*;
use std::net::SocketAddr;

/// What a host of the web has heard, and the connection to answer it on.
async fn heard(web: &TcpListener, until: &str) -> (String, TcpStream) {
    let (mut stream, _) = web.accept().await.unwrap();
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).ends_with(until) {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "{}", String::from_utf8_lossy(&bytes));
    }
    (String::from_utf8(bytes).unwrap(), stream)
}

struct Scene {
    /// In the place of the web.
    web: TcpListener,
    address: SocketAddr,
    proxy: Option<Proxy>,
}

impl Scene {
    async fn new() -> Self {
        Self::with(
            ProxyLimits::default(),
            Outside { allow_private: vec!["127.0.0.0/8".parse().unwrap()], ..Outside::default() },
        )
        .await
    }

    async fn with(limits: ProxyLimits, outside: Outside) -> Self {
        let web = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let allowed = format!("localhost:{}", web.local_addr().unwrap().port());
        let allow = AllowList::new([allowed.as_str()]).unwrap();
        Self { web, address, proxy: Some(serve(listener, allow, outside, &limits)) }
    }

    /// The host that may be reached.
    fn host(&self) -> String {
        format!("localhost:{}", self.web.local_addr().unwrap().port())
    }

    async fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// Sends a request and gives all that is answered.
    async fn told(&self, request: &str) -> String {
        all(self.send(request).await).await
    }

    /// A tunnel to the host, and its other end.
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

/// Waits for the other side to hang up.
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
async fn what_is_sent_along_with_connect_is_not_lost() {
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
async fn nothing_is_passed_on_beyond_the_one_request() {
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
async fn an_answer_that_comes_before_the_body_has_ended_is_heard() {
    let scene = Scene::new().await;
    let client =
        scene.send(&format!("PUT http://{}/ HTTP/1.1\r\nContent-Length: 100\r\n\r\nbegin", scene.host())).await;
    let (_, mut server) = heard(&scene.web, "begin").await;
    server.write_all(b"HTTP/1.1 413 Too Large\r\n\r\n").await.unwrap();
    drop(server);
    assert_eq!(all(client).await, "HTTP/1.1 413 Too Large\r\n\r\n");
}

#[tokio::test]
async fn hosts_that_are_not_listed_are_refused_with_words() {
    let scene = Scene::new().await;
    for request in [
        "CONNECT example.com:443 HTTP/1.1\r\n\r\n",
        "CONNECT localhost:443 HTTP/1.1\r\n\r\n",
        "GET http://example.com/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        &format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", scene.web.local_addr().unwrap().port()),
    ] {
        let told = scene.told(request).await;
        assert!(told.starts_with("HTTP/1.1 403 ") && told.contains("is not on the list of hosts"), "{request}: {told}");
    }
}

#[tokio::test]
async fn a_listed_name_that_leads_inside_is_refused_all_the_same() {
    let scene = Scene::with(ProxyLimits::default(), Outside::default()).await;
    let told = scene.told(&format!("CONNECT {} HTTP/1.1\r\n\r\n", scene.host())).await;
    assert!(told.starts_with("HTTP/1.1 403 localhost leads to the server's own machine"), "{told}");
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_is_told() {
    let Scene { web, address, proxy } = Scene::new().await;
    let port = web.local_addr().unwrap().port();
    drop(web);
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    let told = all(client).await;
    assert!(told.starts_with("HTTP/1.1 502 cannot connect to localhost"), "{told}");
    drop(proxy);
}

#[tokio::test]
async fn a_request_that_is_not_valid_is_told_why() {
    let told = Scene::new().await.told("GET / HTTP/1.1\r\n\r\n").await;
    assert!(told.starts_with("HTTP/1.1 400 the request is not valid: a proxy takes http://"), "{told}");
}

#[tokio::test]
async fn more_connections_than_allowed_wait_for_their_turn() {
    let limits = ProxyLimits { connections: 1, ..ProxyLimits::default() };
    let scene = Scene::with(limits, Outside::default()).await;
    let first = scene.send("CONNECT ").await;
    let mut second = scene.send("GET / HTTP/1.1\r\n\r\n").await;
    tokio::task::yield_now().await;
    let waiting = timeout(Duration::from_millis(100), second.read(&mut [0])).await;
    assert!(waiting.is_err(), "it was answered out of turn");
    drop(first);
    assert!(all(second).await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn no_more_goes_through_than_is_allowed_in_all() {
    let limits = ProxyLimits { total_bytes: 1000, ..ProxyLimits::default() };
    let outside = Outside { allow_private: vec!["127.0.0.0/8".parse().unwrap()], ..Outside::default() };
    let scene = Scene::with(limits, outside).await;
    let (mut client, mut server) = scene.tunnel().await;
    client.write_all(&[b'x'; 600]).await.unwrap();
    server.read_exact(&mut [0; 600]).await.unwrap();
    server.write_all(&[b'x'; 600]).await.unwrap();
    assert!(is_cut(&mut client).await && is_cut(&mut server).await);
    let told = scene.told(&format!("CONNECT {} HTTP/1.1\r\n\r\n", scene.host())).await;
    assert!(told.starts_with("HTTP/1.1 403 the program has sent and received as much as it may"), "{told}");
}

#[tokio::test]
async fn everything_ends_with_the_proxy() {
    let mut scene = Scene::new().await;
    let (mut client, mut server) = scene.tunnel().await;
    drop(scene.proxy.take());
    assert!(is_cut(&mut client).await && is_cut(&mut server).await);
    // The socket is closed a moment after the task is told to end.
    while TcpStream::connect(scene.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_host_is_let_go_when_the_program_is_gone() {
    let scene = Scene::new().await;
    let client = scene.send(&format!("GET http://{}/ HTTP/1.1\r\n\r\n", scene.host())).await;
    let (_, mut server) = heard(&scene.web, "\r\n\r\n").await;
    drop(client);
    assert!(is_cut(&mut server).await);
}
