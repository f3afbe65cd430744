use super::*;
use proptest::prelude::*;

/// Parses a head given without the empty line at its end.
fn parse_lines(lines: &str) -> Result<Option<(RequestHead, usize)>, Answer> {
    parse(format!("{lines}\r\n\r\n").as_bytes())
}

fn parsed(lines: &str) -> RequestHead {
    match parse_lines(lines) {
        Ok(parsed) => parsed.unwrap_or_else(|| panic!("{lines:?} has no end")).0,
        Err(answer) => panic!("{lines:?}: {}", answer.reason),
    }
}

fn refused(lines: &str) -> u16 {
    match parse_lines(lines) {
        Ok(parsed) => panic!("{parsed:?}"),
        Err(answer) => answer.status,
    }
}

#[test]
fn connect_opens_a_tunnel() {
    let head = parsed("CONNECT PyPI.org:443 HTTP/1.1\r\nHost: other:443\r\nProxy-Connection: keep-alive");
    assert_eq!(
        head,
        RequestHead { host: Host::Name("pypi.org".into()), port: 443, target: Target::Tunnel, body_bytes: 0 }
    );
}

#[test]
fn a_request_is_forwarded_in_the_form_that_the_host_expects() {
    let head = "GET http://example.com/a?b=c#d HTTP/1.1\r\nHost: evil.com\r\nAccept:  text/html \r\nProxy-Connection: x\r\n\
                Connection: keep-alive, X-Mine\r\nX-Mine: 1\r\nUpgrade: websocket\r\nProxy-Authorization: Basic eA==";
    let head = parsed(head);
    assert_eq!((head.host.to_string().as_str(), head.port, head.body_bytes), ("example.com", 80, 0));
    let wanted = "GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nAccept: text/html\r\nConnection: close\r\n\r\n";
    assert_eq!(head.to_origin(), wanted);
}

#[test]
fn a_target_without_a_path_means_the_root() {
    assert!(
        parsed("GET HTTP://example.com:8080 HTTP/1.0")
            .to_origin()
            .starts_with("GET / HTTP/1.0\r\nHost: example.com:8080\r\n")
    );
    assert!(parsed("GET http://example.com?q=1 HTTP/1.1").to_origin().starts_with("GET /?q=1 HTTP/1.1\r\n"));
}

#[test]
fn the_length_of_a_body_is_sent_once() {
    let head = parsed("POST http://a.com/ HTTP/1.1\r\ncontent-length: 7");
    assert_eq!(head.body_bytes, 7);
    assert_eq!(head.to_origin().matches("Content-Length: 7\r\n").count(), 1);
    assert!(parsed("POST http://a.com/ HTTP/1.1").to_origin().contains("Content-Length: 0\r\n"));
}

#[test]
fn a_head_that_servers_could_understand_differently_is_refused() {
    let with = |headers: &str| refused(&format!("POST http://a.com/ HTTP/1.1\r\n{headers}"));
    assert_eq!(with("Content-Length: 1\r\nContent-Length: 2"), 400);
    assert_eq!(with("Content-Length: 1\r\nContent-Length: 1"), 400);
    assert_eq!(with("Content-Length: 1, 1"), 400);
    assert_eq!(with("Content-Length: +1"), 400);
    assert_eq!(with("Content-Length: 99999999999999999999"), 400);
    assert_eq!(with("Content-Length: 1\r\nTransfer-Encoding: chunked"), 411);
    assert_eq!(with("Transfer-Encoding: chunked"), 411);
    assert_eq!(with("Content-Length : 1"), 400);
    assert_eq!(with(" Content-Length: 1"), 400);
    assert_eq!(with("X: y\r\n folded"), 400);
    assert_eq!(with("X: y\nContent-Length: 1"), 400);
    assert_eq!(with("X: y\rContent-Length: 1"), 400);
    assert_eq!(with("X: \0"), 400);
    assert_eq!(with("no colon"), 400);
    assert_eq!(with(": no name"), 400);
    assert_eq!(with("X: \u{7f}"), 400);
    assert_eq!(refused("POST http://a.com/ HTTP/1.1\nX: y"), 400);
    assert_eq!(with("X: y\n"), 400);
}

