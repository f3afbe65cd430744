//! What a command works on: a folder without a server, or a workspace of a server.

use super::credentials::{Credentials, PersonSession, SignIn};
use super::failure::{Failure, Outcome};
use super::http_client::{Answer, AnswerBody, ServerUrl};
use crate::cli::DataOptions;
use clap::Args;
use http::{HeaderName, HeaderValue, Method, Request, Response, header};
use hyper::body::Bytes;
use serde_json::{Value, json};
use std::{path::PathBuf, time::Duration};
use tokio::sync::OnceCell;
use toolrest::InProcessServer;
use toolrest::core::{Timestamp, now};

/// Where a command works.
#[derive(Args, Clone)]
pub(crate) struct TargetOptions {
    /// Folder to work on without a server; its history is in the user's own data folder
    #[arg(long, value_name = "DIR", global = true, conflicts_with_all = ["server", "workspace"], help_heading = "Target")]
    dir: Option<PathBuf>,
    /// Address of the server, instead of the variable TOOLREST_SERVER or the server of the last `toolrest login`
    #[arg(long, value_name = "URL", global = true, help_heading = "Target")]
    server: Option<String>,
    /// Id or name of the workspace, instead of the variable TOOLREST_WORKSPACE; not needed if there is only one
    #[arg(long, value_name = "WORKSPACE", global = true, help_heading = "Target")]
    workspace: Option<String>,
    #[command(flatten)]
    data: DataOptions,
}

/// The beginning of the secrets of agent keys.
pub(super) const KEY_PREFIX: &str = "trk_";

/// Whether tools may run programs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Programs {
    /// They can run programs.
    Run,
    /// They need none, so that the sandbox is not started.
    None,
}

impl TargetOptions {
    /// Whether a folder was named.
    pub(super) fn is_folder(&self) -> bool {
        self.dir.is_some()
    }

    /// Whether a server was named, in the arguments or the environment.
    pub(super) fn names_server(&self) -> bool {
        self.server.is_some() || variable("TOOLREST_SERVER").is_some()
    }

    /// Connects to the server, or opens the folder.
    pub(crate) async fn connect(self, programs: Programs) -> Outcome<Client> {
        let Some(dir) = self.dir else {
            let url = server_url(self.server.as_deref())?;
            let token = Token::find(&url)?;
            let workspace = self.workspace.or_else(|| variable("TOOLREST_WORKSPACE"));
            return Ok(Client { connection: Connection::Remote { url, token }, workspace, found: OnceCell::new() });
        };
        let text =
            dir.to_str().ok_or_else(|| Failure::Usage(format!("--dir: {} is not valid UTF-8", dir.display())))?;
        let loaded = self.data.load(vec![("folders.local_dir", "--dir", Some(text.to_owned()))]);
        let mut settings = loaded.map_err(|error| Failure::Usage(error.to_string()))?.settings;
        settings.run.waiting_interpreters = 0;
        if programs == Programs::None {
            settings.run.enabled = false;
        }
        let opened = InProcessServer::open(settings, &dir).await;
        let server = opened.map_err(|error| Failure::Failed(error.to_string()))?;
        let workspace = server.workspace().to_string();
        Ok(Client {
            connection: Connection::InProcess(Box::new(server)),
            workspace: Some(workspace),
            found: OnceCell::new(),
        })
    }
}

/// Returns the address of the server that was named, in the arguments or the environment, or of the last sign-in.
pub(super) fn server_url(named: Option<&str>) -> Outcome<ServerUrl> {
    if let Some(named) = named.map(str::to_owned).or_else(|| variable("TOOLREST_SERVER")) {
        return ServerUrl::parse(&named);
    }
    match Credentials::find()?.read()?.current {
        Some(current) => ServerUrl::parse(&current),
        None => Err(Failure::Usage(
            "say what to work on: `--dir .` for a folder without a server, or `--server URL`; `toolrest login` stores a \
             server"
                .to_owned(),
        )),
    }
}

/// Returns an environment variable, unless it is empty.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Where the token of requests comes from.
enum Token {
    /// The variable TOOLREST_TOKEN.
    Given(String),
    /// A stored sign-in.
    Stored(Credentials),
}

impl Token {
    fn find(url: &ServerUrl) -> Outcome<Self> {
        if let Some(token) = variable("TOOLREST_TOKEN") {
            return Ok(Self::Given(token));
        }
        let credentials = Credentials::find()?;
        if credentials.read()?.servers.contains_key(url.as_str()) {
            return Ok(Self::Stored(credentials));
        }
        Err(not_signed_in(url))
    }
}

fn not_signed_in(url: &ServerUrl) -> Failure {
    let url = url.as_str();
    Failure::NotSignedIn(format!("not signed in to {url}; use `toolrest login --server {url}`, or set TOOLREST_TOKEN"))
}

enum Connection {
    Remote { url: ServerUrl, token: Token },
    InProcess(Box<InProcessServer>),
}

