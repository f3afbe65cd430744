use super::*;

fn json(text: &str) -> JsonText {
    JsonText::parse(text.into()).unwrap()
}

#[test]
fn a_document_is_a_string_or_an_object_with_text() {
    assert_eq!(fit(&json(r#""hi""#), FileType::Document).unwrap(), Content::Text("hi".into()));
    assert_eq!(fit(&json(r#"{"text":"hi"}"#), FileType::Document).unwrap(), Content::Text("hi".into()));
    let more = r#"{"text":"hi","n":1.0}"#;
    assert_eq!(fit(&json(more), FileType::Document).unwrap(), Content::Json(json(more)));
    for bad in
        ["1", "null", "[]", "{}", r#"{"text":1}"#, r#"{"n":"x"}"#, r#""a\u0000b""#, r#"{"text":"a\u0000b","n":1}"#]
    {
        let error = fit(&json(bad), FileType::Document).unwrap_err();
        assert_eq!((error.kind, error.argument_at_fault()), (ErrorKind::WrongType, Some("content")), "{bad}");
    }
}

#[test]
fn other_types_take_objects_only() {
    assert!(fit(&json(r#"{"elements":[]}"#), FileType::Canvas).is_ok());
    for bad in [r#""text""#, "[]", "1", "null"] {
        assert!(fit(&json(bad), FileType::Canvas).is_err(), "{bad}");
    }
}

#[test]
fn an_edited_text_is_written_back_with_the_other_fields() {
    let path = WsPath::root();
    let content = Content::Json(json(r#"{"a":1.0,"text":"old","z":[1e5]}"#));
    let editable = Editable::of(content, FileType::Document, &path, 1000).unwrap();
    assert_eq!(editable.text, "old");
    assert_eq!(editable.put_back("new".into()).unwrap(), Content::Json(json(r#"{"a":1.0,"text":"new","z":[1e5]}"#)));
}

#[test]
fn an_edit_that_makes_a_canvas_invalid_json_is_refused() {
    let path = WsPath::root();
    let canvas = || Editable::of(Content::Json(json(r#"{"x":1}"#)), FileType::Canvas, &path, 1000).unwrap();
    assert_eq!(canvas().text, "{\n  \"x\": 1\n}\n");
    assert_eq!(canvas().put_back("{\n  \"x\": 2.50\n}\n".into()).unwrap(), Content::Json(json(r#"{"x":2.50}"#)));
    for bad in ["{\"x\": }", "[1]", ""] {
        assert_eq!(canvas().put_back(bad.into()).unwrap_err().kind, ErrorKind::WrongType, "{bad}");
    }
}

#[test]
fn bytes_are_not_edited_as_text() {
    let error = Editable::of(Content::Bytes(vec![0; 5]), FileType::File, &WsPath::root(), 1000).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Binary);
}

#[test]
fn duplicate_keys_are_refused_at_any_depth() {
    for bad in [r#"{"text":"a","text":5}"#, r#"{"text":"a","m":[{"k":1,"k":2}]}"#] {
        let error = fit(&json(bad), FileType::Document).unwrap_err();
        assert_eq!(error.argument_at_fault(), Some("content"), "{bad}");
        assert!(error.message.contains("twice"), "{}", error.message);
    }
    assert!(fit(&json(r#"{"a":1,"a":2}"#), FileType::Canvas).is_err());
}

#[test]
fn json_that_is_too_long_when_formatted_is_refused_before_formatting() {
    let deep = format!("{}{}{}", "{\"a\":[".repeat(50), "0,".repeat(1000) + "0", "]}".repeat(50));
    let error = Editable::of(Content::Json(json(&deep)), FileType::Canvas, &WsPath::root(), 10_000).err().unwrap();
    assert_eq!(error.kind, ErrorKind::PayloadTooLarge);
}

#[test]
fn a_nul_cannot_be_edited_into_a_document() {
    for content in [Content::Text("a".into()), Content::Json(json(r#"{"text":"a","n":1}"#))] {
        let editable = Editable::of(content, FileType::Document, &WsPath::root(), 1000).unwrap();
        assert_eq!(editable.put_back("a\0".into()).unwrap_err().kind, ErrorKind::WrongType);
    }
}

#[test]
fn an_edit_that_duplicates_a_json_key_is_refused() {
    let editable =
        Editable::of(Content::Json(json(r#"{"a":1,"b":2}"#)), FileType::Canvas, &WsPath::root(), 1_000).unwrap();
    let error = editable.put_back(r#"{"a": 1, "a": 2}"#.to_owned()).unwrap_err();
    assert_eq!((error.kind, error.argument_at_fault()), (ErrorKind::WrongType, Some("content")));
    assert!(error.message.contains("\"a\" occurs twice"), "{error}");
}
