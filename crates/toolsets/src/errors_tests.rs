use super::*;

/// The codes of specification 002, those that the contract adds, and those for the limits of a server.
const SYSTEM_CODES: [&str; 18] = [
    "INVALID_PATH",
    "FILE_NOT_FOUND",
    "PERMISSION_DENIED",
    "TIMEOUT",
    "EXECUTION_ERROR",
    "CONFLICT",
    "NOT_EMPTY",
    "BINARY_FILE",
    "INVALID_ARGUMENT",
    "SANDBOX_UNAVAILABLE",
    "UNAVAILABLE",
    "APPROVAL_REQUIRED",
    "APPROVAL_DENIED",
    "NOT_CONFIGURED",
    "NETWORK_ERROR",
    "RATE_LIMITED",
    "QUOTA_EXCEEDED",
    "STORAGE_FULL",
];

#[test]
fn the_system_toolset_uses_exactly_the_codes_of_its_specification() {
    let used: Vec<&str> = ErrorKind::ALL.map(system_code).to_vec();
    assert_eq!(used.iter().find(|code| !SYSTEM_CODES.contains(code)), None);
    assert_eq!(SYSTEM_CODES.iter().find(|code| !used.contains(code)), None);
    assert_eq!(system_code(ErrorKind::NotConfigured), "NOT_CONFIGURED");
    assert_eq!(system_code(ErrorKind::ApprovalDenied), "APPROVAL_DENIED");
}

#[test]
fn the_error_page_lists_the_codes_for_server_limits() {
    let page = reference();
    for code in ["`QUOTA_EXCEEDED`", "`STORAGE_FULL`"] {
        assert!(page.contains(code), "{code}");
    }
}
