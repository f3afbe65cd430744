use super::*;

#[test]
fn the_error_for_a_binary_file_names_the_download_route() {
    let error = ToolError::new(ErrorKind::Binary, "/a.bin holds 3 bytes that are not text");
    let body: Value = serde_json::from_slice(&BackendDialect.failure(&error, "c")).unwrap();
    let remediation = body["error"]["remediation"].as_str().unwrap();
    assert!(remediation.contains("/content/{path}"), "{body}");
    assert!(!body.to_string().contains("base64"), "no tool of this toolset reads base64: {body}");
}
