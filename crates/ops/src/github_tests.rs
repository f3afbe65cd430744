use super::*;

fn at(api: &str) -> GitHub {
    GitHub::new(&HttpClient::default(), GitHubOptions::new(HttpUrl::parse(api).unwrap()), Arc::new(NoTokens))
}

#[test]
fn addresses_of_pull_requests_are_read() {
    let public = at("https://api.github.com");
    for address in [
        "https://github.com/octo/demo/pull/17",
        "https://GitHub.com/octo/demo/pull/17/",
        "https://github.com/octo/demo/pull/17/files#diff-1",
    ] {
        assert_eq!(public.pull_request("pr_url", address).unwrap().to_string(), "octo/demo#17", "{address}");
    }
    let enterprise = at("https://git.example.com/api/v3");
    assert!(enterprise.pull_request("pr_url", "https://git.example.com/a/b.c/pull/1").is_ok());
    assert!(enterprise.pull_request("pr_url", "https://github.com/octo/demo/pull/1").is_err());
}

#[test]
fn other_addresses_are_refused() {
    let public = at("https://api.github.com");
    for address in [
        "",
        "octo/demo#17",
        "http://github.com/octo/demo/pull/17",
        "https://github.com.evil.example/octo/demo/pull/17",
        "https://evil.example/github.com/octo/demo/pull/17",
        "https://github.com@evil.example/octo/demo/pull/17",
        "https://api.github.com/octo/demo/pull/17",
        "https://github.com:8443/octo/demo/pull/17",
        "https://github.com/octo/demo/issues/17",
        "https://github.com/octo/demo/pull/0",
        "https://github.com/octo/demo/pull/x",
        "https://github.com/octo/demo/pull/17/../../../user",
        "https://github.com/octo/demo/pull/99999999999999999999",
        "https://github.com/octo/de%2Fmo/pull/17",
        "https://github.com/../demo/pull/17",
        "https://github.com/octo/demo/pull/17/merge",
    ] {
        let error = public.pull_request("pr_url", address).unwrap_err();
        assert_eq!(error.argument_at_fault(), Some("pr_url"), "{address}");
    }
}

#[test]
fn names_of_repositories_are_read_strictly() {
    assert_eq!(RepositoryName::parse("repo_name", "octo/demo.rs").unwrap().to_string(), "octo/demo.rs");
    for name in ["demo", "octo/", "/demo", "octo/demo/x", "octo/..", "./demo", "octo/de mo", "octo/demo?x"] {
        assert!(RepositoryName::parse("repo_name", name).is_err(), "{name}");
    }
    assert_eq!(GitHub::create_intents("../x").len(), 0);
    assert_eq!(GitHub::create_intents("org/new").len(), 1);
}
