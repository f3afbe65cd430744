//! `toolrest user`: manages accounts in the database, whether or not servers are running.

use std::error::Error;

use clap::Subcommand;
use toolrest::operator::{Accounts, LOCAL_ACCOUNT};
use toolrest::settings::Settings;

use super::password;

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Print all accounts: address, state, time of registration and id, with tabs between them.
    List,
    /// Create an account; the password is asked for, or read from standard input.
    Add {
        /// Address to sign in with
        email: String,
    },
    /// Disable an account; ends its sessions and background processes.
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
    /// Change the password of an account, and sign it out everywhere; the password is asked for, or read from standard
    /// input.
    ResetPassword {
        /// Address of the account
        email: String,
    },
}

/// Servers read the revoked tokens every second.
const REVOCATION_DELAY: &str = "Running servers refuse its access tokens within two seconds.";

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
            eprintln!("Created the account {}.", user.email);
        }
        Action::Disable { email } => {
            let user = accounts.disable(&email).await?;
            eprintln!(
                "Disabled {}: it cannot use its workspaces, and its sessions are ended. {REVOCATION_DELAY}",
                user.email
            );
        }
        Action::Enable { email } => {
            let user = accounts.enable(&email).await?;
            eprintln!("Enabled {}; it can sign in again.", user.email);
        }
        Action::EndSessions { email } => {
            let ended = accounts.end_sessions(&email).await?;
            eprintln!("Ended {ended} sessions of {email} and suspended its agent keys. {REVOCATION_DELAY}");
            if email.trim().eq_ignore_ascii_case(LOCAL_ACCOUNT) {
                eprintln!("Restart `toolrest serve --dir` for a new key and a new sign-in link.");
            }
        }
        Action::ResetPassword { email } => {
            let user = accounts.reset_password(&email, password::read()?).await?;
            eprintln!(
                "Changed the password of {}, ended its sessions and suspended its agent keys. {REVOCATION_DELAY}",
                user.email
            );
        }
    }
    Ok(())
}
