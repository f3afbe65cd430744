//! The HTTP client of tools.
//!
//! Each request has a deadline and a maximum size of its response, which also holds for what the response is when it is
//! decompressed. Redirects are followed here, so that the address of each one is checked like that of the first request.
//! There is no cookie jar, no cache and no pool: a request leaves nothing behind that another caller could see.

mod body;
mod error;
mod fields;
mod http_url;
mod tls;
mod tunnel;

use super::{AddressRange, OutboundConnector};
use body::BodyReader;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

pub use error::HttpError;
pub use fields::{BadField, caller_fields};
pub use http_url::{BadUrl, HttpUrl};
pub use tls::{BadCertificates, Tls};
pub use tunnel::{BadProxy, ProxyAddress};

/// Maximum size of the head of a response.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// The field with the correlation id of the call, in lower case.
const CORRELATION_FIELD: &str = "x-correlation-id";
/// Maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 10;

/// The name under which hosts see this server.
pub const USER_AGENT: &str = concat!("Toolrest/", env!("CARGO_PKG_VERSION"));

/// The HTTP client.
#[derive(Clone)]
pub struct HttpClient {
    connector: OutboundConnector,
    tls: Arc<Tls>,
    proxy: Option<ProxyAddress>,
    user_agent: HeaderValue,
}

/// A request.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: HttpUrl,
    /// The fields of the head, without those that the client sets.
    pub fields: HeaderMap,
    /// The content.
    pub body: Bytes,
}

impl HttpRequest {
    /// Creates a GET request.
    pub fn get(url: HttpUrl) -> Self {
        Self { method: Method::GET, url, fields: HeaderMap::new(), body: Bytes::new() }
    }

    /// Adds the correlation id of the call, unless the caller has set one.
    #[must_use]
    pub fn with_correlation(mut self, id: &str) -> Self {
        // An id that cannot be sent is left out.
        if let Ok(value) = HeaderValue::from_str(id) {
            self.fields.entry(CORRELATION_FIELD).or_insert(value);
        }
        self
    }
}

/// The limits of a request, redirects included.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// When it ends at the latest.
    pub deadline: Instant,
    /// Maximum size of the response, before and after it is decompressed.
    pub response_bytes: usize,
}

/// A response.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status.
    pub status: StatusCode,
    /// The fields of the head. Those about the encoding of the content are removed, because it is decoded.
    pub fields: HeaderMap,
    /// The content.
    pub body: Vec<u8>,
    /// The address that answered, which differs from that of the request after a redirect.
    pub url: HttpUrl,
    /// Where a redirect led that was not followed.
    pub not_followed: Option<HttpUrl>,
}

/// What the redirects of a request may lead to.
pub type MayFollow<'a> = &'a (dyn Fn(&HttpUrl) -> bool + Send + Sync);

impl HttpClient {
    /// Creates a client.
    pub fn new(
        connector: OutboundConnector,
        tls: Arc<Tls>,
        proxy: Option<ProxyAddress>,
        user_agent: HeaderValue,
    ) -> Self {
        Self { connector, tls, proxy, user_agent }
    }

    /// Returns a client for addresses that the operator has set, which may be in any network.
    #[must_use]
    pub fn for_operator(&self) -> Self {
        let connector = OutboundConnector { allow_private: vec![AddressRange::all()], ..self.connector.clone() };
        Self { connector, ..self.clone() }
    }

    /// Sends a request, and follows redirects to the addresses for which `may_follow` returns true. A redirect that is not
    /// followed is the response.
    pub async fn send(
        &self,
        mut request: HttpRequest,
        limits: HttpLimits,
        may_follow: MayFollow<'_>,
    ) -> Result<HttpResponse, HttpError> {
        let started = Instant::now();
        for _ in 0..=MAX_REDIRECTS {
            let timed_out = |_| HttpError::TimedOut {
                host: request.url.host_and_port(),
                milliseconds: (limits.deadline - started).as_millis(),
            };
            let exchange = self.exchange(&request, limits.response_bytes);
            let mut response = timeout_at(limits.deadline, exchange).await.map_err(timed_out)??;
            let Some(target) = redirect_target(&response)? else { return Ok(response) };
            match redirected(request, response.status, &target) {
                Some(next) if may_follow(&target) => request = next,
                _ => {
                    response.not_followed = Some(target);
                    return Ok(response);
                }
            }
        }
        Err(HttpError::TooManyRedirects { limit: MAX_REDIRECTS })
    }

    /// Sends a request that is not redirected.
    pub async fn send_once(&self, request: HttpRequest, limits: HttpLimits) -> Result<HttpResponse, HttpError> {
        self.send(request, limits, &|_| false).await
    }

