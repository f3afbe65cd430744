use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use serde_json::json;

use super::*;

/// A server for one connection that answers each request with the next of `answers`, a piece at a time.
fn answering(answers: Vec<Vec<String>>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut request = vec![0; 64 * 1024];
        for answer in answers {
            let _ = stream.read(&mut request).unwrap();
            for piece in answer {
                stream.write_all(piece.as_bytes()).unwrap();
                stream.flush().unwrap();
                thread::yield_now();
            }
        }
    });
    address
}

fn pieces(pieces: &[&str]) -> Vec<String> {
    pieces.iter().map(|&piece| piece.to_owned()).collect()
}

#[test]
fn one_connection_carries_many_exchanges() {
    let address = answering(vec![
        pieces(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]),
        pieces(&["HTTP/1.1 404 Not Found\r\ncontent-length:3\r\n\r\nabc"]),
    ]);
    let mut connection = Connection::open(address);
    let request = render("GET", "/health", None, &json!({}));
    let first = connection.exchange(&request);
    assert_eq!((first.status, first.body), (200, &b"{}"[..]));
    let second = connection.exchange(&request);
    assert_eq!((second.status, second.body), (404, &b"abc"[..]));
}

#[test]
fn a_response_in_pieces_is_put_together() {
    let address = answering(vec![pieces(&["HTTP/1.1 200 OK\r\nConte", "nt-Length: 6\r", "\n\r\nab", "cd", "ef"])]);
    let mut connection = Connection::open(address);
    let response = connection.exchange(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(response.body, b"abcdef");
}

#[test]
fn a_body_may_be_larger_than_the_first_buffer() {
    let body = "x".repeat(300_000);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let address = answering(vec![vec![head, body.clone()]]);
    let mut connection = Connection::open(address);
    assert_eq!(connection.exchange(b"GET / HTTP/1.1\r\n\r\n").body, body.as_bytes());
}

#[test]
fn a_rendered_request_counts_its_body_in_bytes() {
    let request = render("POST", "/x", Some("t"), &json!({"a": "é"}));
    assert_eq!(
        String::from_utf8(request).unwrap(),
        "POST /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\n\
         Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{\"a\":\"é\"}"
    );
}
