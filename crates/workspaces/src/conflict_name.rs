//! Where a program's version of a file goes if somebody else has changed the file too.

use toolrest_core::{CallId, MAX_NAME_BYTES, WsPath};

/// How many versions of one file one call can leave beside it.
const MAX_CONFLICT_COPIES: usize = 1000;

/// The first path in a folder that is free for what a call made of a file of that name.
pub(crate) fn conflict_path(
    folder: &WsPath,
    name: &str,
    call: CallId,
    mut is_free: impl FnMut(&WsPath) -> bool,
) -> Option<WsPath> {
    let id = call.0.simple().to_string();
    // The end of the id is what nobody else has.
    let ending = format!(".conflict-{}", &id[id.len() - 8..]);
    let endings =
        (1..=MAX_CONFLICT_COPIES).map(|number| if number == 1 { ending.clone() } else { format!("{ending}-{number}") });
    let mut paths = endings.filter_map(|ending| {
        let room = MAX_NAME_BYTES - ending.len();
        let end = (0..=room.min(name.len())).rev().find(|end| name.is_char_boundary(*end))?;
        folder.join(&format!("{}{ending}", &name[..end])).ok()
    });
    paths.find(|path| is_free(path))
}
