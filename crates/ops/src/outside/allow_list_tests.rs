use super::*;
use proptest::prelude::*;

fn allows(entry: &str, authority: &str) -> bool {
    let (host, port) = split(authority).unwrap();
    AllowList::new([entry]).unwrap().allows(&Host::parse(host).unwrap(), port.unwrap_or(443))
}

#[test]
fn a_name_without_a_port_allows_80_and_443() {
    assert!(allows("pypi.org", "pypi.org:443") && allows("pypi.org", "pypi.org:80"));
    for other in ["pypi.org:22", "www.pypi.org:443", "xpypi.org:443", "pypi.org.evil.com:443", "org:443"] {
        assert!(!allows("pypi.org", other), "{other}");
    }
}

#[test]
fn case_and_a_final_dot_are_ignored() {
    assert!(allows("PyPI.org", "pypi.ORG.:443") && allows("pypi.org.", "pypi.org"));
}

#[test]
fn a_star_allows_everything_below_and_not_the_name_itself() {
    assert!(allows("*.example.com", "a.example.com") && allows("*.example.com", "a.b.example.com"));
    for other in ["example.com", "xexample.com", "a.example.com.evil.com"] {
        assert!(!allows("*.example.com", other), "{other}");
    }
}

#[test]
fn a_port_allows_only_itself() {
    assert!(allows("example.com:8443", "example.com:8443") && allows("*.example.com:8443", "a.example.com:8443"));
    assert!(!allows("example.com:8443", "example.com:443"));
}

#[test]
fn addresses_are_allowed_only_if_they_are_listed() {
    assert!(allows("192.0.2.7", "192.0.2.7") && allows("[2001:db8::1]:8443", "[2001:DB8:0::1]:8443"));
    assert!(allows("2001:db8::1", "[2001:db8::1]:443"));
    assert!(!allows("*.2.7", "192.0.2.7") && !allows("192.0.2.7", "192.0.2.8"));
    assert!(!allows("192.0.2.7", "[::ffff:192.0.2.7]"));
}

#[test]
fn an_empty_list_allows_nothing() {
    assert!(!AllowList::default().allows(&Host::Name("example.com".into()), 443));
}

#[test]
fn a_text_that_is_not_a_host_is_refused() {
    let entries = [
        "",
        "*.",
        ".",
        "a..b",
        "*.*.com",
        "a*.com",
        "http://a.com",
        "a.com/",
        "a@b.com",
        "a b",
        "a:0",
        "a:x",
        "a:+1",
        "a:65536",
        "a:",
        "[a]",
        "[1.2.3.4]",
        "[::1",
        "münchen.de",
        "*.1.2.3.4",
    ];
    for entry in entries {
        let refusal = AllowList::new([entry]).expect_err(entry);
        assert!(refusal.to_string().contains("*.example.com"), "{refusal}");
    }
}

proptest! {
    #[test]
    fn a_host_is_parsed_the_same_after_writing(text in "[a-zA-Z0-9.:\\[\\]_-]{1,30}") {
        if let Some(host) = Host::parse(&text) {
            let shown = host.to_string();
            let bracketed = if shown.contains(':') { format!("[{shown}]") } else { shown };
            prop_assert_eq!(Host::parse(&bracketed), Some(host));
        }
    }
}

#[test]
fn a_star_alone_allows_every_name_and_no_address() {
    assert!(allows("*", "pypi.org:443") && !allows("*", "pypi.org:22") && !allows("*", "192.0.2.7:443"));
}

#[test]
fn a_list_within_another_allows_what_both_do() {
    let list = |entries: &[&str]| AllowList::new(entries.iter().copied()).unwrap();
    let both = list(&["pypi.org", "example.com"]).within(list(&["*.org", "pypi.org"])).within(list(&["*"]));
    let allows = |name: &str| both.allows(&Host::parse(name).unwrap(), 443);
    assert!(allows("pypi.org") && !allows("example.com") && !allows("crates.org"));
    assert!(!both.is_empty() && list(&["pypi.org"]).within(AllowList::default()).is_empty());
}

#[test]
fn a_list_covers_the_entries_whose_hosts_it_allows() {
    let list = AllowList::new(["pypi.org", "*.example.com", "example.net:8443", "192.0.2.7"]).unwrap();
    for entry in [
        "pypi.org",
        "PyPI.org.",
        "pypi.org:443",
        "*.example.com",
        "a.example.com",
        "*.a.example.com:80",
        "example.net:8443",
        "192.0.2.7:443",
    ] {
        assert!(list.covers(entry).unwrap(), "{entry} is not covered");
    }
    for entry in [
        "*",
        "*.org",
        "files.pypi.org",
        "pypi.org:8080",
        "example.com",
        "*.com",
        "badexample.com",
        "example.net",
        "192.0.2.8",
        "*.pypi.org",
    ] {
        assert!(!list.covers(entry).unwrap(), "{entry} is covered");
    }
    assert!(list.covers("no host").is_err());
    let both = AllowList::new(["*"]).unwrap().within(list);
    assert!(both.covers("a.example.com").unwrap() && !both.covers("crates.io").unwrap());
    let all = AllowList::new(["*"]).unwrap();
    assert!(all.covers("*").unwrap() && all.covers("*.example.com").unwrap() && !all.covers("192.0.2.7").unwrap());
    assert!(!all.covers("example.com:8080").unwrap() && !AllowList::default().covers("pypi.org").unwrap());
}
