//! How a request fails.

use super::http_url::BadUrl;
use super::tls::TlsError;
use crate::outside::ConnectError;
use std::error::Error;
use std::io;
use toolrest_core::{ErrorKind, ToolError};

/// Why a request has no response.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address is not accepted.
    #[error(transparent)]
    BadUrl(#[from] BadUrl),
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The proxy of the operator made no connection.
    #[error("the proxy {proxy} made no connection to {host}: {problem}")]
    Proxy {
        /// The proxy.
        proxy: String,
        /// The host.
        host: String,
        /// What it answered.
        problem: String,
    },
    /// There is no encrypted connection.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The connection broke, or what came is not HTTP.
    #[error("{host} sent no complete response: {}", causes(source))]
    Broken {
        /// The host.
        host: String,
        /// Why.
        source: hyper::Error,
    },
    /// The response is too long.
    #[error("the response is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The compressed content is damaged, or not complete.
    #[error("the compressed content of the response is damaged or incomplete")]
    BadCompression,
    /// The content is compressed in a way that was not asked for.
    #[error("the response has the content encoding {encoding:?}, which is not supported")]
    UnknownEncoding {
        /// The encodings.
        encoding: String,
    },
    /// The deadline passed.
    #[error("{host} did not answer completely within {milliseconds} ms")]
    TimedOut {
        /// The host.
        host: String,
        /// The time that the request had.
        milliseconds: u128,
    },
    /// The redirects do not end.
    #[error("more than {limit} redirects followed each other")]
    TooManyRedirects {
        /// The limit.
        limit: usize,
    },
    /// The target of a redirect is not accepted.
    #[error("{from} redirects to an address that is not followed: {source}")]
    BadRedirect {
        /// The host that redirects.
        from: String,
        /// Why.
        source: BadUrl,
    },
}

impl HttpError {
    /// Returns the error for the caller. `argument` names the argument with the address; `limit_setting` the setting of the
    /// limit of the response.
    pub fn to_tool_error(&self, argument: Option<&str>, limit_setting: &str) -> ToolError {
        let message = sentence(&self.to_string());
        match self {
            Self::BadUrl(_) | Self::Connect(ConnectError::Refused { .. }) => {
                let error = ToolError::new(ErrorKind::InvalidArgument, message);
                argument.map_or(error.clone(), |argument| error.about(argument))
            }
            Self::TooLarge { .. } => {
                let message = format!("{message}, the limit of the setting {limit_setting}; fetch a smaller part");
                ToolError::new(ErrorKind::ResponseTooLarge, message)
            }
            Self::TimedOut { .. } | Self::Connect(ConnectError::TimedOut { .. }) => {
                ToolError::new(ErrorKind::Timeout, message)
            }
            _ => ToolError::new(ErrorKind::NetworkError, message),
        }
    }
}

/// Returns a text with a capital letter at its beginning, unless it begins with a host.
fn sentence(text: &str) -> String {
    let begins_with_word = text.starts_with("the ") || text.starts_with("only ") || text.starts_with("an ");
    match text.chars().next() {
        Some(first) if begins_with_word => format!("{}{}", first.to_ascii_uppercase(), &text[1..]),
        _ => text.to_owned(),
    }
}

/// Returns an error and its causes in one line.
fn causes(error: &hyper::Error) -> String {
    if error.is_incomplete_message() {
        return "the connection was closed too early".to_owned();
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let is_early_end =
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
        let cause_text = if is_early_end { "it ended too early".to_owned() } else { cause.to_string() };
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
