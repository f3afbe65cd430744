//! Secrets of agent keys.
//!
//! A secret is `trk_` and base64url of: a version byte, the ids of the key, the workspace and the person, the expiry, the
//! actions, the names of the toolsets, and the HMAC-SHA256 of all this. It is checked without a query. Nothing secret is
//! stored for a key, and its scope cannot change. Whether the key is suspended or revoked is checked with its membership,
//! by the statement that does the work.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use toolrest_core::{ActionSet, Caller, ErrorKind, Key, KeyId, Result, ToolError, Toolsets, UserId, WorkspaceId, now};
use toolrest_store::KeyInfo;
use uuid::Uuid;

const PREFIX: &str = "trk_";
const VERSION: u8 = 1;
const MAC_BYTES: usize = 32;
/// Maximum length of a secret, so that a long text is refused without being decoded.
const MAX_BYTES: usize = 4096;

/// Issues and checks the secrets of agent keys.
pub(crate) struct AgentKeys(Hmac<Sha256>);

impl AgentKeys {
    pub(crate) fn new(server_secret: &str) -> Result<Self> {
        Hmac::new_from_slice(server_secret.as_bytes()).map(Self).map_err(ToolError::internal)
    }

    /// Whether a bearer token is meant as the secret of a key.
    pub(crate) fn is_secret(token: &str) -> bool {
        token.starts_with(PREFIX)
    }

    /// Returns the secret of a key.
    pub(crate) fn issue(&self, workspace: WorkspaceId, key: &KeyInfo) -> String {
        let mut bytes = vec![VERSION];
        for id in [key.id.0, workspace.0, key.user_id.0] {
            bytes.extend(id.as_bytes());
        }
        bytes.extend(key.expires_at.as_second().to_be_bytes());
        bytes.extend(key.actions.bits().to_be_bytes());
        bytes.extend(key.toolsets.join(",").bytes());
        let mut mac = self.0.clone();
        mac.update(&bytes);
        bytes.extend(mac.finalize().into_bytes());
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Returns the caller that a secret stands for. Toolsets that do not exist any more are left out of its scope.
    pub(crate) fn check(&self, secret: &str, toolsets: &Toolsets) -> Result<Caller> {
        let parsed = self.verified(secret).and_then(|bytes| Parsed::of(&bytes, toolsets));
        let Parsed { caller, expires } = parsed.ok_or_else(|| refusal(NOT_OURS))?;
        if expires <= now().as_second() {
            return Err(refusal("This agent key has expired; ask a person for another"));
        }
        Ok(caller)
    }

    /// Returns the signed bytes of a secret, if the signature is right.
    fn verified(&self, secret: &str) -> Option<Vec<u8>> {
        let encoded = secret.strip_prefix(PREFIX).filter(|encoded| encoded.len() <= MAX_BYTES)?;
        let mut bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
        let signature = bytes.split_off(bytes.len().checked_sub(MAC_BYTES)?);
        let mut mac = self.0.clone();
        mac.update(&bytes);
        mac.verify_slice(&signature).ok().map(|()| bytes)
    }
}

/// The contents of a secret.
struct Parsed {
    caller: Caller,
    /// Seconds since 1970.
    expires: i64,
}

impl Parsed {
    fn of(bytes: &[u8], toolsets: &Toolsets) -> Option<Self> {
        let rest = bytes.strip_prefix(&[VERSION])?;
        let (id, rest) = rest.split_first_chunk()?;
        let (workspace, rest) = rest.split_first_chunk()?;
        let (user, rest) = rest.split_first_chunk()?;
        let (expires, rest) = rest.split_first_chunk()?;
        let (actions, names) = rest.split_first_chunk()?;
        let key = Key {
            id: KeyId(Uuid::from_bytes(*id)),
            workspace: WorkspaceId(Uuid::from_bytes(*workspace)),
            actions: ActionSet::from_bits(u16::from_be_bytes(*actions)),
            toolsets: toolsets.mask(std::str::from_utf8(names).ok()?.split(',')),
        };
        let caller = Caller { user: UserId(Uuid::from_bytes(*user)), key: Some(key) };
        Some(Self { caller, expires: i64::from_be_bytes(*expires) })
    }
}

const NOT_OURS: &str = "The agent key is not one of this server's, or not whole; send the whole secret, which was shown \
                        when the key was made, as `Authorization: Bearer trk_…`";

fn refusal(message: &str) -> ToolError {
    ToolError::new(ErrorKind::Unauthenticated, message)
}

#[cfg(test)]
#[path = "agent_key_tests.rs"]
mod tests;
