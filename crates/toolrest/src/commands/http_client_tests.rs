use super::*;

#[test]
fn addresses_of_servers_are_read_with_their_port_and_path() {
    let url = ServerUrl::parse("http://localhost:3000/").unwrap();
    assert_eq!((url.as_str(), &*url.host, url.port, &*url.path), ("http://localhost:3000", "localhost", 3000, ""));
    assert!(url.is_loopback());
    let url = ServerUrl::parse("tools.example.com/toolrest").unwrap();
    assert_eq!((&*url.host, url.port, &*url.path), ("tools.example.com", 80, "/toolrest"));
    assert!(!url.is_loopback());
    let url = ServerUrl::parse("http://[::1]:81").unwrap();
    assert_eq!((&*url.host, &*url.authority, url.port), ("::1", "[::1]:81", 81));
    assert!(url.is_loopback());
    for bad in ["https://example.com", "ftp://example.com", "http://", "http://a:b@c", "http://a/?x=y", "a b"] {
        assert_eq!(ServerUrl::parse(bad).unwrap_err().exit_code(), 2, "{bad}");
    }
}

#[test]
fn failures_have_the_message_of_every_format() {
    let failure = |status, body: &str| {
        Answer { status, headers: HeaderMap::new(), body: Bytes::copy_from_slice(body.as_bytes()) }.failure()
    };
    let plain = failure(404, r#"{"error":"no file","code":"NOT_FOUND","fields":{"path":"wrong"}}"#);
    assert_eq!((plain.exit_code(), plain.to_string().as_str()), (7, "no file (path: wrong)"));
    let nested = failure(409, r#"{"ok":false,"error":{"code":"CONFLICT","message":"changed\u001b"}}"#);
    assert_eq!((nested.exit_code(), nested.to_string().as_str()), (8, "changed\\u{1b}"));
    assert_eq!(failure(502, "<html>").exit_code(), 6);
}
