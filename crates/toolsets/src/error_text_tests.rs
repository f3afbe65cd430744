use super::*;
fn path(text: &str) -> WsPath {
    WsPath::posix(text).unwrap()
}

fn error_text(message: &str, paths: &[&str]) -> String {
    let error =
        ToolError::new(ErrorKind::NotFound, message).with_call_paths(paths.iter().map(|text| path(text)).collect());
    describe_error(&error, PathForm::Relative, "").message
}

#[test]
fn paths_in_messages_become_relative() {
    for (message, shown) in [
        ("File not found: /a/b.txt", "File not found: a/b.txt"),
        ("Folder not found: /a; create it first", "Folder not found: a; create it first"),
        ("/a/b.txt: not found", "a/b.txt: not found"),
        ("It is /a/b.txt.", "It is a/b.txt."),
        ("/a/b.txt.bak is there", "/a/b.txt.bak is there"),
        ("/x/a/b.txt is there", "/x/a/b.txt is there"),
        ("/ is a folder", ". is a folder"),
    ] {
        assert_eq!(error_text(message, &["/a/b.txt"]), shown);
    }
}

#[test]
fn quoted_file_content_is_not_changed() {
    let message = "/a.txt: not found; the file has:\nopen(\"/a.txt\")";
    assert_eq!(error_text(message, &["/a.txt"]), "a.txt: not found; the file has:\nopen(\"/a.txt\")");
}

#[test]
fn paths_in_details_become_relative() {
    let error = ToolError::file_not_found(&path("/a/b")).with_similar_paths(vec![path("/a/c")]);
    let error_text = describe_error(&error, PathForm::Relative, "");
    assert_eq!(
        (error_text.message.as_str(), &error_text.details["path"]),
        ("File not found: a/b", &Value::from("a/b"))
    );
    assert_eq!(error_text.hint.as_deref(), Some("Did you mean a/c?"));
    assert_eq!(describe_error(&error, PathForm::FromRoot, "").hint.as_deref(), Some("Did you mean /a/c?"));
}

#[test]
fn paths_in_notices_become_relative() {
    let error = ToolError::file_not_found(&path("/a/b"));
    let notice = Notice::of_error(&error, |why| format!("Its last changes were not kept: {why}"));
    assert_eq!(relative_notice(&notice), "Its last changes were not kept: File not found: a/b");
    assert_eq!(relative_notice(&Notice::about(&path("/a"), "/a was changed in place")), "a was changed in place");
    assert_eq!(relative_notice(&"/a is no path here".to_owned().into()), "/a is no path here");
}
