//! Checks the query parameters of requests.

use super::calls::PARAMETERS;
use http::{Request, Uri};
use strsim::normalized_damerau_levenshtein as likeness;
use toolrest_core::{Result, ToolError};

/// Returns the parameters that a route takes. Most take none.
pub(super) fn known(path: &str) -> &'static [&'static str] {
    let parts: Vec<&str> = path.trim_start_matches("/api/v1/").trim_end_matches('/').split('/').collect();
    match parts[..] {
        ["toolsets", _] => &["format"],
        ["", "sign-in"] => &["token"],
        ["", "mcp"] | ["workspaces", _, "mcp"] => &super::mcp::PARAMETERS,
        ["workspaces", _, "calls"] => &PARAMETERS,
        ["workspaces", _, "approvals"] => &super::approvals::PARAMETERS,
        ["workspaces", _, "approvals", _] => &["wait"],
        ["workspaces", _, "trash" | "commits"]
        | ["workspaces", _, "files", _, "versions"]
        | ["workspaces", _, "history", ..] => &["before", "limit"],
        ["workspaces", _, "list"] => &["path"],
        ["workspaces", _, "metrics"] => &["hours"],
        ["workspaces", _, "processes", _, "output"] => &["offset"],
        ["workspaces", _, "events"] => &["after", "kinds"],
        _ => &[],
    }
}

/// Refuses a parameter that the route does not take, or that is given twice: ignoring it would mislead the caller.
pub(crate) fn check<B>(request: &Request<B>) -> Result<()> {
    if super::console::is_page(request.uri().path()) {
        return Ok(());
    }
    let known = known(request.uri().path());
    let mut seen: Vec<String> = Vec::new();
    for (name, _) in pairs(request.uri())? {
        if !known.contains(&name.as_str()) {
            return Err(unknown(&name, known));
        }
        if seen.contains(&name) {
            return Err(ToolError::argument(name.as_str(), format!("The query parameter `{name}` is given twice")));
        }
        seen.push(name);
    }
    Ok(())
}

fn pairs(uri: &Uri) -> Result<Vec<(String, String)>> {
    let query = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
    query.map(|query| query.0).map_err(|error| ToolError::argument("query", error.body_text()))
}

fn unknown(name: &str, known: &[&str]) -> ToolError {
    const MAX_CHARS: usize = 100;
    let shown: String = name.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect();
    let nearest = known.iter().max_by(|a, b| likeness(&shown, a).total_cmp(&likeness(&shown, b)));
    let message = match nearest {
        None => format!("The query parameter `{shown}` is not known; this route takes none"),
        Some(nearest) => format!("The query parameter `{shown}` is not known; did you mean `{nearest}`?"),
    };
    ToolError::argument(&shown, message)
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
