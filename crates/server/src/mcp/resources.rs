//! The files of the workspace as resources. They are listed and read by tools, so the same rules hold and it is recorded.

use super::{McpServer, calls};
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write;
use toolrest_core::{ErrorKind, Key, Result, ToolError, Toolsets};

/// The beginning of the addresses; the path from the root follows.
const PREFIX: &str = "toolrest:///";
/// Maximum number of files on a page of the list.
const PAGE_FILES: usize = 1_000;

/// The tools that list and read the files.
const LIST: (&str, &str) = ("file", "file.list");
const READ: (&str, &str) = ("system", "read_file");

/// Whether a caller may use the tools that list and read the files.
pub(super) fn are_allowed(toolsets: &Toolsets, key: Option<Key>) -> bool {
    let is_allowed = |(toolset, tool): (&str, &str)| {
        let found = toolsets.find(toolset).and_then(|toolset| toolset.find(tool));
        found.is_some_and(|tool| key.is_none_or(|key| key.check_tool(toolsets, toolset, tool.action()).is_ok()))
    };
    is_allowed(LIST) && is_allowed(READ)
}

#[derive(Deserialize)]
struct Listing {
    files: Vec<ListedFile>,
}

#[derive(Deserialize)]
struct ListedFile {
    path: String,
    size: u64,
}

#[derive(Deserialize)]
struct Content {
    content: String,
}

/// Lists the files that `.gitignore` does not exclude, a page at a time. The cursor is the last path of the page before.
pub(super) async fn list(
    server: &McpServer,
    cursor: Option<String>,
    context: &RequestContext<RoleServer>,
) -> Result<ListResourcesResult, ErrorData> {
    let listed = calls::json(server, LIST, &json!({ "pattern": "**" }), context).await?;
    let Listing { files } = parse(listed.map_err(|error| refused(PREFIX, &error))?)?;
    let after = cursor.unwrap_or_default();
    let mut rest = files.into_iter().filter(|file| file.path > after);
    let resource = |file: ListedFile| Resource::new(uri(&file.path), file.path).with_size(file.size);
    let page: Vec<Resource> = rest.by_ref().take(PAGE_FILES).map(resource).collect();
    let has_more = rest.next().is_some();
    let next_cursor = page.last().filter(|_| has_more).map(|last| last.name.clone());
    Ok(ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(page) })
}

/// Returns the form of the addresses.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(format!("{PREFIX}{{+path}}"), "file");
    ListResourceTemplatesResult::with_all_items(vec![template.with_description("A file of the workspace, by its path")])
}

/// Reads a file: as text if it is one, otherwise its bytes.
pub(super) async fn read(
    server: &McpServer,
    uri: &str,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResult, ErrorData> {
    let Some(path) = path(uri) else {
        let message = format!("There is no resource '{uri}'; the addresses have the form {PREFIX}path");
        return Err(ErrorData::resource_not_found(message, Some(json!({ "uri": uri }))));
    };
    let text = calls::json(server, READ, &json!({ "path": path }), context).await?;
    let contents = match text {
        Ok(answer) => ResourceContents::text(parse::<Content>(answer)?.content, uri),
        Err(error) if error.kind == ErrorKind::Binary => {
            let args = json!({ "path": path, "encoding": "base64" });
            let bytes = calls::json(server, READ, &args, context).await?;
            ResourceContents::blob(parse::<Content>(bytes.map_err(|error| refused(uri, &error))?)?.content, uri)
        }
        Err(error) => return Err(refused(uri, &error)),
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

fn parse<T: for<'de> Deserialize<'de>>(answer: Value) -> Result<T, ErrorData> {
    serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Returns the error for a resource that cannot be read.
fn refused(uri: &str, error: &ToolError) -> ErrorData {
    match error.kind {
        ErrorKind::NotFound => ErrorData::resource_not_found(error.message.clone(), Some(json!({ "uri": uri }))),
        ErrorKind::Internal => ErrorData::internal_error(error.message.clone(), None),
        _ => ErrorData::invalid_request(error.message.clone(), None),
    }
}

/// Returns the address of a file, with the characters escaped that an address cannot have.
fn uri(path: &str) -> String {
    let mut uri = PREFIX.to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// Returns the path of an address; none if it is not one of a file.
fn path(uri: &str) -> Option<String> {
    unescaped(uri.strip_prefix(PREFIX)?).filter(|path| !path.is_empty())
}

/// Returns a part of an address without its escapes.
pub(super) fn unescaped(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut path = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            path.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            path.push(byte);
        }
    }
    String::from_utf8(path).ok()
}

#[cfg(test)]
#[path = "resources_tests.rs"]
mod tests;
