//! Secrets of a workspace: values that programs and tools use, and that no answer shows.

use crate::{Access, CallCx, ErrorKind, Result, Role, ToolError};
use async_trait::async_trait;
use std::fmt;

/// Maximum length of the name of a secret.
pub const MAX_SECRET_NAME_BYTES: usize = 64;
/// Minimum size of a value. A shorter one would also be replaced where it occurs in output by chance.
pub const MIN_SECRET_BYTES: usize = 8;
/// Maximum size of a value.
pub const MAX_SECRET_BYTES: usize = 32 << 10;

/// The value of a secret. It cannot be printed or serialised by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Checks the limits of a value. The error does not contain it.
    pub fn new(value: String) -> Result<Self> {
        let size = value.len();
        if !(MIN_SECRET_BYTES..=MAX_SECRET_BYTES).contains(&size) {
            let message = format!("`value` has {size} bytes; a secret has {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES}");
            return Err(ToolError::argument("value", message));
        }
        if value.contains('\0') {
            return Err(ToolError::argument("value", "`value` must not have a NUL character"));
        }
        Ok(Self(value))
    }

    /// Returns the value. It must not be logged, recorded or answered.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// Refuses a name that no secret can have: it must be a capital letter, followed by capital letters, digits and `_`.
pub fn check_secret_name(argument: &str, name: &str) -> Result<()> {
    let mut bytes = name.bytes();
    let is_valid = name.len() <= MAX_SECRET_NAME_BYTES
        && bytes.next().is_some_and(|first| first.is_ascii_uppercase())
        && bytes.all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if is_valid {
        return Ok(());
    }
    let shown: String = name.chars().filter(|c| !c.is_control()).take(MAX_SECRET_NAME_BYTES).collect();
    let message = format!(
        "'{shown}' is not the name of a secret; a name is a capital letter, followed by up to 63 capital letters, digits \
         and `_`"
    );
    Err(ToolError::argument(argument, message))
}

/// Reads the secrets of workspaces.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// Returns the secrets with these names, in their order; none for one that does not exist. The statement that reads
    /// them checks the access.
    async fn values(&self, access: Access, names: &[String]) -> Result<Vec<Option<Secret>>>;
}

/// Returns a secret of the workspace of a call, if there is one with this name. The caller must be allowed to change the
/// workspace: what uses a secret acts in the name of the workspace.
pub async fn secret_of_call(secrets: &dyn Secrets, cx: &CallCx, name: &str) -> Result<Option<Secret>> {
    let found = secrets.values(cx.access(Role::Editor), &[name.to_owned()]).await?;
    Ok(found.into_iter().next().flatten())
}

/// Creates the error for a secret that a call names and that does not exist.
pub fn no_such_secret(name: &str) -> ToolError {
    let message = format!(
        "The workspace has no secret {name}; a person can set it with PUT /api/v1/workspaces/{{id}}/secrets/{name}"
    );
    ToolError::new(ErrorKind::ItemNotFound, message)
}

/// Knows no secrets.
pub struct NoSecrets;

#[async_trait]
impl Secrets for NoSecrets {
    async fn values(&self, _: Access, names: &[String]) -> Result<Vec<Option<Secret>>> {
        Ok(vec![None; names.len()])
    }
}
