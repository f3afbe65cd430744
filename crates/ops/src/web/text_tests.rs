use super::*;
use http::HeaderValue;

fn decoded(content_type: &'static str, content: &[u8]) -> Option<String> {
    let fields = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))]);
    decode(&fields, content)
}

#[test]
fn a_text_is_decoded_by_its_charset() {
    let cases: [(&'static str, &[u8], &str); 10] = [
        ("text/plain; charset=utf-8", "grüße".as_bytes(), "grüße"),
        ("text/plain; charset=ISO-8859-1", b"gr\xfc\xdfe", "grüße"),
        ("text/plain; charset=\"windows-1251\"", b"\xef\xf0\xe8\xe2\xe5\xf2", "привет"),
        ("text/html; charset=Shift_JIS", b"\x93\xfa\x96\x7b", "日本"),
        ("text/html", b"<meta charset='windows-1251'>\xef\xf0\xe8", "<meta charset='windows-1251'>при"),
        (
            "text/html",
            b"<META http-equiv=Content-Type content=\"text/html; charset=gbk\">\xc4\xe3",
            "<META http-equiv=Content-Type content=\"text/html; charset=gbk\">你",
        ),
        (
            "application/xml",
            b"<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\xfc",
            "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>ü",
        ),
        // A byte order mark counts more than the head, and is no part of the text.
        ("text/plain; charset=iso-8859-1", b"\xef\xbb\xbfgr\xc3\xbc", "grü"),
        ("text/plain", b"\xff\xfeg\0r\0", "gr"),
        ("text/plain; charset=unknown", b"gr\xfc\xdfe", "grüße"),
    ];
    for (content_type, content, text) in cases {
        assert_eq!(decoded(content_type, content).as_deref(), Some(text), "{content_type}");
    }
}

#[test]
fn what_is_not_text_is_told_from_it() {
    assert_eq!(decoded("image/png", b"\x89PNG"), None);
    assert_eq!(decoded("image/png", b"letters"), None);
    assert_eq!(decoded("text/plain", b"a\0b"), None);
    assert_eq!(decoded("application/octet-stream", b"#!/bin/sh\n").as_deref(), Some("#!/bin/sh\n"));
    assert_eq!(decoded("application/octet-stream", b"\xff\xd8\xff"), None);
    assert_eq!(decode(&HeaderMap::new(), b"{}").as_deref(), Some("{}"));
    assert_eq!(decoded("application/vnd.api+json", b"{}").as_deref(), Some("{}"));
}
