//! The HTTP interface for the folder of the local user, without a port: the process sends its requests to itself.

use crate::http::{self, App, Site};
use crate::local::{Local, TOKEN_LIFETIME};
use crate::runtime::{Runtime, StartError};
use crate::settings::Settings;
use ::http::{HeaderValue, Request, Response, header};
use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
};
use toolrest_core::{ToolError, WorkspaceId, now};
use toolrest_store::no_such_account;

/// The body of an answer.
pub type AnswerBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// A server without a port, for the workspace of one folder. Requests are answered as by [`Server`](crate::Server), and
/// are those of the person to whom the folder's history belongs.
pub struct InProcessServer {
    app: Arc<App>,
    site: Arc<Site>,
    local: Local,
    authorization: HeaderValue,
}

impl InProcessServer {
    /// Opens the runtime and the workspace of a folder, which the setting `folders.local_dir` must name.
    pub async fn open(settings: Settings, folder: &Path) -> Result<Self, StartError> {
        let app = Arc::new(App::new(Arc::new(Runtime::open(settings).await?)));
        let local = app.open_local(folder).await?;
        // Perhaps no server runs that does it. On a full disk, reads still work.
        if let Err(error) = app.store.expire_approvals(now()).await {
            tracing::warn!(%error, "could not end approvals whose time is over");
        }
        let user = app.store.user(local.caller.user).await?.ok_or_else(no_such_account)?;
        let token = app.tokens.issue_local(user.id, user.token_epoch, TOKEN_LIFETIME)?;
        let mut authorization = HeaderValue::try_from(format!("Bearer {token}")).map_err(ToolError::internal)?;
        authorization.set_sensitive(true);
        let site = Site::main(&app, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        Ok(Self { app, site, local, authorization })
    }

    /// Returns the workspace of the folder.
    pub fn workspace(&self) -> WorkspaceId {
        self.local.workspace
    }

    /// Answers a request of the local user.
    pub async fn send(&self, mut request: Request<Bytes>) -> Response<AnswerBody> {
        request.headers_mut().insert(header::AUTHORIZATION, self.authorization.clone());
        request.headers_mut().insert(header::HOST, HeaderValue::from_static("localhost"));
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let answer = http::answer(&self.app, &self.site, request.map(Body::from), peer).await;
        answer.map(|body| body.map_err(Into::into).boxed_unsync())
    }

    /// Writes what is not stored yet, and stops the programs of this process.
    pub async fn close(&self) {
        self.app.stopping.send_replace(true);
        self.app.begin_stopping();
        self.app.runtime.close().await;
    }
}
