//! Access tokens (JWT, HS256) and refresh tokens (random, kept by their hash).

use super::revoked::Revoked;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::ErrorKind::{InvalidAlgorithm, InvalidKeyFormat};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use signature::{Signer, Verifier};
use std::time::Duration;
use toolrest_core::{Caller, ErrorKind, Result, Timestamp, ToolError, UserId, now};
use uuid::Uuid;

/// Issues and checks access tokens.
pub(crate) struct AccessTokens {
    encoding: EncodingKey,
    decoding: DecodingKey,
    validation: Validation,
    lifetime: Duration,
    revoked: Revoked,
    /// A random id of this start of the server.
    start: Uuid,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    sub: UserId,
    iat: i64,
    exp: i64,
    /// The token epoch of the account. Tokens of earlier releases have none.
    #[serde(default)]
    epoch: i64,
    /// In a token that the sign-in link of `serve --dir` gives: the id of that start of the server. No other start
    /// accepts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<Uuid>,
}

impl AccessTokens {
    pub(crate) fn new(secret: &str, lifetime_minutes: u32) -> Self {
        // It fails if the provider is installed already, which is the same one.
        let _ = HS256_ONLY.install_default();
        let mut validation = Validation::new(Algorithm::HS256);
        // `check` does it, because its message depends on the kind of the token.
        validation.validate_exp = false;
        Self {
            encoding: EncodingKey::from_secret(secret.as_bytes()),
            decoding: DecodingKey::from_secret(secret.as_bytes()),
            validation,
            lifetime: Duration::from_secs(u64::from(lifetime_minutes) * 60),
            revoked: Revoked::default(),
            start: Uuid::new_v4(),
        }
    }

    /// Issues a token for the user; returns it with the time at which it expires.
    pub(crate) fn issue(&self, user: UserId, epoch: i64) -> Result<(String, Timestamp)> {
        self.sign(user, epoch, self.lifetime, None)
    }

    /// Issues a token with its own lifetime, which only this server accepts, until it stops.
    pub(crate) fn issue_local(&self, user: UserId, epoch: i64, lifetime: Duration) -> Result<String> {
        Ok(self.sign(user, epoch, lifetime, Some(self.start))?.0)
    }

    /// Returns the lifetime of tokens.
    pub(crate) fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Returns the revoked tokens.
    pub(crate) fn revoked(&self) -> &Revoked {
        &self.revoked
    }

    fn sign(&self, user: UserId, epoch: i64, lifetime: Duration, start: Option<Uuid>) -> Result<(String, Timestamp)> {
        let issued = now().as_second();
        let expires = issued.saturating_add_unsigned(lifetime.as_secs());
        let claims = Claims { sub: user, iat: issued, exp: expires, epoch, start };
        let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encoding)
            .map_err(ToolError::internal)?;
        Ok((token, Timestamp::from_second(expires).map_err(ToolError::internal)?))
    }

    /// Returns the caller that a token was issued to.
    pub(crate) fn check(&self, token: Option<&str>) -> Result<Caller> {
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            return Err(refusal("No valid token found in Authorization header or cookie"));
        };
        let decoded = jsonwebtoken::decode::<Claims>(token, &self.decoding, &self.validation);
        let claims = decoded.map_err(|_| refusal(NOT_OURS))?.claims;
        let has_expired = claims.exp <= now().as_second();
        match claims.start {
            Some(_) if has_expired => return Err(refusal(&format!("The access token has expired. {RESTART}"))),
            Some(start) if start != self.start => return Err(refusal(FROM_ANOTHER_START)),
            None if has_expired => return Err(refusal(EXPIRED)),
            _ => {}
        }
        let remedy = if claims.start.is_some() { RESTART } else { "Sign in again" };
        self.revoked.check(claims.sub, claims.epoch, remedy)?;
        Ok(Caller::person(claims.sub))
    }
}

fn refusal(message: &str) -> ToolError {
    ToolError::new(ErrorKind::Unauthenticated, message)
}

const NOT_OURS: &str = "The access token is not one of this server's, or not whole; send `Authorization: Bearer TOKEN` \
                        with the access_token that POST /api/v1/auth/login gave";
const EXPIRED: &str = "The access token has expired; send the refresh token to POST /api/v1/auth/refresh for a new one, or \
                       sign in again with POST /api/v1/auth/login";
const FROM_ANOTHER_START: &str = "The access token is of another start of `toolrest serve --dir`; open the sign-in link that \
                                  this server printed when it started";
const RESTART: &str = "Restart `toolrest serve --dir`, which prints a new sign-in link";

/// Creates a random refresh token.
pub(crate) fn fresh_token() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(ToolError::internal)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Creates a random secret for signing access tokens.
pub(crate) fn fresh_secret() -> Result<String> {
    Ok(format!("{}{}", fresh_token()?, fresh_token()?))
}

/// Returns the hash by which a refresh token is stored.
pub(crate) fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Supports HS256 only. No token can select another algorithm, and the crates for RSA and elliptic curves are not needed.
static HS256_ONLY: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| Ok(Box::new(Hs256::new(*algorithm, key.as_bytes())?)),
    verifier_factory: |algorithm, key| Ok(Box::new(Hs256::new(*algorithm, key.try_get_as_bytes()?)?)),
    key_utils: KeyUtils::new_unimplemented(),
};

struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(algorithm: Algorithm, key: &[u8]) -> jsonwebtoken::errors::Result<Self> {
        if algorithm != Algorithm::HS256 {
            return Err(InvalidAlgorithm.into());
        }
        Hmac::new_from_slice(key).map(Self).map_err(|_| InvalidKeyFormat.into())
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        let mut mac = self.0.clone();
        mac.update(message);
        Ok(mac.finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let mut mac = self.0.clone();
        mac.update(message);
        mac.verify_slice(signature).map_err(signature::Error::from_source)
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
