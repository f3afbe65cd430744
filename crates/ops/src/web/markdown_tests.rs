use super::*;

#[test]
fn a_page_becomes_markdown_without_its_scripts() {
    let page = "<html><head><title>T</title><style>p{}</style></head><body><h1>One</h1>\
        <p>Some <b>bold</b> text and <a href=\"/x\">a link</a>.</p><script>alert(1)</script><ul><li>a</li></ul></body>";
    let text = from_html(page).unwrap();
    assert!(text.starts_with("# One\n\nSome **bold** text and [a link](/x)."), "{text}");
    assert!(!text.contains("alert") && !text.contains("p{}"), "{text}");
}

#[test]
fn a_page_at_the_maximum_depth_is_converted_and_a_deeper_one_refused() {
    let nested = |depth: usize| format!("{}text{}", "<div>".repeat(depth), "</div>".repeat(depth));
    assert_eq!(from_html(&nested(MAX_DEPTH - 10)).unwrap(), "text");
    for depth in [MAX_DEPTH + 1, 200_000] {
        let error = from_html(&nested(depth)).unwrap_err();
        assert!(error.message.contains("deep within each other"), "{error}");
    }
    // Other elements have other code paths.
    let lists = "<blockquote><ul><li>".repeat(120);
    assert!(from_html(&lists).is_ok());
}
