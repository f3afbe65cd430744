//! Searches a folder together with the virtual files that the system shows in it.

use super::FolderWorkspace;
use std::{collections::BTreeSet, sync::Arc};
use toolrest_core::{
    Depth, ErrorKind, FileType, Find, FindResult, FoundFile, IgnoredFiles, Listed, PathFilter, Result, Search,
    SearchResult, WsPath,
};
use toolrest_store::search::FoundLines;

impl FolderWorkspace {
    /// Finds files on disk and among the virtual files.
    pub(super) async fn find_everywhere(&self, find: Find) -> Result<FindResult> {
        let fits = |path: &WsPath| match find.depth {
            Depth::Children => path.parent().as_ref() == Some(&find.folder),
            Depth::Descendants => path.is_below(&find.folder),
        };
        let shown = self.shown(find.paths.as_deref()).await?;
        let is_shown = shown.iter().any(|file| file.path.is_below(&find.folder));
        let shown: Vec<Listed> = shown.into_iter().filter(|file| fits(&file.path)).collect();
        let limit = find.limit;
        let root = Arc::clone(&self.folder.disk.root);
        let found = self.walk_pool.find(self.access, root, find).await;
        let mut found = or_nothing(found, is_shown)?;
        if !shown.is_empty() {
            found.total += shown.len();
            let file = |Listed { path, size, updated_at, .. }| FoundFile { path, size, updated_at };
            found.files.extend(shown.into_iter().map(file));
            found.files.sort_by(|one, other| one.path.cmp(&other.path));
            found.files.truncate(limit);
        }
        Ok(found)
    }

    /// Finds lines in files on disk and in virtual files.
    pub(super) async fn search_everywhere(&self, search: Search) -> Result<SearchResult> {
        let is_within = |path: &WsPath| *path == search.within || path.is_below(&search.within);
        let shown = self.shown(search.paths.as_deref()).await?;
        let shown: BTreeSet<String> =
            shown.into_iter().filter(|file| is_within(&file.path)).map(|file| file.path.as_str().to_owned()).collect();
        let root = Arc::clone(&self.folder.disk.root);
        let found = self.walk_pool.search(self.access, root, search.clone()).await;
        let found = or_nothing(found, !shown.is_empty())?;
        if shown.is_empty() {
            return Ok(found);
        }
        let among_shown = Search {
            within: WsPath::root(),
            paths: Some(Arc::new(PathSet(shown))),
            ignored: IgnoredFiles::Include,
            ..search.clone()
        };
        let more = self.store.search(self.access, among_shown).await?;
        let truncated = found.truncated || more.truncated;
        let mut skipped = found.skipped;
        skipped += more.skipped;
        let mut matches = [found.matches, more.matches].concat();
        matches.sort_by(|one, other| (&one.path, one.line_number).cmp(&(&other.path, other.line_number)));
        let mut all = FoundLines::together([FoundLines { matches, skipped, ..FoundLines::default() }], &search);
        all.truncated |= truncated;
        Ok(all)
    }

    /// Returns the virtual files that a filter selects. Checks the caller's membership.
    async fn shown(&self, paths: Option<&dyn PathFilter>) -> Result<Vec<Listed>> {
        let mut shown = self.store.virtual_files(self.access).await?;
        shown.retain(|file| {
            file.file_type != FileType::Folder && paths.is_none_or(|paths| paths.accepts(file.path.as_str()))
        });
        Ok(shown)
    }
}

/// Treats a missing folder as empty: it may hold virtual files.
fn or_nothing<T: Default>(found: Result<T>, is_shown: bool) -> Result<T> {
    match found {
        Err(error) if error.kind == ErrorKind::NotFound && is_shown => Ok(T::default()),
        other => other,
    }
}

struct PathSet(BTreeSet<String>);

impl PathFilter for PathSet {
    fn accepts(&self, path: &str) -> bool {
        self.0.contains(path)
    }
}
