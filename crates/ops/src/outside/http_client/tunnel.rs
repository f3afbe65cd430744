//! Connections through a proxy of the operator.

use super::HttpError;
use crate::outside::OutboundConnector;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::str::FromStr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

/// Maximum size of the proxy's answer.
const MAX_ANSWER_BYTES: usize = 16 << 10;

/// The address of a proxy, and how to sign in there.
#[derive(Clone)]
pub struct ProxyAddress {
    host: String,
    port: u16,
    authorization: Option<String>,
}

/// The error for a text that is not the address of a proxy. It does not show the text, which may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the address of the proxy is not valid; expected one such as http://proxy.example.com:3128")]
pub struct BadProxy;

impl FromStr for ProxyAddress {
    type Err = BadProxy;

    fn from_str(text: &str) -> Result<Self, BadProxy> {
        let url = Url::parse(text).map_err(|_| BadProxy)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(BadProxy)?;
        if url.scheme() != "http" || url.path() != "/" || url.query().is_some() {
            return Err(BadProxy);
        }
        let authorization = (!url.username().is_empty()).then(|| {
            let login = format!("{}:{}", url.username(), url.password().unwrap_or_default());
            format!("Basic {}", BASE64_STANDARD.encode(login))
        });
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: url.port_or_known_default().ok_or(BadProxy)?, authorization })
    }
}

/// Has the proxy connect to a host, and returns that connection.
pub(super) async fn open(
    connector: &OutboundConnector,
    proxy: &ProxyAddress,
    host: &str,
    port: u16,
) -> Result<TcpStream, HttpError> {
    let target = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let failed = |problem: String| HttpError::Proxy {
        proxy: format!("{}:{}", proxy.host, proxy.port),
        host: target.clone(),
        problem,
    };
    let mut stream = connector.connect_anywhere(&proxy.host, proxy.port).await?;
    let sign_in = proxy.authorization.as_ref().map(|value| format!("Proxy-Authorization: {value}\r\n"));
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{}\r\n", sign_in.unwrap_or_default());
    stream.write_all(request.as_bytes()).await.map_err(|error| failed(error.to_string()))?;
    let mut answer = Vec::new();
    // The host says nothing before it is asked, so nothing follows the proxy's answer.
    while !answer.ends_with(b"\r\n\r\n") {
        let read = stream.read_buf(&mut answer).await.map_err(|error| failed(error.to_string()))?;
        if read == 0 || answer.len() > MAX_ANSWER_BYTES {
            return Err(failed("its answer is not complete".to_owned()));
        }
    }
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Response::new(&mut fields);
    let is_read = parsed.parse(&answer).is_ok_and(|status| status.is_complete());
    match parsed.code.filter(|_| is_read) {
        Some(200..=299) => Ok(stream),
        Some(status) => Err(failed(format!("it answered with the status {status}"))),
        None => Err(failed("its answer is not HTTP".to_owned())),
    }
}
