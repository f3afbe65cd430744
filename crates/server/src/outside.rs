//! Builds the services that reach the web and GitHub from the settings.

use crate::local;
use crate::settings::{ModelFormat, SearchService, Settings};
use async_trait::async_trait;
use http::HeaderValue;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use toolrest_core::{CallCx, QueueLimits, Result, Secrets, UserId, secret_of_call};
use toolrest_ops::github::{GitHub, GitHubOptions, GitHubTokens};
use toolrest_ops::outside::OutboundConnector;
use toolrest_ops::outside::http_client::{BadCertificates, HttpClient, HttpUrl, Tls, USER_AGENT};
use toolrest_ops::web::search::{Brave, SearchProvider, Searxng, Tavily};
use toolrest_ops::web::{ModelApi, ModelEndpoint, Web, WebOptions};
use toolrest_store::Store;

/// The services that reach other machines.
pub(crate) struct Outside {
    /// The web.
    pub(crate) web: Arc<Web>,
    /// GitHub.
    pub(crate) github: Arc<GitHub>,
    /// The client for other requests, with the same checks.
    pub(crate) client: HttpClient,
}

/// Why the settings of these services cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    /// The certificates cannot be read.
    #[error("web.ca_file: {0}")]
    Certificates(#[from] BadCertificates),
    /// A setting needs another one.
    #[error("{setting} also needs the setting {needed}")]
    Missing {
        /// The setting that is there.
        setting: &'static str,
        /// The setting that is missing.
        needed: &'static str,
    },
    /// A value of a kind that was checked when the settings were read.
    #[error("{0} has a value that cannot be used")]
    Value(&'static str),
}

/// Builds the services.
pub(crate) fn open(
    settings: &Settings,
    store: &Arc<dyn Store>,
    secrets: Arc<dyn Secrets>,
) -> Result<Outside, OutsideError> {
    let client = client(settings)?;
    let (web, github) = (&settings.web, &settings.github);
    let options = WebOptions {
        enabled: web.enabled,
        timeout: Duration::from_millis(web.timeout_ms.min(web.max_timeout_ms)),
        max_timeout: Duration::from_millis(web.max_timeout_ms),
        response_bytes: web.response_bytes,
        at_once: QueueLimits {
            in_all: web.at_once,
            per_account: web.at_once_per_account,
            per_workspace: web.at_once_per_account,
        },
        respects_robots: web.robots_txt,
        renders_pages: web.browser,
    };
    let (token, store) = (github.token.clone(), Arc::clone(store));
    let tokens = StoredTokens { secrets, token, store, account: OnceLock::new() };
    let api = url("github.api_url", &github.api_url)?;
    let github_options =
        GitHubOptions { timeout: options.timeout, response_bytes: options.response_bytes, ..GitHubOptions::new(api) };
    let github = GitHub::new(&client, github_options, Arc::new(tokens));
    let web = Web::new(client.clone(), options, search_provider(settings)?, model(settings)?);
    Ok(Outside { web: Arc::new(web), github: Arc::new(github), client })
}

fn client(settings: &Settings) -> Result<HttpClient, OutsideError> {
    let web = &settings.web;
    let connector = OutboundConnector {
        allow_private: web.allow_private.iter().filter_map(|range| range.parse().ok()).collect(),
        ..OutboundConnector::default()
    };
    let tls = Tls::with_file(web.ca_file.as_deref())?;
    let proxy = match &web.proxy {
        Some(proxy) => Some(proxy.parse().map_err(|_| OutsideError::Value("web.proxy"))?),
        None => None,
    };
    let user_agent = HeaderValue::from_str(&web.user_agent).unwrap_or_else(|_| HeaderValue::from_static(USER_AGENT));
    Ok(HttpClient::new(connector, Arc::new(tls), proxy, user_agent))
}

fn url(setting: &'static str, text: &str) -> Result<HttpUrl, OutsideError> {
    HttpUrl::parse(text).map_err(|_| OutsideError::Value(setting))
}

fn field(setting: &'static str, text: &str) -> Result<HeaderValue, OutsideError> {
    HeaderValue::from_str(text).map_err(|_| OutsideError::Value(setting))
}

fn search_provider(settings: &Settings) -> Result<Option<Box<dyn SearchProvider>>, OutsideError> {
    let web = &settings.web;
    let missing = |needed| OutsideError::Missing { setting: "web.search_provider", needed };
    let key = || web.search_key.as_deref().ok_or(missing("web.search_key"));
    let address = |default| match &web.search_url {
        Some(text) => url("web.search_url", text),
        None => Ok(HttpUrl::fixed(default)),
    };
    Ok(match web.search_provider {
        None => None,
        Some(SearchService::Searxng) => {
            let text = web.search_url.as_deref().ok_or(missing("web.search_url"))?;
            Some(Box::new(Searxng::new(&url("web.search_url", text)?)))
        }
        Some(SearchService::Brave) => {
            Some(Box::new(Brave::new(address(Brave::URL)?, field("web.search_key", key()?)?)))
        }
        Some(SearchService::Tavily) => {
            let authorization = field("web.search_key", &format!("Bearer {}", key()?))?;
            Some(Box::new(Tavily::new(address(Tavily::URL)?, authorization)))
        }
    })
}

fn model(settings: &Settings) -> Result<Option<ModelEndpoint>, OutsideError> {
    let web = &settings.web;
    let Some(base) = &web.model_url else { return Ok(None) };
    let missing = OutsideError::Missing { setting: "web.model_url", needed: "web.model" };
    let api = match web.model_api {
        ModelFormat::OpenAi => ModelApi::OpenAi,
        ModelFormat::Anthropic => ModelApi::Anthropic,
    };
    if let Some(key) = &web.model_key {
        field("web.model_key", key)?;
    }
    let (model, key) = (web.model.clone().ok_or(missing)?, web.model_key.clone());
    Ok(Some(ModelEndpoint { base: url("web.model_url", base)?, api, model, key }))
}

/// The secret of workspaces with their token for GitHub.
const GITHUB_TOKEN: &str = "GITHUB_TOKEN";

/// The token for GitHub: the secret of the workspace, or else that of the settings, which only the local user's calls use.
struct StoredTokens {
    secrets: Arc<dyn Secrets>,
    token: Option<String>,
    store: Arc<dyn Store>,
    /// The id of the local account, once it is known.
    account: OnceLock<UserId>,
}

#[async_trait]
impl GitHubTokens for StoredTokens {
    async fn token(&self, cx: &CallCx) -> Result<Option<String>> {
        if let Some(secret) = secret_of_call(&*self.secrets, cx, GITHUB_TOKEN).await? {
            return Ok(Some(secret.expose().to_owned()));
        }
        let Some(token) = &self.token else { return Ok(None) };
        if self.account.get().is_none()
            && let Some(local) = self.store.credentials(local::ACCOUNT).await?
        {
            let _ = self.account.set(local.user.id);
        }
        Ok((self.account.get() == Some(&cx.caller.user)).then(|| token.clone()))
    }
}
