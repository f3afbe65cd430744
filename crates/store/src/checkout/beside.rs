//! Names for what a program wrote where somebody else did something too.

use super::tree::What;
use std::collections::HashMap;
use toolrest_core::{MAX_NAME_BYTES, Result, WsPath};

/// Knows what stands where.
pub(super) trait Occupied {
    fn at(&self, path: &WsPath) -> Option<What>;
}

/// Gives names that nothing has.
pub(super) struct Beside<'a> {
    /// What tells the names of one call from those of others.
    mark: &'a str,
    given: HashMap<WsPath, WsPath>,
}

impl<'a> Beside<'a> {
    pub(super) fn new(mark: &'a str) -> Self {
        Self { mark, given: HashMap::new() }
    }

    /// The path itself, if it leads through folders only; else one that does.
    pub(super) fn place_of(&mut self, path: &WsPath, occupied: &impl Occupied) -> Result<WsPath> {
        let above = self.folder_of(path, occupied)?;
        above.join(path.name())
    }

    /// A path beside this one.
    pub(super) fn beside(&mut self, path: &WsPath, occupied: &impl Occupied) -> Result<WsPath> {
        if let Some(given) = self.given.get(path) {
            return Ok(given.clone());
        }
        let above = self.folder_of(path, occupied)?;
        let mut number = 1;
        loop {
            let ending = if number == 1 { String::new() } else { format!("-{number}") };
            let ending = format!(".conflict-{}{ending}", self.mark);
            let mut end = path.name().len().min(MAX_NAME_BYTES - ending.len());
            while !path.name().is_char_boundary(end) {
                end -= 1;
            }
            let place = above.join(&format!("{}{ending}", &path.name()[..end]))?;
            if occupied.at(&place).is_none() && !self.given.values().any(|given| *given == place) {
                self.given.insert(path.clone(), place.clone());
                return Ok(place);
            }
            number += 1;
        }
    }

    /// The folder for a path: where a file stands in the way, one beside that.
    fn folder_of(&mut self, path: &WsPath, occupied: &impl Occupied) -> Result<WsPath> {
        let Some(folder) = path.parent() else { return Ok(WsPath::root()) };
        let mut way = path.ancestors();
        way.remove(0);
        for above in way {
            if !matches!(occupied.at(&above), None | Some(What::Folder)) {
                let place = self.beside(&above, occupied)?;
                // What is below a name that nothing has is free.
                return above.part_below(folder.as_str()).map_or(Ok(place.clone()), |below| place.descend(below));
            }
        }
        Ok(folder)
    }
}
