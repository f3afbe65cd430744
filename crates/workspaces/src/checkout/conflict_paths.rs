//! Names for what a program wrote where somebody else did something too.

use super::tree::RowKind;
use crate::conflict_name::conflict_path;
use std::collections::{HashMap, HashSet};
use toolrest_core::{CallId, Result, ToolError, WsPath};

/// Knows what stands where.
pub(super) trait OccupiedPaths {
    fn at(&self, path: &WsPath) -> Option<RowKind>;
}

/// Gives names that nothing has.
pub(super) struct ConflictPaths {
    /// The call whose program it is.
    call: CallId,
    given: HashMap<WsPath, WsPath>,
    /// The names that were given.
    taken: HashSet<WsPath>,
    /// Folders that only folders lead to.
    passable: HashSet<WsPath>,
}

impl ConflictPaths {
    pub(super) fn new(call: CallId) -> Self {
        Self { call, given: HashMap::new(), taken: HashSet::new(), passable: HashSet::new() }
    }

    /// The path itself, if it leads through folders only; else one that does.
    pub(super) fn usable_path(&mut self, path: &WsPath, occupied: &impl OccupiedPaths) -> Result<WsPath> {
        let above = self.folder_of(path, occupied)?;
        above.join(path.name())
    }

    /// A path beside this one.
    pub(super) fn conflict_copy(&mut self, path: &WsPath, occupied: &impl OccupiedPaths) -> Result<WsPath> {
        if let Some(given) = self.given.get(path) {
            return Ok(given.clone());
        }
        let above = self.folder_of(path, occupied)?;
        let is_free = |place: &WsPath| occupied.at(place).is_none() && !self.taken.contains(place);
        let place = conflict_path(&above, path.name(), self.call, is_free);
        let place = place.ok_or_else(|| ToolError::stale(path, None))?;
        self.given.insert(path.clone(), place.clone());
        self.taken.insert(place.clone());
        Ok(place)
    }

    /// The folder for a path: where a file stands in the way, one beside that.
    fn folder_of(&mut self, path: &WsPath, occupied: &impl OccupiedPaths) -> Result<WsPath> {
        let Some(folder) = path.parent() else { return Ok(WsPath::root()) };
        let is_known = |above: &&str| *above == "/" || self.passable.contains(*above);
        let unknown: Vec<&str> = path.folders_above().rev().take_while(|above| !is_known(above)).collect();
        for above in unknown.into_iter().rev() {
            let above = WsPath::from_normal(above.to_owned());
            if !matches!(occupied.at(&above), None | Some(RowKind::Folder)) {
                let place = self.conflict_copy(&above, occupied)?;
                // What is below a name that nothing has is free.
                return above.part_below(folder.as_str()).map_or(Ok(place.clone()), |below| place.descend(below));
            }
            self.passable.insert(above);
        }
        Ok(folder)
    }
}
