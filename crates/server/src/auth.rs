//! Authentication: passwords, access tokens, agent keys, and limits on sign-in attempts.

mod agent_key;
mod attempts;
mod key_uses;
mod password;
mod refused_addresses;
mod revoked;
mod sign_in_link;
mod token;

pub(crate) use agent_key::AgentKeys;
pub(crate) use attempts::AttemptCounter;
pub(crate) use key_uses::KeyUses;
pub(crate) use password::Passwords;
pub(crate) use refused_addresses::{RefusedAddresses, too_many_attempts};
pub(crate) use revoked::account_disabled;
pub(crate) use sign_in_link::{LINK_LIFETIME, LinkTarget, SignInLink};
pub(crate) use token::{AccessTokens, fresh_secret, fresh_token, token_hash};
