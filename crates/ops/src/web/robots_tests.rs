use super::*;

#[test]
fn the_group_for_this_server_counts_before_the_one_for_all() {
    let rules = Rules::parse(
        "User-agent: *\nDisallow: /\n\nUser-agent: other\nUser-agent: Toolrest\nDisallow: /private # no\n",
    );
    assert!(rules.allow("/public") && !rules.allow("/private/x"));
    assert!(!Rules::parse("User-agent: *\nDisallow: /").allow("/x"));
    assert!(Rules::parse("User-agent: *\nDisallow: /\nUser-agent: toolrest\nDisallow:").allow("/x"));
    assert!(Rules::parse("").allow("/x") && Rules::parse("nonsense").allow("/x"));
}

#[test]
fn the_longest_pattern_decides() {
    let rules =
        Rules::parse("User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /*.php$\nAllow: /same\nDisallow: /same");
    assert!(!rules.allow("/a/c") && rules.allow("/a/b/c") && rules.allow("/z"));
    assert!(!rules.allow("/x/y.php") && rules.allow("/x/y.php?q=1") && rules.allow("/same"));
}

#[test]
fn patterns_have_wildcards_and_ends() {
    for (pattern, path, expected) in [
        ("/", "/x", true),
        ("/a*b", "/axxb/y", true),
        ("/a*b$", "/axxbby", false),
        ("/a*b$", "/axxbb", true),
        ("/a$", "/a", true),
        ("/a$", "/ab", false),
        ("/*a*b", "/xaxc", false),
    ] {
        assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
    }
}

#[test]
fn rules_of_many_hosts_take_a_bounded_memory() {
    let cache = RobotsCache::default();
    let rules = Arc::new(Rules::parse(&format!("User-agent: *\nDisallow: /{}", "x".repeat(400 << 10))));
    for host in 0..200 {
        cache.remember(host.to_string(), Arc::clone(&rules));
    }
    let bytes: usize = cache.known().values().map(|(_, rules)| rules.bytes()).sum();
    assert!(bytes <= MAX_REMEMBERED_BYTES && cache.known().contains_key("199"), "{bytes} bytes");
}
