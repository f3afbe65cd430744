use super::*;

fn remote(server: &str) -> Result<Remote, RemoteError> {
    Remote::new(server, Some("7"), "trk_x", &Offer::default())
}

#[test]
fn addresses_of_servers_are_read() {
    let at = |server: &str| remote(server).map(|remote| (remote.host.clone(), remote.port, remote.uri.to_string()));
    let query = "/api/v1/workspaces/7/mcp?read_only=false&structured=false";
    assert_eq!(at("http://localhost:3000/").unwrap(), ("localhost".to_owned(), 3000, query.to_owned()));
    assert_eq!(at("http://[::1]/base").unwrap(), ("::1".to_owned(), 80, format!("/base{query}")));
    assert!(matches!(remote("https://tools.example.org"), Err(RemoteError::Encrypted(_))));
    for wrong in ["localhost:3000", "ftp://x", "http://", "not an address"] {
        assert!(matches!(remote(wrong), Err(RemoteError::Address(_))), "{wrong}");
    }
}

#[test]
fn events_are_taken_when_they_are_complete() {
    let mut bytes = b"data: {\"a\":1}\n\n: ping\n\nid: 2\ndata: {\"b\"".to_vec();
    assert_eq!(complete_events(&mut bytes), ["{\"a\":1}"]);
    bytes.extend_from_slice(b":2}\n\n");
    assert_eq!(complete_events(&mut bytes), ["{\"b\":2}"]);
    assert!(bytes.is_empty());
}
