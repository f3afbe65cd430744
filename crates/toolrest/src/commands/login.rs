//! `toolrest login` and `toolrest logout`: signs in to a server, and stores the session for other commands.

use super::credentials::{Credentials, PersonSession, SignIn};
use super::failure::{Failure, Outcome};
use super::http_client::ServerUrl;
use super::password;
use super::target::{KEY_PREFIX, post_without_token, server_url, session_of, variable, workspaces_seen};
use super::terminal::{ask, can_ask, one_line};
use clap::Args;
use serde_json::json;
use std::io;

/// The address that `toolrest serve` listens on by default.
const DEFAULT_SERVER: &str = "http://127.0.0.1:3000";

#[derive(Args)]
pub(crate) struct LoginArgs {
    /// Address of the account; asked for on a terminal
    #[arg(long, value_name = "ADDRESS", conflicts_with = "key")]
    email: Option<String>,
    /// Store this agent key instead; `-` reads it from standard input, where other users cannot see it
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Address of the server, instead of the variable TOOLREST_SERVER [default: http://127.0.0.1:3000]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

#[derive(Args)]
pub(crate) struct LogoutArgs {
    /// Address of the server, instead of the variable TOOLREST_SERVER or the server of the last `toolrest login`
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

pub(super) async fn login(args: LoginArgs) -> Outcome {
    let LoginArgs { email, key, server } = args;
    let server = server.or_else(|| variable("TOOLREST_SERVER"));
    let url = ServerUrl::parse(server.as_deref().unwrap_or(DEFAULT_SERVER))?;
    let credentials = Credentials::find()?;
    // Fails before anything secret is typed.
    credentials.read()?;
    if !url.is_loopback() {
        eprintln!("Warning: the connection to {} is not encrypted.", url.as_str());
    }
    let (sign_in, name) = if let Some(key) = key {
        (with_key(&url, key).await?, "an agent key".to_owned())
    } else {
        let session = with_password(&url, email).await?;
        let name = one_line(&session.email, 200);
        (SignIn::Person(session), name)
    };
    credentials.lock()?.change(|stored| {
        stored.servers.insert(url.as_str().to_owned(), sign_in);
        stored.current = Some(url.as_str().to_owned());
    })?;
    eprintln!("Signed in to {} as {name}.", url.as_str());
    Ok(())
}

async fn with_key(url: &ServerUrl, key: String) -> Outcome<SignIn> {
    let key = if key == "-" { password::read_line(&mut io::stdin().lock()).map_err(Failure::Usage)? } else { key };
    let key = key.trim().to_owned();
    if !key.starts_with(KEY_PREFIX) {
        return Err(Failure::Usage("an agent key begins with trk_; `toolrest keys create NAME` makes one".to_owned()));
    }
    workspaces_seen(url, &key).await?;
    Ok(SignIn::Key { key })
}

async fn with_password(url: &ServerUrl, email: Option<String>) -> Outcome<PersonSession> {
    let email = match email {
        Some(email) => email,
        None if can_ask() => ask("Email:")?.unwrap_or_default(),
        None => {
            let message =
                "give the address of the account with --email; the password is the first line of standard input";
            return Err(Failure::Usage(message.to_owned()));
        }
    };
    let password = password::read_once("Password").map_err(Failure::Usage)?;
    let answer =
        post_without_token(url, "/auth/login", &json!({ "email": email.trim(), "password": password })).await?;
    if answer.status == 401 {
        return Err(Failure::NotSignedIn(
            "the address or the password is wrong, or the account is disabled".to_owned(),
        ));
    }
    let answer = answer.json()?;
    for warning in answer["warnings"].as_array().into_iter().flatten().filter_map(|warning| warning.as_str()) {
        eprintln!("Warning: {}.", one_line(warning, 500));
    }
    session_of(&answer)
}

pub(super) async fn logout(args: LogoutArgs) -> Outcome {
    let url = server_url(args.server.as_deref())?;
    let credentials = Credentials::find()?;
    let locked = credentials.lock()?;
    let Some(sign_in) = credentials.read()?.servers.remove(url.as_str()) else {
        return Err(Failure::NotSignedIn(format!("not signed in to {}", url.as_str())));
    };
    let SignIn::Person(PersonSession { refresh_token: Some(token), .. }) = &sign_in else {
        forget(&locked, &url)?;
        eprintln!("Removed the sign-in to {}.", url.as_str());
        return Ok(());
    };
    let ended = post_without_token(&url, "/auth/logout", &json!({ "refresh_token": token })).await;
    forget(&locked, &url)?;
    match ended {
        Ok(answer) if answer.is_success() || answer.status == 401 => eprintln!("Signed out of {}.", url.as_str()),
        Ok(answer) => eprintln!("Removed the sign-in. The server could not end the session: {}.", answer.failure()),
        Err(failure) => eprintln!("Removed the sign-in. The session ends by itself later: {failure}."),
    }
    Ok(())
}

fn forget(locked: &super::credentials::Locked, url: &ServerUrl) -> Outcome {
    locked.change(|stored| {
        stored.servers.remove(url.as_str());
        if stored.current.as_deref() == Some(url.as_str()) {
            stored.current = stored.servers.keys().next().cloned();
        }
    })
}
