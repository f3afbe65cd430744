//! The workspaces of the local user, whose files are folders on this machine.

use crate::auth::fresh_token;
use crate::lock_file;
use crate::runtime::Runtime;
use std::path::Path;
use std::time::Duration;
use toolrest_core::{Caller, ErrorKind, Result, ToolError, WorkspaceId};
use toolrest_store::{Location, NewUser, User};

/// The account of the local user. It is not an email address, so nobody can register it.
pub const ACCOUNT: &str = "local";

/// Lifetime of the key of `serve --dir`, and of the access token that its sign-in link gives. They end earlier if the
/// server stops.
pub(crate) const TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// A workspace of the local user.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The local user, who owns it.
    pub caller: Caller,
}

impl Local {
    fn new(workspace: WorkspaceId, owner: &User) -> Self {
        Self { workspace, caller: Caller::person(owner.id) }
    }
}

/// Opens the local user's workspace for a folder, and creates it the first time.
pub(crate) async fn open(runtime: &Runtime, folder: &Path) -> Result<Local> {
    let root = runtime.workspaces.allowed_root(folder, ACCOUNT).await?;
    let name = folder.file_name().map_or_else(|| "local".into(), |name| name.to_string_lossy().into_owned());
    open_at(runtime, Location::Directory { root }, &name).await
}

/// Opens the local user's workspace at a place, and creates it the first time. A database workspace is known by its name.
pub(crate) async fn open_at(runtime: &Runtime, place: Location, name: &str) -> Result<Local> {
    if let Some(known) = find(runtime, &place, name).await? {
        return Ok(known);
    }
    // Otherwise two processes that start at the same time would create two accounts or two workspaces.
    let _lock = lock(runtime).await?;
    if let Some(known) = find(runtime, &place, name).await? {
        return Ok(known);
    }
    let owner = match runtime.store.credentials(ACCOUNT).await? {
        Some(known) => known.user,
        None => create_account(runtime).await?,
    };
    let workspace = runtime.store.create_workspace(owner.id, name.to_owned(), place).await?.id;
    Ok(Local::new(workspace, &owner))
}

/// Waits for the lock under which processes with the same data folder create what belongs to the local user.
pub(crate) async fn lock(runtime: &Runtime) -> Result<std::fs::File> {
    let lock = lock_file::lock(runtime.settings.server.data_dir.join("local.lock")).await;
    lock.map_err(|error| ToolError::new(ErrorKind::Unavailable, format!("Cannot lock the data folder: {error}")))
}

/// Returns the local user, who exists since a workspace was opened.
pub(crate) async fn owner(runtime: &Runtime) -> Result<Caller> {
    let known = runtime.store.credentials(ACCOUNT).await?;
    let known = known.ok_or_else(|| ToolError::new(ErrorKind::NotConfigured, "The account `local` does not exist"))?;
    Ok(Caller::person(known.user.id))
}

/// Finds the local user's workspace at a place.
async fn find(runtime: &Runtime, place: &Location, name: &str) -> Result<Option<Local>> {
    let Some(known) = runtime.store.credentials(ACCOUNT).await? else { return Ok(None) };
    let workspaces = runtime.store.workspaces_of(known.user.id).await?;
    let found = workspaces.into_iter().find(|workspace| {
        let is_own = workspace.owner_id == known.user.id;
        workspace.location == *place && (place.root().is_some() || (is_own && workspace.name == name))
    });
    Ok(found.map(|workspace| Local::new(workspace.id, &known.user)))
}

/// Creates the account of the local user. Its password is random and not stored: nobody can sign in to it.
async fn create_account(runtime: &Runtime) -> Result<User> {
    let password_hash = runtime.passwords.hash(fresh_token()?).await?;
    let user = NewUser { email: ACCOUNT.to_owned(), password_hash, full_name: None };
    Ok(runtime.store.create_user(user).await?)
}
