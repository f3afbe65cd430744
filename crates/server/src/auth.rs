//! Who calls: passwords, access tokens and the sessions behind them.

mod attempts;
mod limited;
mod password;
mod revoked;
mod token;

pub(crate) use attempts::AttemptsInMemory;
pub(crate) use limited::{Limited, too_many};
pub(crate) use password::Passwords;
pub(crate) use revoked::disabled;
pub(crate) use token::{AccessTokens, fresh_secret, fresh_token, token_hash};
