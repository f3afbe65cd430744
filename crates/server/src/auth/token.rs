//! Access tokens (JWT, HS256) and refresh tokens (random, kept by their hash).

use super::revoked::Revoked;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::ErrorKind::{ExpiredSignature, InvalidAlgorithm, InvalidKeyFormat};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use signature::{Signer, Verifier};
use std::time::Duration;
use toolrest_core::{Caller, ErrorKind, Result, Timestamp, ToolError, UserId, now};

/// Makes and checks access tokens.
pub(crate) struct AccessTokens {
    encoding: EncodingKey,
    decoding: DecodingKey,
    validation: Validation,
    lifetime: Duration,
    revoked: Revoked,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    sub: UserId,
    iat: i64,
    exp: i64,
    /// Epoch of the account's tokens; those of earlier versions have none.
    #[serde(default)]
    epoch: i64,
}

impl AccessTokens {
    pub(crate) fn new(secret: &str, lifetime_minutes: u32) -> Self {
        // A second installation is the same provider.
        let _ = HS256_ONLY.install_default();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.leeway = 0;
        Self {
            encoding: EncodingKey::from_secret(secret.as_bytes()),
            decoding: DecodingKey::from_secret(secret.as_bytes()),
            validation,
            lifetime: Duration::from_secs(u64::from(lifetime_minutes) * 60),
            revoked: Revoked::default(),
        }
    }

    /// Makes a token for the user; gives it with the time of its end.
    pub(crate) fn issue(&self, user: UserId, epoch: i64) -> Result<(String, Timestamp)> {
        self.issue_for(user, epoch, self.lifetime)
    }

    /// How long tokens are good for.
    pub(crate) fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// The tokens that are refused before their end.
    pub(crate) fn revoked(&self) -> &Revoked {
        &self.revoked
    }

    /// Makes a token that is good for another time than usual.
    pub(crate) fn issue_for(&self, user: UserId, epoch: i64, lifetime: Duration) -> Result<(String, Timestamp)> {
        let issued = now().as_second();
        let expires = issued.saturating_add_unsigned(lifetime.as_secs());
        let claims = Claims { sub: user, iat: issued, exp: expires, epoch };
        let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encoding)
            .map_err(ToolError::internal)?;
        Ok((token, Timestamp::from_second(expires).map_err(ToolError::internal)?))
    }

    /// The caller that a token stands for.
    pub(crate) fn check(&self, token: Option<&str>) -> Result<Caller> {
        let refuse = |message: &str| Err(ToolError::new(ErrorKind::Unauthenticated, message));
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            return refuse("No valid token found in Authorization header or cookie");
        };
        match jsonwebtoken::decode::<Claims>(token, &self.decoding, &self.validation) {
            Ok(data) => {
                self.revoked.check(data.claims.sub, data.claims.epoch)?;
                Ok(Caller { user: data.claims.sub })
            }
            Err(error) if *error.kind() == ExpiredSignature => refuse(
                "The access token has expired; send the refresh token to POST /api/v1/auth/refresh for a new one, or \
                 sign in again with POST /api/v1/auth/login",
            ),
            Err(_) => refuse(
                "The access token is not one of this server's, or not whole; send `Authorization: Bearer TOKEN` with \
                 the access_token that POST /api/v1/auth/login gave",
            ),
        }
    }
}

/// Makes a refresh token that nobody can guess.
pub(crate) fn fresh_token() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(ToolError::internal)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Makes a secret to sign access tokens with.
pub(crate) fn fresh_secret() -> Result<String> {
    Ok(format!("{}{}", fresh_token()?, fresh_token()?))
}

/// What is kept of a refresh token.
pub(crate) fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The one algorithm there is. With no other known to the binary, no token can talk it into another, and the crates for
/// RSA and curves stay out.
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
