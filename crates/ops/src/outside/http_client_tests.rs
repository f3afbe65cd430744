use super::*;
use crate::outside::AddressRange;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::io::Write;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

fn limits() -> HttpLimits {
    HttpLimits { deadline: Instant::now() + Duration::from_secs(20), response_bytes: 10_000 }
}

fn loopback() -> OutboundConnector {
    let allow_private: Vec<AddressRange> = vec!["127.0.0.0/8".parse().unwrap()];
    OutboundConnector { allow_private, ..OutboundConnector::default() }
}

fn client_with(tls: Tls, proxy: Option<&str>) -> HttpClient {
    let proxy = proxy.map(|proxy| proxy.parse().unwrap());
    HttpClient::new(loopback(), Arc::new(tls), proxy, HeaderValue::from_static(USER_AGENT))
}

fn url(text: &str) -> HttpUrl {
    HttpUrl::parse(text).unwrap()
}

/// Reads the head of a request, answers, and returns the head.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &str) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        assert!(stream.read_buf(&mut head).await.unwrap() > 0);
    }
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    String::from_utf8(head).unwrap()
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A certificate authority that only this test knows.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: tempfile::NamedTempFile,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let mut pem = tempfile::NamedTempFile::new().unwrap();
        pem.write_all(certificate.pem().as_bytes()).unwrap();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Returns an acceptor with a certificate for a host.
    fn acceptor(&self, host: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

#[tokio::test]
async fn a_host_with_a_certificate_of_the_operators_file_is_trusted() {
    let authority = Authority::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = url(&format!("https://localhost:{}/path?q=1", listener.local_addr().unwrap().port()));
    let acceptor = authority.acceptor("localhost");
    let host = async {
        let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
        answer(stream, OK).await
    };
    let client = client_with(Tls::with_file(Some(authority.pem.path())).unwrap(), None);
    let (head, response) = tokio::join!(host, client.send_once(HttpRequest::get(address.clone()), limits()));
    assert_eq!(response.unwrap().body, b"ok");
    assert!(head.starts_with("GET /path?q=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: localhost:{}\r\n", address.port())), "{head}");
    assert!(head.contains("user-agent: Toolrest/"), "{head}");
}

#[tokio::test]
async fn unknown_certificates_and_those_of_other_hosts_are_refused() {
    let (known, other) = (Authority::new(), Authority::new());
    for (authority, name) in [(&other, "localhost"), (&known, "example.com")] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = url(&format!("https://localhost:{}/", listener.local_addr().unwrap().port()));
        let acceptor = authority.acceptor(name);
        let host = async { acceptor.accept(listener.accept().await.unwrap().0).await.is_err() };
        let client = client_with(Tls::with_file(Some(known.pem.path())).unwrap(), None);
        let (is_refused, response) = tokio::join!(host, client.send_once(HttpRequest::get(address), limits()));
        let error = response.unwrap_err();
        assert!(is_refused && error.to_string().contains("certificate"), "{name}: {error}");
    }
}

#[test]
fn a_file_without_certificates_is_refused() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"not a certificate").unwrap();
    assert!(Tls::with_file(Some(file.path())).is_err());
    assert!(Tls::with_file(Some("/nowhere.pem".as_ref())).is_err());
}

#[tokio::test]
async fn a_proxy_is_asked_for_the_host_and_never_for_a_private_address() {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy_url = format!("http://me:pass@{}", proxy.local_addr().unwrap());
    let client = HttpClient::new(
        OutboundConnector::default(),
        Arc::default(),
        Some(proxy_url.parse().unwrap()),
        HeaderValue::from_static("test"),
    );
    let tunnel = async {
        let (mut stream, _) = proxy.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut head).await.unwrap();
        }
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
        (String::from_utf8(head).unwrap(), answer(stream, OK).await)
    };
    // A name that only the proxy can resolve.
    let request = HttpRequest::get(url("http://example.invalid/x"));
    let ((connect, get), response) = tokio::join!(tunnel, client.send_once(request, limits()));
    assert_eq!(response.unwrap().body, b"ok");
    assert!(connect.starts_with("CONNECT example.invalid:80 HTTP/1.1\r\n"), "{connect}");
    assert!(connect.contains("Proxy-Authorization: Basic bWU6cGFzcw==\r\n"), "{connect}");
    assert!(get.starts_with("GET /x HTTP/1.1\r\n") && !get.contains("roxy"), "{get}");
    for private in ["http://127.0.0.1/", "http://10.0.0.1/", "http://localhost/"] {
        let error = client.send_once(HttpRequest::get(url(private)), limits()).await.unwrap_err();
        assert!(matches!(error, HttpError::Connect(super::super::ConnectError::Refused { .. })), "{private}: {error}");
    }
    proxy.into_std().unwrap().accept().unwrap_err();
}

