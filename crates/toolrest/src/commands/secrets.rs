//! `toolrest secrets`: manages the key of the secrets of workspaces, whether or not servers are running.

use clap::Subcommand;
use std::error::Error;
use toolrest::operator;
use toolrest::settings::Settings;

#[derive(Clone, Copy, Subcommand)]
pub(crate) enum Action {
    /// Encrypt all secrets with a new key; with the setting secrets.key, with that key.
    RotateKey,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(action: Action, settings: &Settings) -> Result<(), Box<dyn Error>> {
    match action {
        Action::RotateKey => {
            let count = operator::rotate_secrets_key(settings).await?;
            eprintln!("Encrypted {count} secrets with the new key. Running servers use it from now on.");
        }
    }
    Ok(())
}
