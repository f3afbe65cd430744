use super::*;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use toolrest_ops::outside::OutboundConnector;
use uuid::Uuid;

/// Addresses that lead to this machine or into a private network. `PORT` is the port of a canary.
const HOSTILE: [&str; 24] = [
    "http://127.0.0.1:PORT/",
    "https://127.0.0.1:PORT/",
    "http://127.1:PORT/",
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://0177.0.0.1:PORT/",
    "http://0.0.0.0:PORT/",
    "http://localhost:PORT/",
    "http://LOCALHOST.:PORT/",
    "http://ip6-localhost:PORT/",
    "http://[::1]:PORT/",
    "http://[::]:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://[64:ff9b::7f00:1]:PORT/",
    "http://[2002:7f00:1::]:PORT/",
    "http://[fe80::1]:PORT/",
    "http://[fd00:ec2::254]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://example.com@127.0.0.1:PORT/",
    "http://127.0.0.1:PORT\\@example.com/",
];

fn delivery(allow_private: &[&str]) -> Delivery {
    let allow_private = allow_private.iter().map(|range| range.parse().unwrap()).collect();
    let connector = OutboundConnector { allow_private, ..OutboundConnector::default() };
    let client = HttpClient::new(connector, Arc::default(), None, HeaderValue::from_static("test"));
    Delivery { client, urls: Vec::new(), mac: Hmac::new_from_slice(b"key").unwrap() }
}

fn message() -> Message {
    let room = ByteBudget::new(MESSAGE_BYTES, MESSAGE_BYTES).nothing_for(UserId(Uuid::nil()));
    Message { event: "call.failed", body: "{}".to_owned(), _room: room }
}

fn canary() -> (TcpListener, String) {
    let listener = TcpListener::bind("[::]:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    (listener, port)
}

#[tokio::test]
async fn messages_are_not_sent_to_this_machine_and_private_networks() {
    let ((canary, port), delivery) = (canary(), delivery(&[]));
    let message = message();
    for address in HOSTILE {
        // What is no address is refused when the settings are read.
        let Ok(url) = HttpUrl::parse(&address.replace("PORT", &port)) else { continue };
        delivery.attempt(&url, &message).await.expect_err(address);
    }
    canary.accept().unwrap_err();
}

#[tokio::test]
async fn redirects_of_messages_are_not_followed() {
    let (canary, port) = canary();
    let host = TcpListener::bind("127.0.0.11:0").unwrap();
    let url = HttpUrl::parse(&format!("http://{}/hook", host.local_addr().unwrap())).unwrap();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = host.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        let answer =
            format!("HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:{port}/\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).unwrap();
    });
    // The redirect would lead to an address that is allowed.
    let message = message();
    assert_eq!(delivery(&["127.0.0.0/8"]).attempt(&url, &message).await, Ok(307));
    answering.join().unwrap();
    canary.accept().unwrap_err();
}
