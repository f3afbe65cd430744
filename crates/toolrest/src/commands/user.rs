//! `toolrest user`: manages accounts on the database itself, whether servers run on it or not.

use std::error::Error;

use clap::Subcommand;
use toolrest::operator::{Accounts, LOCAL_ACCOUNT};
use toolrest::settings::Settings;

use super::password;

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Print all accounts: address, state, time of registration and id, with tabs between them.
    List,
    /// Make an account; its password is asked for, or read from standard input.
    Add {
        /// Address to sign in with
        email: String,
    },
    /// Refuse an account everything, end its sessions and its background processes.
    Disable {
        /// Address of the account
        email: String,
    },
    /// Let a disabled account sign in again, with the workspaces that it had.
    Enable {
        /// Address of the account
        email: String,
    },
    /// Sign an account out everywhere.
    EndSessions {
        /// Address of the account, or `local` for the one of `serve --dir`
        email: String,
    },
    /// Give an account another password, which is asked for or read from standard input, and sign it out everywhere.
    ResetPassword {
        /// Address of the account
        email: String,
    },
}

/// How long a running server may take until it refuses revoked tokens; it asks every second.
const SERVERS_KNOW: &str = "Running servers refuse its access tokens within two seconds.";

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(action: Action, settings: &Settings) -> Result<(), Box<dyn Error>> {
    let accounts = Accounts::open(settings).await?;
    match action {
        Action::List => {
            for user in accounts.list().await? {
                let state = if user.disabled_at.is_some() { "disabled" } else { "enabled" };
                println!("{}\t{state}\t{}\t{}", user.email, user.created_at, user.id);
            }
        }
        Action::Add { email } => {
            let user = accounts.add(&email, password::read()?).await?;
            println!("{}", user.id);
            eprintln!("Made the account {}.", user.email);
        }
        Action::Disable { email } => {
            let user = accounts.disable(&email).await?;
            eprintln!("Disabled {}: its workspaces are closed to it, its sessions ended. {SERVERS_KNOW}", user.email);
        }
        Action::Enable { email } => {
            let user = accounts.enable(&email).await?;
            eprintln!("Enabled {}; it can sign in again.", user.email);
        }
        Action::EndSessions { email } => {
            let ended = accounts.end_sessions(&email).await?;
            eprintln!("Ended {ended} sessions of {email}. {SERVERS_KNOW}");
            if email.trim().eq_ignore_ascii_case(LOCAL_ACCOUNT) {
                eprintln!("Restart `toolrest serve --dir` for a new token.");
            }
        }
        Action::ResetPassword { email } => {
            let user = accounts.reset_password(&email, password::read()?).await?;
            eprintln!("Changed the password of {} and ended its sessions. {SERVERS_KNOW}", user.email);
        }
    }
    Ok(())
}
