//! Encrypts the secrets of workspaces.
//!
//! XChaCha20-Poly1305 with a random nonce for each secret. The workspace and the name are authenticated with it, so that a
//! stored secret cannot be put into another place. The key is in a file of the data folder, or in the settings.

use crate::settings::Settings;
use async_trait::async_trait;
use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolrest_core::{Access, ErrorKind, Result, Secret, Secrets, ToolError, WorkspaceId, hex};
use toolrest_store::{SealedSecret, SecretInfo, SecretStore};

/// Name of the file with the keys, the current one first, in the data folder.
const FILE: &str = "secrets.key";
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
const KEY_ID_BYTES: usize = 8;
/// Number of secrets that are encrypted again at once.
const BATCH: u32 = 100;

/// The secrets of all workspaces.
pub(crate) struct SecretVault {
    store: Arc<dyn SecretStore>,
    source: KeySource,
}

/// Where the keys are.
#[derive(Clone)]
enum KeySource {
    Settings(Arc<[SealingKey]>),
    /// The file is read for each use, because another process may rotate the key.
    File(PathBuf),
}

/// A key that encrypts secrets.
#[derive(Clone)]
struct SealingKey {
    cipher: XChaCha20Poly1305,
    /// Identifies the key; it does not tell anything about it.
    id: Vec<u8>,
}

impl SealingKey {
    fn new(key: [u8; KEY_BYTES]) -> Self {
        let id = Sha256::new().chain_update(b"toolrest secrets, id of key").chain_update(key).finalize();
        Self { cipher: XChaCha20Poly1305::new(&Key::from(key)), id: id[..KEY_ID_BYTES].to_vec() }
    }

    /// Derives a key from a text of the settings.
    fn derived(text: &str) -> Self {
        Self::new(Sha256::new().chain_update(b"toolrest secrets, key: ").chain_update(text).finalize().into())
    }

    fn seal(&self, workspace: WorkspaceId, name: &str, secret: &Secret) -> Result<SealedSecret> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(ToolError::internal)?;
        let payload = Payload { msg: secret.expose().as_bytes(), aad: &place(workspace, name) };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload).map_err(ToolError::internal)?;
        let sealed = [nonce.as_slice(), &sealed].concat();
        Ok(SealedSecret { name: name.to_owned(), sealing_key: self.id.clone(), sealed })
    }

    fn open(&self, workspace: WorkspaceId, sealed: &SealedSecret) -> Result<Secret> {
        let unreadable = || {
            let message = format!("The stored secret {} was damaged or moved; set it again", sealed.name);
            ToolError::new(ErrorKind::NotConfigured, message)
        };
        let (nonce, text) = sealed.sealed.split_first_chunk::<NONCE_BYTES>().ok_or_else(unreadable)?;
        let payload = Payload { msg: text, aad: &place(workspace, &sealed.name) };
        let value = self.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| unreadable())?;
        Secret::new(String::from_utf8(value).map_err(|_| unreadable())?)
    }
}

/// Returns what is authenticated with a secret.
fn place(workspace: WorkspaceId, name: &str) -> Vec<u8> {
    [workspace.0.as_bytes().as_slice(), name.as_bytes()].concat()
}

impl KeySource {
    fn new(settings: &Settings) -> Self {
        let secrets = &settings.secrets;
        match &secrets.key {
            Some(key) => Self::Settings(
                [Some(key), secrets.previous_key.as_ref()]
                    .into_iter()
                    .flatten()
                    .map(|key| SealingKey::derived(key))
                    .collect(),
            ),
            None => Self::File(settings.server.data_dir.join(FILE)),
        }
    }

    /// Returns the keys, the current one first.
    fn keys(&self) -> Result<Vec<SealingKey>> {
        match self {
            Self::Settings(keys) => Ok(keys.to_vec()),
            Self::File(path) => Ok(read_keys(path)?.into_iter().map(SealingKey::new).collect()),
        }
    }

    /// Returns the current key, and creates it the first time.
    fn current(&self) -> Result<SealingKey> {
        if let Some(key) = self.keys()?.into_iter().next() {
            return Ok(key);
        }
        let Self::File(path) = self else { return Err(ToolError::internal("the settings have no key for secrets")) };
        let key = fresh_key()?;
        match write_keys(path, &[key], Existing::Keep) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            written => written.map_err(|error| cannot("write", path, &error))?,
        }
        let key = self.keys()?.into_iter().next();
        key.ok_or_else(|| {
            ToolError::new(ErrorKind::NotConfigured, format!("The file {FILE} of the data folder is empty"))
        })
    }
}

fn fresh_key() -> Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(ToolError::internal)?;
    Ok(key)
}

/// Reads the keys of a file; none if it does not exist.
fn read_keys(path: &Path) -> Result<Vec<[u8; KEY_BYTES]>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot("read", path, &error)),
    };
    let wrong = || {
        let message =
            format!("The file {FILE} of the data folder has a line that is not a key; restore it from a backup");
        ToolError::new(ErrorKind::NotConfigured, message)
    };
    text.lines().map(|line| key_of(line).ok_or_else(wrong)).collect()
}

