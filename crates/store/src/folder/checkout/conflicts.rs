//! Where a program's version of a file goes if somebody else has changed the file too.

use toolrest_core::{CallId, MAX_NAME_BYTES, WsPath};

/// How many versions of one file one call can leave beside it.
const BESIDE_MOST: usize = 1000;

/// The first path beside a file that is free for what this call made of it.
pub(super) fn beside(path: &WsPath, call: CallId, is_free: impl Fn(&WsPath) -> bool) -> Option<WsPath> {
    let id = call.0.simple().to_string();
    // The end of the id is what nobody else has.
    let ending = format!(".conflict-{}", &id[id.len() - 8..]);
    let folder = path.parent()?;
    let endings =
        (1..=BESIDE_MOST).map(|number| if number == 1 { ending.clone() } else { format!("{ending}-{number}") });
    let mut paths = endings.filter_map(|ending| {
        let mut stem = path.name();
        while stem.len() + ending.len() > MAX_NAME_BYTES {
            let (last, _) = stem.char_indices().next_back()?;
            stem = &stem[..last];
        }
        folder.join(&format!("{stem}{ending}")).ok()
    });
    paths.find(is_free)
}
