use super::*;

fn names(listen: &str, hosts: &[&str], origins: &[&str]) -> HostRules {
    let mut settings = Settings::default();
    settings.server.listen = listen.parse().unwrap();
    settings.server.allowed_hosts = hosts.iter().map(|&host| host.to_owned()).collect();
    settings.server.allowed_origins = origins.iter().map(|&origin| origin.to_owned()).collect();
    HostRules::new(&settings, settings.server.listen)
}

fn request(headers: &[(&str, &str)]) -> Request<()> {
    let request = headers.iter().fold(Request::get("/health"), |request, (name, value)| request.header(*name, *value));
    request.body(()).unwrap()
}

#[track_caller]
fn assert_hosts(names: &HostRules, good: &[&str], bad: &[&str]) {
    for host in good {
        assert!(names.check(&request(&[("host", host)])).is_ok(), "{host} is refused");
    }
    for host in bad {
        let refusal = names.check(&request(&[("host", host)])).err().unwrap_or_else(|| panic!("{host} passes"));
        assert_eq!(refusal.kind, ErrorKind::Forbidden, "{host}");
    }
}

#[test]
fn on_loopback_only_loopback_hosts_pass() {
    let good = [
        "localhost",
        "localhost:3000",
        "LOCALHOST.",
        "app.localhost:3000",
        "127.0.0.1:3000",
        "127.9.9.9",
        "[::1]:3000",
    ];
    let bad = [
        "evil.example",
        "evil.example:3000",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1:3000",
        "0.0.0.0:3000",
        "[::]:3000",
        "[2001:db8::1]",
        "notlocalhost",
        "2130706433",
        "localhost:",
        "localhost:x",
        "localhost@evil.example",
        "user@localhost",
        "localhost evil",
        "",
        "::1",
        "[::1",
        "localhost:99999",
    ];
    assert_hosts(&names("127.0.0.1:3000", &[], &[]), &good, &bad);
    assert_hosts(&names("[::1]:3000", &[], &[]), &good, &bad);
}

#[test]
fn on_other_addresses_ip_addresses_pass_and_names_must_be_listed() {
    let good = ["10.0.0.1:3000", "[2001:db8::1]:3000", "localhost:3000"];
    assert_hosts(&names("0.0.0.0:3000", &[], &[]), &good, &["tools.example.com", "evil.example"]);
    let listed = names("0.0.0.0:3000", &["tools.example.com", "*.example.org"], &[]);
    assert_hosts(
        &listed,
        &["tools.example.com", "TOOLS.example.com:8443", "a.example.org", "a.b.example.org"],
        &["example.com", "a.tools.example.com", "example.org", "evilexample.org"],
    );
    assert_hosts(&names("0.0.0.0:3000", &["*"], &[]), &["anything.example"], &["not a host"]);
    assert_hosts(&names("127.0.0.1:3000", &["tools.example.com"], &[]), &["tools.example.com"], &["10.0.0.1"]);
}

#[test]
fn a_request_names_one_host() {
    let names = names("127.0.0.1:3000", &[], &[]);
    let twice = names.check(&request(&[("host", "localhost"), ("host", "localhost")])).err().unwrap();
    assert_eq!(twice.kind, ErrorKind::InvalidArgument);
    assert_eq!(names.check(&request(&[])).err().unwrap().kind, ErrorKind::InvalidArgument);
    let mut old = request(&[]);
    *old.version_mut() = Version::HTTP_10;
    assert!(names.check(&old).is_ok());
    let target = |uri: &str| Request::get(uri).header("host", "localhost:3000").body(()).unwrap();
    assert!(names.check(&target("http://127.0.0.1:3000/health")).is_ok());
    assert!(names.check(&target("http://evil.example/health")).is_err());
}

#[test]
fn only_the_servers_own_pages_and_listed_ones_pass() {
    let loopback = names("127.0.0.1:3000", &[], &["https://console.example.com"]);
    let check = |host: &str, origin: &str| loopback.check(&request(&[("host", host), ("origin", origin)]));
    for (host, origin) in [
        ("localhost:3000", "http://localhost:3000"),
        ("127.0.0.1:3000", "http://127.0.0.1:3000"),
        ("localhost", "https://localhost"),
    ] {
        assert!(check(host, origin).is_ok_and(|listed| listed.is_none()), "{origin} at {host}");
    }
    assert!(check("localhost:3000", "https://console.example.com").is_ok_and(|listed| listed.is_some()));
    for origin in [
        "http://localhost",
        "http://localhost:8080",
        "http://127.0.0.1:3000",
        "https://evil.example",
        "null",
        "",
        "http://console.example.com",
        "https://console.example.com.evil.example",
        "file://",
        "localhost:3000",
        "http://localhost:3000/",
        "chrome-extension://abcdef",
    ] {
        assert!(check("localhost:3000", origin).is_err(), "{origin:?} passes");
    }
    let twice =
        request(&[("host", "localhost:3000"), ("origin", "http://localhost:3000"), ("origin", "https://evil.example")]);
    assert!(loopback.check(&twice).is_err());
    // Behind a proxy that speaks HTTPS.
    let public = names("0.0.0.0:3000", &["tools.example.com"], &[]);
    let request = request(&[("host", "tools.example.com"), ("origin", "https://tools.example.com")]);
    assert!(public.check(&request).is_ok());
}

#[test]
fn invalid_entries_of_the_settings_are_refused() {
    for pattern in ["", "*.", "*.10.0.0.1", "a b", "https://a", "example.com:80", "**"] {
        assert_eq!(HostPattern::parse(pattern), None, "{pattern}");
    }
    for origin in ["", "*", "example.com", "ftp://example.com", "https://", "https://a/b", "null"] {
        assert_eq!(Origin::parse(origin), None, "{origin}");
    }
}
