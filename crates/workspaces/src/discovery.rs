//! Selects files of a database workspace by path, by a filter and by `.gitignore` rules.

use crate::ignored::{EveryLine, Ignored, RuleFiles};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use toolrest_core::{
    Access, ErrorKind, FileType, Find, FindResult, FoundFile, IgnoredFiles, Listed, Notice, PathFilter, Result, Search,
    SearchResult, ToolError, WsPath,
};
use toolrest_directory::MAX_RULES;
use toolrest_store::Store;

/// Maximum number of lines that are read from all `.gitignore` files together. Further lines are not applied, and the
/// answer says so.
const MAX_LINES: usize = 10_000;

/// Maximum size of these lines in bytes.
const MAX_LINES_BYTES: usize = 4 << 20;

/// Maximum number of files and folders that one `find` examines. More of them are an error.
const MAX_LISTED: usize = 500_000;

/// Finds files by their paths.
pub(crate) async fn find(store: &dyn Store, access: Access, find: Find) -> Result<FindResult> {
    let listing = store.list(access, &find.folder, find.depth, MAX_LISTED).await?;
    if listing.truncated {
        let folder = &find.folder;
        let message = format!(
            "{folder} holds more than {MAX_LISTED} entries, too many to look through at once; look through its folders one at a time"
        );
        return Err(ToolError::new(ErrorKind::ResponseTooLarge, message));
    }
    let rules = match find.ignored {
        IgnoredFiles::Include => None,
        IgnoredFiles::LeaveOut => Some(rules(store, access, find.deadline).await?),
    };
    let warnings = unapplied_rules(rules.as_ref());
    // Every glob and rule is matched with every path, which can take long.
    let choose = move || {
        let chosen = UnignoredPaths::new(find.folder, find.paths, rules);
        let is_chosen = |file: &Listed| file.file_type != FileType::Folder && chosen.accepts(file.path.as_str());
        let mut files: Vec<FoundFile> = Vec::new();
        let mut total = 0;
        for Listed { path, size, updated_at, .. } in listing.entries.into_iter().filter(is_chosen) {
            total += 1;
            if files.len() < find.limit {
                files.push(FoundFile { path, size, updated_at });
            }
        }
        FindResult { files, total, ignored: chosen.left_out(), warnings, ..FindResult::default() }
    };
    tokio::task::spawn_blocking(choose).await.map_err(ToolError::internal)
}

/// Finds lines in the files that a search selects.
pub(crate) async fn search(store: &dyn Store, access: Access, mut search: Search) -> Result<SearchResult> {
    let rules = match search.ignored {
        IgnoredFiles::Include => None,
        IgnoredFiles::LeaveOut => Some(rules(store, access, search.deadline).await?).filter(|rules| !rules.is_empty()),
    };
    if rules.is_none() && search.within.is_root() {
        return Ok(store.search(access, search).await?);
    }
    let warnings = unapplied_rules(rules.as_ref());
    let chosen = Arc::new(UnignoredPaths::new(search.within.clone(), search.paths.take(), rules));
    search.paths = Some(Arc::<UnignoredPaths>::clone(&chosen));
    let mut found = store.search(access, search).await?;
    found.skipped.ignored = chosen.left_out();
    found.warnings = warnings;
    Ok(found)
}

/// Returns a warning if some rules are beyond the limits.
fn unapplied_rules(rules: Option<&Ignored>) -> Vec<Notice> {
    let Some(file) = rules.and_then(Ignored::incomplete) else { return Vec::new() };
    let megabytes = MAX_LINES_BYTES >> 20;
    let text = format!(
        "Not all .gitignore rules from {file} on were applied, so files that they exclude may be in the answer: one file \
         can have {MAX_RULES} rules, and all of a workspace together {MAX_LINES} lines and {megabytes} MB"
    );
    vec![Notice::about(file, text)]
}

/// Reads the rules of all `.gitignore` files.
async fn rules(store: &dyn Store, access: Access, deadline: Instant) -> Result<Ignored> {
    let every_line = Search {
        pattern: Arc::new(EveryLine),
        within: WsPath::root(),
        paths: Some(Arc::new(RuleFiles)),
        ignored: IgnoredFiles::Include,
        limit: MAX_LINES,
        context: 0,
        limit_bytes: MAX_LINES_BYTES,
        deadline,
    };
    let found = store.search(access, every_line).await?;
    let parse = move || Ignored::from_lines(&found.matches, !found.truncated);
    tokio::task::spawn_blocking(parse).await.map_err(ToolError::internal)
}

/// Accepts the paths in a folder that match a filter and are not ignored, and counts the ignored ones.
struct UnignoredPaths {
    within: WsPath,
    paths: Option<Arc<dyn PathFilter>>,
    rules: Option<Ignored>,
    left_out: AtomicU64,
}

impl UnignoredPaths {
    fn new(within: WsPath, paths: Option<Arc<dyn PathFilter>>, rules: Option<Ignored>) -> Self {
        Self { within, paths, rules, left_out: AtomicU64::new(0) }
    }

    fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }
}

impl PathFilter for UnignoredPaths {
    fn accepts(&self, path: &str) -> bool {
        let is_there = path == self.within.as_str() || self.within.part_below(path).is_some();
        if !is_there || self.paths.as_ref().is_some_and(|paths| !paths.accepts(path)) {
            return false;
        }
        let Some(rules) = &self.rules else { return true };
        let left_out = rules.leaves_out(&WsPath::from_normal(path.to_owned()), &self.within);
        self.left_out.fetch_add(u64::from(left_out), Ordering::Relaxed);
        !left_out
    }
}
