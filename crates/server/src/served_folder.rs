//! The folder of `toolrest serve --dir`, with an agent key and a sign-in link for its owner.

use crate::auth::{LINK_LIFETIME, LinkTarget};
use crate::http::App;
use crate::local::{Local, TOKEN_LIFETIME};
use std::path::Path;
use toolrest_core::{ActionSet, KeyId, Result, Role, ToolError, Toolset, WorkspaceId, now};
use toolrest_store::{KeyInfo, NewKey, StoreError};

/// The name of the key that each start makes.
const KEY_NAME: &str = "toolrest serve --dir";

/// The folder that `serve --dir` serves.
pub struct ServedFolder {
    /// The secret of an agent key for it, with all actions and toolsets; none if the disk of the database is full.
    pub key: Option<String>,
    /// The token of a link that signs its owner in, once.
    pub sign_in_token: String,
    local: Local,
    key_id: Option<KeyId>,
}

impl ServedFolder {
    /// Opens the workspace of a folder, and makes a key and a link for it.
    pub(crate) async fn open(app: &App, folder: &Path) -> Result<Self> {
        let local = app.open_local(folder).await?;
        let key = match replace_key(app, &local).await {
            Ok(key) => Some(key),
            // Reads and the sign-in link still work.
            Err(StoreError::StorageFull(reason)) => {
                tracing::warn!(reason, "could not make an agent key");
                None
            }
            Err(error) => return Err(error.into()),
        };
        let target = LinkTarget { user: local.caller.user, workspace: local.workspace };
        let sign_in_token = app.sign_in_link.create(target, LINK_LIFETIME)?;
        let key_id = key.as_ref().map(|key| key.id);
        let key = key.map(|key| app.agent_keys.issue(local.workspace, &key));
        Ok(Self { key, sign_in_token, local, key_id })
    }

    /// Returns the workspace.
    pub fn workspace(&self) -> WorkspaceId {
        self.local.workspace
    }

    /// Revokes the key when the server stops.
    pub(crate) async fn end(&self, app: &App) {
        let access = self.local.caller.access(self.local.workspace, Role::Owner);
        let Some(key) = self.key_id else { return };
        match app.store.revoke_key(access, key).await {
            // The workspace was deleted, and the key with it.
            Ok(_) | Err(StoreError::NotAMember) => {}
            Err(error) => tracing::warn!(%error, "could not revoke the key of `serve --dir`"),
        }
    }
}

/// Revokes the key of an earlier start, which is there if that server was killed, and makes another.
async fn replace_key(app: &App, local: &Local) -> Result<KeyInfo, StoreError> {
    let access = local.caller.access(local.workspace, Role::Owner);
    for key in app.store.keys(access).await? {
        if key.name == KEY_NAME && key.user_id == local.caller.user && key.revoked_at.is_none() {
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