/// Parses a key of 64 hexadecimal digits.
fn key_of(line: &str) -> Option<[u8; KEY_BYTES]> {
    let digits = line.as_bytes();
    let mut key = [0; KEY_BYTES];
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(key)
}

/// What to do with a file that exists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Existing {
    Keep,
    Replace,
}

/// Writes keys to a file that only the server's user can read. It is complete or not there, also after a crash.
fn write_keys(path: &Path, keys: &[[u8; KEY_BYTES]], existing: Existing) -> io::Result<()> {
    let text: String = keys.iter().map(|key| hex(key) + "\n").collect();
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    let placed = match existing {
        Existing::Keep => fs::hard_link(&draft, path).and_then(|()| fs::remove_file(&draft)),
        Existing::Replace => fs::rename(&draft, path),
    };
    if placed.is_err() {
        let _ = fs::remove_file(&draft);
    }
    placed?;
    path.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}

/// Creates the error for a file that cannot be used. Callers do not see its path.
fn cannot(verb: &str, path: &Path, error: &io::Error) -> ToolError {
    ToolError::internal(format!("cannot {verb} {}: {error}", path.display()))
}

impl SecretVault {
    pub(crate) fn new(store: Arc<dyn SecretStore>, settings: &Settings) -> Self {
        Self { store, source: KeySource::new(settings) }
    }

    async fn keys(&self) -> Result<Vec<SealingKey>> {
        let source = self.source.clone();
        tokio::task::spawn_blocking(move || source.keys()).await.map_err(ToolError::internal)?
    }

    async fn current_key(&self) -> Result<SealingKey> {
        let source = self.source.clone();
        tokio::task::spawn_blocking(move || source.current()).await.map_err(ToolError::internal)?
    }

    /// Sets a secret.
    pub(crate) async fn set(&self, access: Access, name: &str, secret: &Secret) -> Result<SecretInfo> {
        loop {
            let key = self.current_key().await?;
            let info = self.store.set_secret(access, key.seal(access.workspace, name, secret)?).await?;
            // If the key was rotated meanwhile, the rotation may have missed this secret.
            if self.current_key().await?.id == key.id {
                return Ok(info);
            }
        }
    }

    /// Creates a new key in the file, and encrypts all secrets with it. With a key of the settings, encrypts all secrets with
    /// that. Returns the number of secrets.
    pub(crate) async fn rotate(&self) -> Result<u64> {
        let keys = match &self.source {
            KeySource::Settings(keys) => keys.to_vec(),
            KeySource::File(path) => {
                let mut keys = read_keys(path)?;
                keys.insert(0, fresh_key()?);
                write_keys(path, &keys, Existing::Replace).map_err(|error| cannot("write", path, &error))?;
                self.source.keys()?
            }
        };
        let Some(current) = keys.first() else { return Ok(0) };
        let mut resealed = 0;
        loop {
            let batch = self.store.secrets_to_reseal(current.id.clone(), BATCH).await?;
            if batch.is_empty() {
                break;
            }
            for (workspace, old) in batch {
                let secret = open(&keys, workspace, &old)?;
                let new = current.seal(workspace, &old.name, &secret)?;
                self.store.reseal_secret(workspace, old, new).await?;
                resealed += 1;
            }
        }
        if let KeySource::File(path) = &self.source {
            let newest = read_keys(path)?.into_iter().take(1).collect::<Vec<_>>();
            write_keys(path, &newest, Existing::Replace).map_err(|error| cannot("write", path, &error))?;
        }
        Ok(resealed)
    }
}

/// Decrypts a secret with the key that it was encrypted with.
fn open(keys: &[SealingKey], workspace: WorkspaceId, sealed: &SealedSecret) -> Result<Secret> {
    let key = keys.iter().find(|key| key.id == sealed.sealing_key).ok_or_else(|| {
        let message = format!(
            "The secret {} is encrypted with a key that this server does not have; have the operator give all servers \
             the same secrets.key, or set the secret again",
            sealed.name
        );
        ToolError::new(ErrorKind::NotConfigured, message)
    })?;
    key.open(workspace, sealed)
}

#[async_trait]
impl Secrets for SecretVault {
    async fn values(&self, access: Access, names: &[String]) -> Result<Vec<Option<Secret>>> {
        let sealed = self.store.sealed_secrets(access, names.to_vec()).await?;
        if sealed.is_empty() {
            return Ok(vec![None; names.len()]);
        }
        let keys = self.keys().await?;
        let value = |name: &String| {
            let found = sealed.iter().find(|sealed| sealed.name == *name);
            found.map(|sealed| open(&keys, access.workspace, sealed)).transpose()
        };
        names.iter().map(value).collect()
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
