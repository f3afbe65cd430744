#![allow(clippy::unwrap_used)]

use super::*;

fn path() -> WsPath {
    WsPath::posix("/a/b").unwrap()
}

#[test]
fn variants_become_the_tool_errors_that_callers_know() {
    let hash = ContentHash::of(b"content");
    for (error, expected) in [
        (
            StoreError::LostRace,
            ToolError::new(ErrorKind::Conflict, "Another change was made at the same time; try again")
                .detail("lost_race", true),
        ),
        (StoreError::FileNotFound(path()), ToolError::file_not_found(&path())),
        (StoreError::FolderNotFound(path()), ToolError::folder_not_found(&path())),
        (StoreError::not_found("Chat", 7), ToolError::new(ErrorKind::NotFound, "Chat not found: 7")),
        (StoreError::stale(path(), Some(hash)), ToolError::stale(path(), Some(hash))),
        (
            StoreError::NotAMember,
            ToolError::new(ErrorKind::Forbidden, "Access forbidden: User is not a member of this workspace"),
        ),
        (
            StoreError::RoleTooLow { needed: Role::Editor, actual: Role::Viewer },
            ToolError::new(ErrorKind::Forbidden, "Access forbidden: this needs the role editor, yours is viewer"),
        ),
        (
            StoreError::QuotaExceeded { limit: 2, used: 1, setting: "quotas.x", message: "too much".into() },
            ToolError::quota(2, 1, "quotas.x", "too much"),
        ),
        (StoreError::StorageFull("full"), ToolError::new(ErrorKind::StorageFull, "full")),
    ] {
        let kind = error.kind();
        let translated = ToolError::from(error);
        assert_eq!(translated, expected);
        assert_eq!(kind, expected.kind);
    }
}

#[test]
fn a_refusal_is_translated_back_unchanged() {
    let refusal = ToolError::argument("path", "wrong").with_call_paths(vec![path()]);
    assert_eq!(ToolError::from(StoreError::from(refusal.clone())), refusal);
}

#[test]
fn the_cause_of_an_internal_error_is_kept_and_not_shown_to_callers() {
    let error = StoreError::internal("a row has no id");
    assert_eq!(error.source().unwrap().to_string(), "a row has no id");
    let translated = ToolError::from(error);
    assert_eq!((translated.kind, translated.cause()), (ErrorKind::Internal, Some("a row has no id")));
    assert!(!translated.message.contains("row"));
}
