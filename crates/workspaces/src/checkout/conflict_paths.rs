//! Paths for the program's version of what somebody else changed too.

use super::net_changes::NodeNow;
use std::collections::{BTreeMap, HashSet};
use toolrest_core::{CallId, MAX_NAME_BYTES, Result, ToolError, WsPath};

/// Maximum number of conflict copies of one file from one call.
const MAX_CONFLICT_COPIES: usize = 1000;

/// Returns the first free path in a folder for what a call wrote to a file of that name.
pub(crate) fn conflict_path(
    folder: &WsPath,
    name: &str,
    call: CallId,
    mut is_free: impl FnMut(&WsPath) -> Result<bool>,
) -> Result<Option<WsPath>> {
    let id = call.0.simple().to_string();
    // Ids begin with a time, so only their ends differ between calls.
    let ending = format!(".conflict-{}", &id[id.len() - 8..]);
    for number in 1..=MAX_CONFLICT_COPIES {
        let ending = if number == 1 { ending.clone() } else { format!("{ending}-{number}") };
        let room = MAX_NAME_BYTES - ending.len();
        let end = (0..=room.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        if let Ok(path) = folder.join(&format!("{}{ending}", &name[..end]))
            && is_free(&path)?
        {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Returns what is at a path of the workspace and stays there.
pub(super) type OccupiedBy<'a> = dyn Fn(&WsPath) -> Result<Option<NodeNow>> + 'a;

/// The conflict paths of one check-in.
pub(super) struct ConflictPaths {
    call: CallId,
    /// The conflict paths so far, by the paths that they stand for.
    given: BTreeMap<WsPath, WsPath>,
    taken: HashSet<WsPath>,
    /// Folders that are reached through folders only.
    passable: HashSet<WsPath>,
}

impl ConflictPaths {
    pub(super) fn new(call: CallId) -> Self {
        Self { call, given: BTreeMap::new(), taken: HashSet::new(), passable: HashSet::new() }
    }

    /// Returns the conflict paths, by the paths that they stand for.
    pub(super) fn into_given(self) -> BTreeMap<WsPath, WsPath> {
        self.given
    }

    /// Returns the path itself if only folders are above it; otherwise the path in the conflict copy of the folder.
    pub(super) fn usable_path(&mut self, path: &WsPath, occupied: &OccupiedBy<'_>) -> Result<WsPath> {
        self.folder_of(path, occupied)?.join(path.name())
    }

    /// Returns the conflict path of a file or folder.
    pub(super) fn conflict_copy(&mut self, path: &WsPath, occupied: &OccupiedBy<'_>) -> Result<WsPath> {
        if let Some(given) = self.given.get(path) {
            return Ok(given.clone());
        }
        let above = self.folder_of(path, occupied)?;
        let is_free = |path: &WsPath| Ok(!self.taken.contains(path) && occupied(path)?.is_none());
        let copy = conflict_path(&above, path.name(), self.call, is_free)?;
        let copy = copy.ok_or_else(|| ToolError::stale(path, None))?;
        self.given.insert(path.clone(), copy.clone());
        self.taken.insert(copy.clone());
        Ok(copy)
    }

    /// Returns the folder for a path. Where a file is in the way, that is the conflict copy of the folder.
    fn folder_of(&mut self, path: &WsPath, occupied: &OccupiedBy<'_>) -> Result<WsPath> {
        let Some(folder) = path.parent() else { return Ok(WsPath::root()) };
        let is_known = |above: &&str| *above == "/" || self.passable.contains(*above);
        let unknown: Vec<&str> = path.folders_above().rev().take_while(|above| !is_known(above)).collect();
        for above in unknown.into_iter().rev() {
            let above = WsPath::from_normal(above.to_owned());
            if !matches!(occupied(&above)?, None | Some(NodeNow::Folder)) {
                let copy = self.conflict_copy(&above, occupied)?;
                // Nothing is below a path that was free.
                return above.part_below(folder.as_str()).map_or(Ok(copy.clone()), |below| copy.descend(below));
            }
            self.passable.insert(above);
        }
        Ok(folder)
    }
}
