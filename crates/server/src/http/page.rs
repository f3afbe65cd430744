//! Pages of long lists.

use toolrest_store::Page;

/// Asks for one entry more than the page has, which shows whether the list goes on.
pub(crate) fn more<T>(page: Page<T>) -> Page<T> {
    Page { limit: page.limit + 1, ..page }
}

/// Cuts a list to its limit, and returns whether it was longer.
pub(crate) fn cut<T>(limit: u32, mut entries: Vec<T>) -> (Vec<T>, bool) {
    let limit = limit as usize;
    let truncated = entries.len() > limit;
    entries.truncate(limit);
    (entries, truncated)
}
