use super::*;
use toolrest_core::ErrorKind;
use toolrest_toolsets::Services;

#[test]
fn errors_of_every_toolset_are_told_by_their_message() {
    for toolset in toolrest_toolsets::all(&Services::none()).iter() {
        let error = ToolError::new(ErrorKind::Conflict, "the file has changed");
        let result = of_error(&error, toolset.dialect());
        assert_eq!(result.is_error, Some(true));
        let text = result.content[0].as_text().unwrap().text.clone();
        let expected = match toolset.name() {
            "agent" => "error conflict: the file has changed\nnext: Look at the current state and decide anew",
            _ => "the file has changed",
        };
        assert_eq!(text, expected, "{}", toolset.name());
    }
}

#[test]
fn an_error_shows_what_the_program_printed() {
    let error = ToolError::new(ErrorKind::Timeout, "too slow").detail("stdout", "first\n").detail("stderr", "");
    assert_eq!(with_output("too slow".to_owned(), &error), "too slow\nstdout:\nfirst\n");
}

#[test]
fn a_stored_answer_is_told_as_text_if_there_is_one() {
    let text = |result: &CallToolResult| result.content[0].as_text().unwrap().text.clone();
    let toolsets = toolrest_toolsets::all(&Services::none());
    let dialect = |name| toolsets.find(name).unwrap().dialect();
    let system = dialect("system");
    let told = of_stored(200, b"{\"ok\":true}", Some("+new".to_owned()), system);
    assert_eq!((text(&told).as_str(), told.is_error), ("+new", Some(false)));
    assert_eq!(text(&of_stored(200, b"{\"ok\":true}", None, system)), "{\"ok\":true}");
    let failed = of_stored(409, br#"{"ok":false,"error":{"code":"CONFLICT","message":"changed"}}"#, None, system);
    assert_eq!((text(&failed).as_str(), failed.is_error), ("changed", Some(true)));
    let of_agent = of_stored(200, br#"{"text":"== done","data":{}}"#, None, dialect("agent"));
    assert_eq!(text(&of_agent), "== done");
}