    /// Connects to a host, through the operator's proxy if there is one.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, HttpError> {
        match &self.proxy {
            None => Ok(self.connector.connect(host, port).await?),
            Some(proxy) => {
                // The proxy resolves the name. What this machine knows about it is checked all the same.
                self.connector.check(host, port).await?;
                tunnel::open(&self.connector, proxy, host, port).await
            }
        }
    }

    /// Sends one request over a new connection.
    async fn exchange(&self, request: &HttpRequest, limit: usize) -> Result<HttpResponse, HttpError> {
        let (host, port) = (request.url.host(), request.url.port());
        let stream = self.connect(&host, port).await?;
        if request.url.is_https() {
            let stream = self.tls.connect(&host, stream).await?;
            self.exchange_over(stream, request, limit).await
        } else {
            self.exchange_over(stream, request, limit).await
        }
    }

    async fn exchange_over(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        request: &HttpRequest,
        limit: usize,
    ) -> Result<HttpResponse, HttpError> {
        let failed = |source| HttpError::Broken { host: request.url.host_and_port(), source };
        let handshake = http1::Builder::new().max_buf_size(MAX_HEAD_BYTES).handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.map_err(failed)?;
        let _connection = AbortOnDrop(tokio::spawn(async move {
            // The exchange reports how it failed.
            let _ = connection.await;
        }));
        let response = sender.send_request(self.message(request)?).await.map_err(failed)?;
        let (head, mut incoming) = response.into_parts();
        let mut fields = head.headers;
        let mut reader = BodyReader::new(&fields, limit)?;
        while let Some(frame) = next_frame(&mut incoming).await.map_err(failed)? {
            reader.push(&frame)?;
        }
        if reader.is_encoded() {
            fields.remove(header::CONTENT_ENCODING);
            fields.remove(header::CONTENT_LENGTH);
        }
        let body = reader.finish()?;
        Ok(HttpResponse { status: head.status, fields, body, url: request.url.clone(), not_followed: None })
    }

    /// Returns the message for one exchange.
    fn message(&self, request: &HttpRequest) -> Result<Request<Full<Bytes>>, HttpError> {
        let HttpRequest { method, url, fields, body } = request;
        let mut message = Request::new(Full::new(body.clone()));
        *message.method_mut() = method.clone();
        *message.uri_mut() = url.path_and_query().parse().map_err(|_| BadUrl::Malformed(url.to_string()))?;
        *message.headers_mut() = fields.clone();
        let own = message.headers_mut();
        own.insert(header::HOST, url.host_field()?);
        own.insert(header::USER_AGENT, self.user_agent.clone());
        own.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate, br"));
        own.insert(header::CONNECTION, HeaderValue::from_static("close"));
        if !own.contains_key(header::ACCEPT) {
            own.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        }
        Ok(message)
    }
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new(OutboundConnector::default(), Arc::default(), None, HeaderValue::from_static(USER_AGENT))
    }
}

/// Ends the task of a connection that nobody reads any more.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the next part of a body; none at its end. Trailers are skipped.
async fn next_frame(incoming: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
    while let Some(frame) = incoming.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// Returns where a response redirects to, if it does.
fn redirect_target(response: &HttpResponse) -> Result<Option<HttpUrl>, HttpError> {
    if !matches!(response.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.fields.get(header::LOCATION) else { return Ok(None) };
    let location = String::from_utf8_lossy(location.as_bytes());
    let target = response.url.join(&location);
    target.map(Some).map_err(|source| HttpError::BadRedirect { from: response.url.host_and_port(), source })
}

/// Returns the request that follows a redirect; none if it must not be followed.
///
/// Another origin gets none of the caller's fields but harmless ones, because any of them may be a credential, and no
/// content: a form for one host is not meant for another.
fn redirected(request: HttpRequest, status: StatusCode, target: &HttpUrl) -> Option<HttpRequest> {
    let is_same_origin = request.url.origin() == target.origin();
    let HttpRequest { method, mut fields, body, .. } = request;
    let keeps_method = matches!(status.as_u16(), 307 | 308) || matches!(method, Method::GET | Method::HEAD);
    let (method, body) = if keeps_method {
        if !is_same_origin && !body.is_empty() {
            return None;
        }
        (method, body)
    } else {
        fields.remove(header::CONTENT_TYPE);
        (Method::GET, Bytes::new())
    };
    if !is_same_origin {
        fields = fields::harmless(&fields);
    }
    Some(HttpRequest { method, url: target.clone(), fields, body })
}

#[cfg(test)]
#[path = "http_client_tests.rs"]
mod http_client_tests;
