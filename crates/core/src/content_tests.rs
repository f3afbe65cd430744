use super::*;

#[test]
fn the_hash_of_text_is_what_sha256sum_prints() {
    let hash = Content::Text("hello\n".into()).hash().unwrap().to_string();
    assert_eq!(hash, "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
    assert_eq!(hash.parse::<ContentHash>().unwrap().to_string(), hash);
}

#[test]
fn equivalent_json_has_the_same_hash() {
    let json = |text: &str| Content::Json(JsonText::parse(text.into()).unwrap());
    assert_eq!(json(r#"{"a": 1, "b": 2.0}"#).hash(), json(r#"{"b":2,"a":1}"#).hash());
    assert_ne!(json(r#"{"a":1}"#).hash(), Content::Text(r#"{"a":2}"#.into()).hash());
}

#[test]
fn stored_content_is_read_back_unchanged() {
    for content in [
        Content::Text("a\r\nb\0".into()),
        Content::Json(JsonText::parse(r#"{ "z" : 1.0 }"#.into()).unwrap()),
        Content::Bytes(vec![0xff, 0, 1]),
    ] {
        assert_eq!(Content::from_stored(content.form(), content.stored().into_owned()).unwrap(), content);
    }
}

#[test]
fn type_names_ignore_case_and_codes_are_inverse() {
    for kind in FileType::ALL {
        assert_eq!(kind.name().to_uppercase().parse::<FileType>().unwrap(), kind);
        assert_eq!(FileType::from_code(kind.code()), Some(kind));
    }
    assert!("documents".parse::<FileType>().is_err());
}

#[test]
fn a_hash_of_wrong_length_or_alphabet_is_refused() {
    for bad in ["", "a1b2c3d4...", &"g".repeat(64), &"é".repeat(32)] {
        assert_eq!(bad.parse::<ContentHash>().unwrap_err().kind, ErrorKind::InvalidArgument);
    }
}
