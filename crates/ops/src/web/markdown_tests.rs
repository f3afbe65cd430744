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
fn deep_pages_are_converted() {
    for (open, times) in [("<div>", 390), ("<blockquote><ul><li>", 120), ("<span><b id=x><i>", 120)] {
        let page = format!("{}text", open.repeat(times));
        assert!(from_html(&page).unwrap().contains("text"), "{open}");
    }
}
