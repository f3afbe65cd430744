use super::*;
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpSocket},
};

fn loopback_allowed() -> OutboundConnector {
    OutboundConnector { allow_private: vec!["127.0.0.0/8".parse().unwrap()], ..OutboundConnector::default() }
}

#[tokio::test]
async fn the_local_machine_is_refused_under_any_name() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for host in ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "::ffff:127.0.0.1", "::1", "0.0.0.0"] {
        let refusal = OutboundConnector::default().connect(host, port).await.unwrap_err();
        let is_refused = matches!(refusal, ConnectError::Refused { .. } | ConnectError::Unresolved { .. });
        assert!(is_refused, "{host}: {refusal}");
    }
    // No connection is in the backlog.
    listener.into_std().unwrap().accept().unwrap_err();
}

#[tokio::test]
async fn a_range_that_the_operator_allows_is_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let stream = loopback_allowed().connect("localhost", port).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), listener.local_addr().unwrap());
}

#[tokio::test]
async fn only_allowed_addresses_of_a_name_are_tried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let forbidden = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let outside =
        OutboundConnector { allow_private: vec!["127.0.0.1".parse().unwrap()], ..OutboundConnector::default() };
    let addresses = [forbidden.local_addr().unwrap(), listener.local_addr().unwrap()];
    let deadline = Instant::now() + outside.timeout;
    let mut stream = outside.connect_to_any("host", 1, &addresses, deadline).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), addresses[1]);
    drop(listener.accept().await.unwrap());
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    forbidden.into_std().unwrap().accept().unwrap_err();
}

#[tokio::test]
async fn the_next_address_is_tried_if_one_refuses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let outside = loopback_allowed();
    let addresses = [closed, listener.local_addr().unwrap()];
    let deadline = Instant::now() + outside.timeout;
    let stream = outside.connect_to_any("host", 1, &addresses, deadline).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), addresses[1]);
    let error = outside.connect_to_any("host", 1, &addresses[..1], deadline).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_timeout_is_reported() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    // No connection is accepted, and the backlog is short.
    let listener = socket.listen(0).unwrap();
    let outside = OutboundConnector { timeout: Duration::from_millis(50), ..loopback_allowed() };
    let mut kept = Vec::new();
    let error = loop {
        match outside.connect("127.0.0.1", listener.local_addr().unwrap().port()).await {
            Ok(stream) => kept.push(stream),
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, ConnectError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn an_unknown_name_is_reported() {
    let error = OutboundConnector::default().connect("nobody.invalid", 443).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Unresolved { .. }), "{error}");
}

#[tokio::test]
async fn a_refusal_contains_no_address() {
    let refusal = OutboundConnector::default().connect("localhost", 1).await.unwrap_err().to_string();
    assert_eq!(refusal, "localhost leads to the server's own machine, which is not reached from here");
}
