//! The workspace of `toolrest serve --dir`, with an agent key and a sign-in link for its owner.

use crate::auth::{LINK_LIFETIME, LinkTarget, fresh_token};
use crate::http::App;
use std::path::Path;
use std::time::Duration;
use toolrest_core::{ActionSet, Caller, KeyId, Result, Role, ToolError, Toolset, UserId, WorkspaceId, now};
use toolrest_store::{KeyInfo, Location, NewKey, NewUser, StoreError};

/// The account that owns the workspaces of `serve --dir`. It is not an email address, so nobody can register it.
pub const ACCOUNT: &str = "local";

/// The name of the key that each start makes.
const KEY_NAME: &str = "toolrest serve --dir";

/// Lifetime of the key, and of the access token that the sign-in link gives. They end earlier if the server stops.
pub(crate) const TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The workspace of `serve --dir`.
pub struct Local {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The secret of an agent key for it, with all actions and toolsets; none if the disk of the database is full.
    pub key: Option<String>,
    /// The token of a link that signs its owner in, once.
    pub sign_in_token: String,
    owner: UserId,
    key_id: Option<KeyId>,
}

/// Opens the workspace of a folder, and creates it the first time.
pub(crate) async fn open(app: &App, folder: &Path) -> Result<Local> {
    let root = app.workspaces.allowed_root(folder, ACCOUNT).await?;
    let owner = if let Some(known) = app.store.credentials(ACCOUNT).await? {
        known.user
    } else {
        // The password is random and not stored: nobody can sign in to this account.
        let password_hash = app.passwords.hash(fresh_token()?).await?;
        app.store.create_user(NewUser { email: ACCOUNT.to_owned(), password_hash, full_name: None }).await?
    };
    let place = Location::Directory { root };
    let known = app.store.workspaces_of(owner.id).await?.into_iter().find(|workspace| workspace.location == place);
    let workspace = if let Some(workspace) = known {
        workspace.id
    } else {
        let name = folder.file_name().map_or_else(|| "local".into(), |name| name.to_string_lossy().into_owned());
        app.store.create_workspace(owner.id, name, place).await?.id
    };
    let key = match replace_key(app, workspace, owner.id).await {
        Ok(key) => Some(key),
        // Reads and the sign-in link still work.
        Err(StoreError::StorageFull(reason)) => {
            tracing::warn!(reason, "could not make an agent key");
            None
        }
        Err(error) => return Err(error.into()),
    };
    let sign_in_token = app.sign_in_link.create(LinkTarget { user: owner.id, workspace }, LINK_LIFETIME)?;
    let key_id = key.as_ref().map(|key| key.id);
    let key = key.map(|key| app.agent_keys.issue(workspace, &key));
    Ok(Local { workspace, key, sign_in_token, owner: owner.id, key_id })
}

/// Revokes the key of an earlier start, which is there if that server was killed, and makes another.
async fn replace_key(app: &App, workspace: WorkspaceId, owner: UserId) -> Result<KeyInfo, StoreError> {
    let access = Caller::person(owner).access(workspace, Role::Owner);
    for key in app.store.keys(access).await? {
        if key.name == KEY_NAME && key.user_id == owner && key.revoked_at.is_none() {
            app.store.revoke_key(access, key.id).await?;
        }
    }
    let new = NewKey {
        name: KEY_NAME.to_owned(),
        toolsets: app.engine.toolsets().iter().map(|toolset| Toolset::name(toolset).to_owned()).collect(),
        actions: ActionSet::all(),
        expires_at: now().checked_add(TOKEN_LIFETIME).map_err(ToolError::internal)?,
    };
    app.store.create_key(access, new).await
}

impl Local {
    /// Revokes the key when the server stops.
    pub(crate) async fn end(&self, app: &App) {
        let access = Caller::person(self.owner).access(self.workspace, Role::Owner);
        let Some(key) = self.key_id else { return };
        match app.store.revoke_key(access, key).await {
            // The workspace was deleted, and the key with it.
            Ok(_) | Err(StoreError::NotAMember) => {}
            Err(error) => tracing::warn!(%error, "could not revoke the key of `serve --dir`"),
        }
    }
}
