use super::*;

#[test]
fn only_addresses_of_the_console_are_its_pages() {
    for page in ["/", "/login", "/register", "/welcome", "/workspaces", "/w/01a1/activity", "/w/01a1/files/api/v1"] {
        assert!(is_page(page), "{page}");
    }
    for other in ["/api/v1/workspaces", "/api/nothing", "/w", "/mcp", "/assets/a.js", "/sign-in", "/health", "/login/x"]
    {
        assert!(!is_page(other), "{other}");
    }
}

#[test]
fn an_encoding_is_used_if_the_browser_accepts_it() {
    let headers = |value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_str(value).unwrap());
        headers
    };
    assert!(accepts(&headers("gzip, deflate, br"), "br"));
    assert!(accepts(&headers("gzip;q=0.5,BR"), "br"));
    assert!(!accepts(&headers("gzip, br;q=0"), "br"));
    assert!(!accepts(&headers("brotli"), "br"));
    assert!(!accepts(&HeaderMap::new(), "gzip"));
}

#[test]
fn every_file_of_the_console_has_a_media_type() {
    for asset in ASSETS {
        assert_ne!(media_type(asset.name), "application/octet-stream", "{}", asset.name);
    }
}
