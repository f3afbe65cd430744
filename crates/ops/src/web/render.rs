//! Has a browser render pages that are made by scripts.

use super::Web;
use crate::exec::{Executor, RenderError};
use crate::outside::http_client::{HttpClient, HttpError, HttpUrl};
use crate::outside::proxy::{Gateway, Host, Refusal};
use async_trait::async_trait;
use tokio::net::TcpStream;
use toolrest_core::CallCx;

/// The hosts of a page: its own, and those that the call may go on to.
struct PageHosts {
    client: HttpClient,
    cx: CallCx,
    host: String,
    port: u16,
}

#[async_trait]
impl Gateway for PageHosts {
    async fn connect(&self, host: &Host, port: u16) -> Result<TcpStream, Refusal> {
        let name = host.to_string();
        let is_own = name == self.host && port == self.port;
        let in_rules = if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
        if !is_own && !self.cx.may_go_on_to(&in_rules) {
            return Err(Refusal::NotAllowed(format!("the rules do not let the page use {in_rules}")));
        }
        self.client.connect(&name, port).await.map_err(|error| match error {
            HttpError::Connect(error) => error.into(),
            other => Refusal::Unreachable(other.to_string()),
        })
    }
}

impl Web {
    /// Returns a page as it is after its scripts have run.
    pub(super) async fn render(&self, cx: &CallCx, executor: &Executor, url: &HttpUrl) -> Result<String, RenderError> {
        let (client, host) = (self.client.clone(), url.host().trim_end_matches('.').to_ascii_lowercase());
        let gateway = PageHosts { client, cx: cx.detached(), host, port: url.port() };
        executor.render(cx, &url.to_string(), gateway, self.options.timeout, self.options.response_bytes).await
    }
}
