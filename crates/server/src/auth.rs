//! Authentication: passwords, access tokens, and limits on sign-in attempts.

mod attempts;
mod password;
mod refused_addresses;
mod revoked;
mod token;

pub(crate) use attempts::AttemptCounter;
pub(crate) use password::Passwords;
pub(crate) use refused_addresses::{RefusedAddresses, too_many_attempts};
pub(crate) use revoked::account_disabled;
pub(crate) use token::{AccessTokens, fresh_secret, fresh_token, token_hash};