#[test]
fn a_head_that_is_not_a_proxy_request_is_refused() {
    for head in [
        "GET",
        "GET / HTTP/1.1",
        "GET https://example.com/ HTTP/1.1",
        "GET ftp://example.com/ HTTP/1.1",
        "GET http:///path HTTP/1.1",
        "GET http://user@example.com/ HTTP/1.1",
        "GET http://example.com@evil.com/ HTTP/1.1",
        "GET http://example.com\\@evil.com/ HTTP/1.1",
        "GET http://example.com:0/ HTTP/1.1",
        "GET http://example.com:x/ HTTP/1.1",
        "GET http://exa%6dple.com/ HTTP/1.1",
        "GET http://a.com/ HTTP/2.0",
        "GET http://a.com/ b HTTP/1.1",
        "GET  http://a.com/ HTTP/1.1",
        "G(T http://a.com/ HTTP/1.1",
        "GET http://a.com/\tb HTTP/1.1",
        "CONNECT example.com HTTP/1.1",
        "CONNECT example.com: HTTP/1.1",
        "CONNECT http://example.com:443 HTTP/1.1",
        "CONNECT example.com:443/path HTTP/1.1",
    ] {
        assert_eq!(refused(head), 400, "{head}");
    }
}

#[tokio::test]
async fn a_head_without_an_end_is_refused_once_it_is_too_long() {
    let endless = [b"GET http://a.com/".as_slice(), &vec![b'a'; MAX_HEAD_BYTES * 2]].concat();
    let Err(answer) = read(&mut endless.as_slice()).await.unwrap() else { panic!("it was read") };
    assert_eq!(answer.status, 431);
}

#[test]
fn a_head_with_too_many_headers_is_refused() {
    let head = format!("GET http://a.com/ HTTP/1.1{}", "\r\nX: y".repeat(MAX_HEADERS + 1));
    assert_eq!(refused(&head), 431);
}

#[tokio::test]
async fn a_head_that_arrives_byte_by_byte_is_read() {
    let (mut client, mut proxy) = tokio::io::duplex(1);
    let sent = tokio::spawn(async move {
        tokio::io::AsyncWriteExt::write_all(&mut client, b"CONNECT a.com:443 HTTP/1.1\r\n\r\n").await
    });
    let (head, rest) = read(&mut proxy).await.unwrap().unwrap_or_else(|answer| panic!("{}", answer.reason));
    sent.await.unwrap().unwrap();
    assert_eq!((head.target, head.port, rest), (Target::Tunnel, 443, Vec::new()));
}

#[tokio::test]
async fn bytes_after_the_head_are_kept() {
    let mut bytes: &[u8] = b"POST http://a.com/ HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody";
    let (_, rest) = read(&mut bytes).await.unwrap().unwrap_or_else(|answer| panic!("{}", answer.reason));
    assert_eq!(rest, b"body");
}

proptest! {
    #[test]
    fn a_forwarded_head_is_one_request_to_one_host(head in "(GET|POST) http://a\\.com/[ -~\r\n\t:]{0,60}( HTTP/1.1)?(\r\n[ -~\r\n\t:]{0,60})?") {
        if let Ok(Some((head, _))) = parse_lines(&head) {
            let text = head.to_origin();
            prop_assert_eq!(text.matches("\r\n\r\n").count(), 1);
            prop_assert!(text.ends_with("\r\n\r\n"));
            prop_assert_eq!(text.replace("\r\n", "").matches(['\r', '\n']).count(), 0);
            let hosts = text.lines().filter(|line| line.to_ascii_lowercase().starts_with("host:")).count();
            prop_assert_eq!(hosts, 1);
        }
    }
}
