//! Converts pages to Markdown.

use super::html;
use htmd::HtmlToMarkdown;
use toolrest_core::Result;

/// Elements without a text for readers.
const SKIPPED: [&str; 9] = ["script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "head"];

/// Converts a page to Markdown.
pub(super) fn from_html(page: &str) -> Result<String> {
    html::with_tree(page, |tree| {
        let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
        Ok(converter.tree_to_markdown(tree).trim().to_owned())
    })
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod markdown_tests;
