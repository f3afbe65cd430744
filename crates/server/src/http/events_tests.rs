use super::*;

#[test]
fn the_wanted_types_are_parsed() {
    let all = Kinds::parse(None).unwrap();
    assert_eq!(Kinds::parse(Some("file,commit,call,approval")).unwrap(), all);
    let calls = Kinds::parse(Some("call")).unwrap();
    assert_eq!(calls, Kinds { sources: FeedSources { calls: true, ..FeedSources::NONE }, files: false });
    for text in ["", "calls", "commit,", "commit file"] {
        assert!(Kinds::parse(Some(text)).is_err(), "{text}");
    }
}

#[test]
fn the_header_of_a_reconnecting_browser_precedes_the_query() {
    let query = HashMap::from([("after".to_owned(), "s1.2".to_owned())]);
    let mut headers = HeaderMap::new();
    assert_eq!(cursor(&headers, &HashMap::new()).unwrap(), None);
    assert_eq!(cursor(&headers, &query).unwrap(), Some(FeedCursor("s1.2".to_owned())));
    headers.insert(&LAST_EVENT_ID, "s3.4".parse().unwrap());
    assert_eq!(cursor(&headers, &query).unwrap(), Some(FeedCursor("s3.4".to_owned())));
}
