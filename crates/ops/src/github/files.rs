//! Files in repositories.

use super::request::read;
use super::{GitHub, RepositoryName, Session};
use crate::outside::http_client::HttpUrl;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::Method;
use serde::Deserialize;
use serde_json::json;
use toolrest_core::{CallCx, ErrorKind, Result, ToolError};

/// A file to write.
pub struct FileInRepository<'a> {
    /// The repository.
    pub repository: &'a RepositoryName,
    /// The path in it.
    pub path: &'a str,
    /// The branch; the default branch if there is none.
    pub branch: Option<&'a str>,
    /// The text.
    pub content: &'a str,
    /// The message of the commit.
    pub message: &'a str,
    /// The blob hash that the file must still have.
    pub expected_sha: Option<&'a str>,
}

/// A file that was written.
pub struct WrittenFile {
    /// The hash of the commit.
    pub commit_sha: String,
    /// Whether the file is new.
    pub is_new: bool,
}

/// What is at a path.
#[derive(Deserialize)]
struct Found {
    sha: String,
    r#type: String,
}

#[derive(Deserialize)]
struct Written {
    commit: Commit,
}

#[derive(Deserialize)]
struct Commit {
    sha: String,
}

impl GitHub {
    /// Creates or replaces a file by one commit.
    pub async fn write_file(&self, cx: &CallCx, file: FileInRepository<'_>) -> Result<WrittenFile> {
        let segments = path_segments(file.path)?;
        let session = self.begin(cx).await?;
        let RepositoryName { owner, name } = file.repository;
        let base = ["repos", owner.as_str(), name.as_str(), "contents"];
        let url = self.url(base.into_iter().chain(segments));
        let found = self.blob_sha(&session, &url, &file).await?;
        if let (Some(expected), found) = (file.expected_sha, &found)
            && found.as_deref() != Some(expected)
        {
            let now = found.as_ref().map_or("it does not exist".to_owned(), |sha| format!("its hash is now {sha}"));
            let message = format!("{} has changed in {} ({now}); nothing was written", file.path, file.repository);
            return Err(ToolError::new(ErrorKind::Stale, message));
        }
        let is_new = found.is_none();
        let mut content = json!({"message": file.message, "content": BASE64_STANDARD.encode(file.content)});
        if let Some(sha) = found {
            content["sha"] = sha.into();
        }
        if let Some(branch) = file.branch {
            content["branch"] = branch.into();
        }
        let what = format!("repository {} or its branch", file.repository);
        let written: Written = read(&self.send(&session, Method::PUT, &url, Some(&content), &what).await?)?;
        Ok(WrittenFile { commit_sha: written.commit.sha, is_new })
    }

    /// Returns the blob hash of a file; none if there is no file.
    async fn blob_sha(&self, session: &Session, url: &HttpUrl, file: &FileInRepository<'_>) -> Result<Option<String>> {
        let url = file.branch.map_or_else(|| url.clone(), |branch| url.with_query([("ref", branch)]));
        match self.send(session, Method::GET, &url, None, "file").await {
            // The entries of a folder are a list.
            Ok(response) if response.body.trim_ascii_start().starts_with(b"[") => Err(no_file(file.path, "folder")),
            Ok(response) => match read(&response)? {
                Found { sha, r#type } if r#type == "file" => Ok(Some(sha)),
                Found { r#type, .. } => Err(no_file(file.path, &r#type)),
            },
            // Also the answer for a repository that does not exist, which the write then reports.
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn no_file(path: &str, kind: &str) -> ToolError {
    ToolError::argument("path", format!("`path`: {path} is a {kind} in the repository, not a file"))
}

/// Splits a path into its names.
fn path_segments(path: &str) -> Result<Vec<&str>> {
    let segments: Vec<&str> = path.strip_prefix("./").unwrap_or(path).split('/').collect();
    let is_name = |name: &&str| !name.is_empty() && !matches!(*name, "." | "..") && !name.contains(char::is_control);
    if segments.iter().all(is_name) {
        return Ok(segments);
    }
    let message = format!("`path` must be a path relative to the root of the repository, not {path:?}");
    Err(ToolError::argument("path", message))
}
