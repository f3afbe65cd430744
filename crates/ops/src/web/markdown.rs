//! Converts pages to Markdown.

use htmd::{HtmlToMarkdown, Node};
use std::rc::Rc;
use toolrest_core::{ErrorKind, Result, ToolError};

/// Maximum depth of elements within each other. Deeper pages are not made by people, and conversion is recursive.
const MAX_DEPTH: usize = 400;
/// Stack of the thread that converts, which is enough for that depth.
const STACK_BYTES: usize = 32 << 20;

/// Elements without a text for readers.
const SKIPPED: [&str; 9] = ["script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "head"];

/// Converts a page to Markdown.
pub(super) fn from_html(html: &str) -> Result<String> {
    on_deep_stack(|| convert(html))
}

/// Converts a page to Markdown on this thread, which must have a large stack.
pub(super) fn convert(html: &str) -> Result<String> {
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    let tree = converter.html_to_tree(html).map_err(ToolError::internal)?;
    if is_deeper_than(&tree, MAX_DEPTH) {
        return Err(too_deep());
    }
    Ok(converter.tree_to_markdown(&tree).trim().to_owned())
}

/// Refuses a page whose elements are too deep within each other for conversions.
pub(super) fn check_depth(html: &str) -> Result<()> {
    let tree = HtmlToMarkdown::new().html_to_tree(html).map_err(ToolError::internal)?;
    if is_deeper_than(&tree, MAX_DEPTH) { Err(too_deep()) } else { Ok(()) }
}

fn too_deep() -> ToolError {
    let message =
        format!("The elements of the page are more than {MAX_DEPTH} deep within each other; fetch it as it is");
    ToolError::new(ErrorKind::NetworkError, message)
}

/// Runs work on a thread of its own with a large stack.
pub(super) fn on_deep_stack<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("page".to_owned()).stack_size(STACK_BYTES);
        let started = thread.spawn_scoped(scope, work).map_err(ToolError::internal)?;
        started.join().unwrap_or_else(|_| Err(ToolError::internal("the conversion of a page panicked")))
    })
}

fn is_deeper_than(tree: &Rc<Node>, limit: usize) -> bool {
    let mut open = vec![(Rc::clone(tree), 0)];
    while let Some((node, depth)) = open.pop() {
        if depth > limit {
            return true;
        }
        open.extend(node.children.borrow().iter().map(|child| (Rc::clone(child), depth + 1)));
    }
    false
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod markdown_tests;