#[test]
fn only_addresses_of_the_web_without_credentials_are_accepted() {
    for text in ["http://example.com", "https://example.com:8443/a?b#c", "HTTP://EXAMPLE.com/", "http://[2001:db8::1]/"]
    {
        assert!(HttpUrl::parse(text).is_ok(), "{text}");
    }
    for text in [
        "",
        "example.com",
        "/path",
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "data:text/plain,x",
        "javascript:alert(1)",
        "http://",
        "http://user@example.com/",
        "http://user:pass@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://exa mple.com/",
        "http://example.com/\r\nHost: x",
        "http://example.com:99999/",
        "http://example.com../",
        "http://./",
    ] {
        assert!(HttpUrl::parse(text).is_err(), "{text}");
    }
}

#[test]
fn another_origin_gets_no_credentials_and_no_content() {
    let fields: HeaderMap =
        [("authorization", "secret"), ("cookie", "a=b"), ("x-api-key", "secret"), ("accept", "a/b")]
            .into_iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect::<HeaderMap<HeaderValue>>();
    let request = |method: Method, body: &'static str| HttpRequest {
        method,
        url: url("https://example.com/a"),
        fields: fields.clone(),
        body: Bytes::from_static(body.as_bytes()),
    };
    let redirect = |method, body, status, target: &str| {
        redirected(request(method, body), StatusCode::from_u16(status).unwrap(), &url(target))
    };
    let same = redirect(Method::GET, "", 302, "https://example.com/b").unwrap();
    assert_eq!(same.fields.len(), 4);
    for elsewhere in ["https://other.example/", "http://example.com/", "https://example.com:8443/"] {
        let next = redirect(Method::GET, "", 302, elsewhere).unwrap();
        assert_eq!(next.fields.keys().map(header::HeaderName::as_str).collect::<Vec<_>>(), ["accept"], "{elsewhere}");
        assert!(redirect(Method::POST, "form", 307, elsewhere).is_none(), "{elsewhere}");
    }
    let after_form = redirect(Method::POST, "form", 303, "https://example.com/done").unwrap();
    assert_eq!((after_form.method, after_form.body.len()), (Method::GET, 0));
    let again = redirect(Method::POST, "form", 308, "https://example.com/new").unwrap();
    assert_eq!((again.method, &again.body[..]), (Method::POST, &b"form"[..]));
}

#[test]
fn fields_that_are_the_clients_own_cannot_be_set() {
    for name in ["Host", "content-length", "Transfer-Encoding", "Connection", "Proxy-Authorization", "X-Forwarded-For"]
    {
        assert!(matches!(caller_fields([(name, "x")]), Err(BadField::Own(_))), "{name}");
    }
    assert!(matches!(caller_fields([("a b", "x")]), Err(BadField::Name(_))));
    assert!(matches!(caller_fields([("a", "x\r\nHost: y")]), Err(BadField::Value(_))));
    assert!(matches!(caller_fields((0..65).map(|_| ("a", "x"))), Err(BadField::TooMany)));
    assert_eq!(caller_fields([("Authorization", "Bearer x")]).unwrap().len(), 1);
}

#[test]
fn the_addresses_of_the_program_are_valid() {
    use crate::web::search::{Brave, Tavily};
    for text in [Brave::URL, Tavily::URL] {
        assert!(HttpUrl::fixed(text).is_https());
    }
    assert!(crate::github::GitHubOptions::default().api.is_https());
}
