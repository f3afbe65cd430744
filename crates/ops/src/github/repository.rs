//! Creates repositories.

use super::request::read;
use super::{GitHub, RepositoryName};
use http::Method;
use serde::Deserialize;
use serde_json::json;
use toolrest_core::{CallCx, Intent, Result, ToolError};

/// A new repository.
#[derive(Deserialize)]
pub struct CreatedRepository {
    /// The address of its page.
    #[serde(rename = "html_url")]
    pub url: String,
    /// Its name with its owner.
    pub full_name: String,
}

/// Reads the name of a repository to be created: `name`, or `organisation/name`.
fn parse(name: &str) -> Result<(Option<&str>, &str)> {
    let (owner, own) = name.split_once('/').map_or((None, name), |(owner, own)| (Some(owner), own));
    if RepositoryName::new(owner.unwrap_or("owner"), own).is_some() {
        return Ok((owner, own));
    }
    let message = format!("`name` must be a name of letters, digits, `-`, `_` and `.`, not {name:?}");
    Err(ToolError::argument("name", message))
}

impl GitHub {
    /// Returns what the creation of a repository does.
    pub fn create_intents(name: &str) -> Vec<Intent> {
        let intent = |_| Intent::GitHub { operation: "create repository".to_owned(), repository: name.to_owned() };
        parse(name).ok().map(intent).into_iter().collect()
    }

    /// Creates a repository of the token's account, or of an organisation.
    pub async fn create_repository(
        &self,
        cx: &CallCx,
        name: &str,
        description: Option<&str>,
        is_private: bool,
    ) -> Result<CreatedRepository> {
        let (owner, own) = parse(name)?;
        let session = self.begin(cx).await?;
        let url = match owner {
            Some(organisation) => self.url(["orgs", organisation, "repos"]),
            None => self.url(["user", "repos"]),
        };
        let content = json!({"name": own, "description": description.unwrap_or_default(), "private": is_private});
        let response = self.send(&session, Method::POST, &url, Some(&content), "repository or organisation").await?;
        read(&response)
    }
}
