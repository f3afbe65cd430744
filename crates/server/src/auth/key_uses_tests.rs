use super::*;
use toolrest_core::{ActionSet, ToolsetMask, WorkspaceId};

#[test]
fn each_key_is_stored_once_within_the_interval() {
    let uses = KeyUses::default();
    let new = || Key {
        id: KeyId::new(),
        workspace: WorkspaceId::new(),
        actions: ActionSet::all(),
        toolsets: ToolsetMask::default(),
    };
    let (first, second) = (new(), new());
    for _ in 0..3 {
        uses.note(first);
    }
    assert_eq!(uses.take().iter().map(|used| used.key).collect::<Vec<_>>(), [first.id]);
    uses.note(first);
    uses.note(second);
    assert_eq!(uses.take().iter().map(|used| used.key).collect::<Vec<_>>(), [second.id]);
    assert!(uses.take().is_empty());
}