/// A connection for requests of this user.
pub(crate) struct Client {
    connection: Connection,
    /// The id or the name of the workspace.
    workspace: Option<String>,
    /// The id of the workspace, once it was looked up.
    found: OnceCell<String>,
}

/// A header of a request.
pub(super) type Header<'a> = (&'static str, &'a str);

impl Client {
    /// Sends a request to a path below `/api/v1`; returns the answer, whatever its status.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[Header<'_>],
        body: Option<&Value>,
    ) -> Outcome<Answer> {
        Answer::read(self.open(method, path, headers, body).await?).await
    }

    /// Sends a request like [`Client::send`]; the body of the answer can be read as it arrives.
    pub(super) async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[Header<'_>],
        body: Option<&Value>,
    ) -> Outcome<Response<AnswerBody>> {
        let build = || {
            let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
            let request = Request::builder().method(method.clone()).uri(format!("/api/v1{path}"));
            let mut request = request.body(bytes).map_err(|error| Failure::Usage(format!("{path}: {error}")))?;
            if body.is_some() {
                request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
            for (name, value) in headers {
                let value = HeaderValue::try_from(*value).map_err(|_| {
                    Failure::Usage(format!("'{value}' cannot be sent as a header; leave out line breaks"))
                })?;
                request.headers_mut().insert(HeaderName::from_static(name), value);
            }
            Ok::<_, Failure>(request)
        };
        let (url, token) = match &self.connection {
            Connection::InProcess(server) => return Ok(server.send(build()?).await),
            Connection::Remote { url, token } => (url, token),
        };
        let credentials = match token {
            Token::Given(token) => return url.send(with_token(build()?, token)?).await,
            Token::Stored(credentials) => credentials,
        };
        let used = valid_token(credentials, url, None).await?;
        let answer = url.send(with_token(build()?, &used)?).await?;
        if answer.status().as_u16() != 401 || used.starts_with(KEY_PREFIX) {
            return Ok(answer);
        }
        // The token ended earlier than it said, for example because the operator changed the secret.
        let fresh = valid_token(credentials, url, Some(&used)).await?;
        url.send(with_token(build()?, &fresh)?).await
    }

    pub(super) async fn get(&self, path: &str) -> Outcome<Value> {
        self.send(Method::GET, path, &[], None).await?.json()
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Outcome<Value> {
        self.send(Method::POST, path, &[], Some(body)).await?.json()
    }

    /// Returns the path of the workspace, to which paths of its routes are added.
    pub(super) async fn workspace(&self) -> Outcome<String> {
        let id = self.found.get_or_try_init(|| self.find_workspace()).await?;
        Ok(format!("/workspaces/{id}"))
    }

    async fn find_workspace(&self) -> Outcome<String> {
        let given = self.workspace.clone();
        if let Some(id) = given.as_deref().filter(|given| is_id(given)) {
            return Ok(id.to_owned());
        }
        let listed = self.get("/workspaces").await?;
        let all = listed["workspaces"].as_array().cloned().unwrap_or_default();
        let found: Vec<&Value> = match &given {
            Some(name) => all.iter().filter(|one| one["name"] == **name).collect(),
            None => all.iter().collect(),
        };
        match (&found[..], given) {
            ([one], _) => Ok(one["id"].as_str().unwrap_or_default().to_owned()),
            ([], Some(name)) => Err(Failure::NotFound(format!(
                "no workspace of yours has the id or the name '{name}'; see `toolrest workspaces`"
            ))),
            ([], None) => {
                let message = "there is no workspace yet; make one with `toolrest workspaces create NAME`";
                Err(Failure::NotFound(message.to_owned()))
            }
            (several, _) => {
                let shown = several.iter().take(10).map(|one| {
                    let (id, name) = (&one["id"], one["name"].as_str().unwrap_or_default());
                    format!("{} ({})", id.as_str().unwrap_or_default(), super::terminal::one_line(name, 40))
                });
                let shown = shown.collect::<Vec<_>>().join(", ");
                Err(Failure::Usage(format!(
                    "there are {} workspaces; choose one with --workspace or TOOLREST_WORKSPACE: {shown}",
                    several.len()
                )))
            }
        }
    }

    /// Whether requests are answered by this process, which must not end before its work is done.
    pub(super) fn is_in_process(&self) -> bool {
        matches!(self.connection, Connection::InProcess(_))
    }

    /// Whether the caller is an agent key, not a person.
    pub(super) fn is_key(&self) -> Outcome<bool> {
        Ok(match &self.connection {
            Connection::InProcess(_) => false,
            Connection::Remote { token: Token::Given(token), .. } => token.starts_with(KEY_PREFIX),
            Connection::Remote { token: Token::Stored(credentials), url } => {
                matches!(credentials.read()?.servers.get(url.as_str()), Some(SignIn::Key { .. }))
            }
        })
    }

    /// Returns the arguments that name this target in another command.
    pub(super) fn arguments(&self, target: &TargetOptions) -> String {
        match (&self.connection, &target.dir) {
            (Connection::InProcess(_), Some(dir)) => format!(" --dir {}", dir.display()),
            (Connection::Remote { url, .. }, _) => format!(" --server {}", url.as_str()),
            (Connection::InProcess(_), None) => String::new(),
        }
    }

    /// Ends the connection, after what this process still has to store.
    pub(crate) async fn close(self) {
        if let Connection::InProcess(server) = self.connection {
            server.close().await;
        }
    }
}

fn is_id(text: &str) -> bool {
    text.parse::<toolrest::core::WorkspaceId>().is_ok()
}

fn with_token(mut request: Request<Bytes>, token: &str) -> Outcome<Request<Bytes>> {
    // The value is not part of the message.
    let value = HeaderValue::try_from(format!("Bearer {token}"));
    let mut value = value.map_err(|_| Failure::NotSignedIn("the token has characters that no token has".to_owned()))?;
    value.set_sensitive(true);
    request.headers_mut().insert(header::AUTHORIZATION, value);
    Ok(request)
}

/// Time before its end at which an access token is replaced.
const MARGIN_SECONDS: i64 = 30;

/// Returns a token for a server that is valid for a while, and is not `refused`. Refreshes the session if necessary.
async fn valid_token(credentials: &Credentials, url: &ServerUrl, refused: Option<&str>) -> Outcome<String> {
    let usable = |sign_in: &SignIn| match sign_in {
        SignIn::Key { key } => Some(key.clone()),
        SignIn::Person(session) => {
            let is_fresh = session.access_expires > now().as_second() + MARGIN_SECONDS;
            let is_usable = is_fresh && refused != Some(session.access_token.as_str());
            is_usable.then(|| session.access_token.clone())
        }
    };
    let stored =
        |credentials: &Credentials| credentials.read()?.servers.remove(url.as_str()).ok_or_else(|| not_signed_in(url));
    if let Some(token) = usable(&stored(credentials)?) {
        return Ok(token);
    }
    // Another process may hold the lock while it refreshes the session.
    let credentials = credentials.clone();
    let locking = credentials.clone();
    let locked = tokio::task::spawn_blocking(move || locking.lock()).await;
    let locked = locked.map_err(|error| Failure::Failed(error.to_string()))??;
    let sign_in = stored(&credentials)?;
    if let Some(token) = usable(&sign_in) {
        return Ok(token);
    }
    let SignIn::Person(session) = sign_in else { return Err(not_signed_in(url)) };
    let ended = || Failure::NotSignedIn(format!("the sign-in to {} has ended; use `toolrest login`", url.as_str()));
    let refresh_token = session.refresh_token.as_ref().ok_or_else(ended)?;
    let body = json!({ "refresh_token": refresh_token });
    let answer = post_without_token(url, "/auth/refresh", &body).await?;
    if answer.status == 401 {
        locked.change(|stored| {
            stored.servers.remove(url.as_str());
        })?;
        return Err(ended());
    }
    let session = session_of(&answer.json()?)?;
    let token = session.access_token.clone();
    locked.change(|stored| {
        stored.servers.insert(url.as_str().to_owned(), SignIn::Person(session));
    })?;
    Ok(token)
}

/// Maximum duration of a request about a session, during which other processes wait for the lock.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends a request that needs no token.
pub(super) async fn post_without_token(url: &ServerUrl, path: &str, body: &Value) -> Outcome<Answer> {
    let request = Request::post(format!("/api/v1{path}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Bytes::from(body.to_string()))
        .map_err(|error| Failure::Failed(error.to_string()))?;
    let answered = async { Answer::read(url.send(request).await?).await };
    tokio::time::timeout(SESSION_TIMEOUT, answered).await.unwrap_or_else(|_| {
        let (url, seconds) = (url.as_str(), SESSION_TIMEOUT.as_secs());
        Err(Failure::Unreachable(format!("the server {url} did not answer within {seconds} seconds")))
    })
}

/// Returns the session in the answer of a sign-in.
pub(super) fn session_of(answer: &Value) -> Outcome<PersonSession> {
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    let expires: Option<Timestamp> = answer["access_token_expires_at"].as_str().and_then(|text| text.parse().ok());
    let (Some(access_token), Some(expires)) = (text("access_token"), expires) else {
        return Err(Failure::Failed("the server's answer has no token; is it a Toolrest server?".to_owned()));
    };
    Ok(PersonSession {
        email: answer["user"]["email"].as_str().unwrap_or_default().to_owned(),
        access_token,
        access_expires: expires.as_second(),
        refresh_token: text("refresh_token"),
    })
}

/// Checks a token that is about to be stored, and returns the workspaces that it can see.
pub(super) async fn workspaces_seen(url: &ServerUrl, token: &str) -> Outcome<Value> {
    let request = Request::get("/api/v1/workspaces").body(Bytes::new());
    let request = request.map_err(|error| Failure::Failed(error.to_string()))?;
    Answer::read(url.send(with_token(request, token)?).await?).await?.json()
}
