//! The workspace of `toolrest serve --dir`, with an access token for its owner.

use crate::auth::fresh_token;
use crate::http::App;
use std::path::Path;
use std::time::Duration;
use toolrest_core::{Result, WorkspaceId};
use toolrest_store::{Location, NewUser};

/// The account that owns the workspaces of `serve --dir`. It is not an email address, so nobody can register it.
pub const ACCOUNT: &str = "local";

/// Lifetime of the token. It ends earlier if the server stops; the next start issues another.
pub(crate) const TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The workspace of `serve --dir`.
pub struct Local {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// An access token for its owner.
    pub token: String,
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
    let token = app.tokens.issue_local(owner.id, owner.token_epoch, TOKEN_LIFETIME)?;
    Ok(Local { workspace, token })
}
