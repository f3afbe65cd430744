//! A map of paths that can be queried by ancestors and descendants.

use std::{
    collections::BTreeMap,
    ops::Bound,
    path::{Path, PathBuf},
};

pub(super) struct Paths<T>(BTreeMap<PathBuf, T>);

impl<T> Paths<T> {
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn insert(&mut self, path: PathBuf, value: T) {
        self.0.insert(path, value);
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.0.remove(path);
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    /// Returns the entry of a path or of its nearest ancestor.
    pub(super) fn at_or_above(&self, path: &Path) -> Option<(&Path, &T)> {
        path.ancestors().find_map(|above| self.0.get_key_value(above)).map(|(above, value)| (&**above, value))
    }

    pub(super) fn cover(&self, path: &Path) -> bool {
        self.at_or_above(path).is_some()
    }

    pub(super) fn any_at_or_below(&self, path: &Path) -> bool {
        // Paths are sorted by their names, so the paths below a path directly follow it.
        self.0
            .range::<Path, _>((Bound::Included(path), Bound::Unbounded))
            .next()
            .is_some_and(|(next, _)| next.starts_with(path))
    }

    /// Whether the map contains the path, an ancestor or a descendant.
    pub(super) fn touch(&self, path: &Path) -> bool {
        self.cover(path) || self.any_at_or_below(path)
    }
}
