use tokio::net::TcpListener;

use super::*;

/// Answers each connection's requests with the given bytes, one after another, then closes it.
async fn scripted(answers: &'static [&'static str]) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            for answer in answers {
                let mut request = [0; 4096];
                if stream.read(&mut request).await.unwrap() == 0 {
                    break;
                }
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    Client::new(&address)
}

#[tokio::test]
async fn a_body_of_stated_length_is_read_and_the_connection_used_again() {
    let client = scripted(&[
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 404 Not Found\r\nX-Second: yes\r\nContent-Length: 0\r\n\r\n",
    ])
    .await;
    let first = client.send(Request::new("GET", "/")).await;
    assert_eq!((first.status, first.text.as_str()), (200, "{}"));
    let second = client.send(Request::new("GET", "/")).await;
    assert_eq!(second.status, 404);
    assert_eq!(second.header("x-second"), Some("yes"));
}

#[tokio::test]
async fn the_chunks_of_a_body_are_joined() {
    let client =
        scripted(&["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n3;x=y\r\n:1}\r\n0\r\n\r\n"])
            .await;
    let reply = client.send(Request::new("GET", "/")).await;
    assert_eq!(reply.json(), serde_json::json!({"a": 1}));
}

#[tokio::test]
async fn an_answer_before_the_end_of_the_body_is_read() {
    let client = scripted(&["HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"]).await;
    let request = Request::new("POST", "/").body(vec![b'x'; 50_000_000]);
    assert_eq!(client.send(request).await.status, 413);
}

#[tokio::test]
async fn a_connection_closed_within_the_answer_is_an_error() {
    let client = scripted(&["HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}"]).await;
    let answer = client.try_send(&Request::new("GET", "/")).await;
    assert_eq!(answer.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "half an answer is an error");
}
