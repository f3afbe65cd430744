use super::*;
use crate::{GrantId, NewGrant, UserId};
use proptest::prelude::*;

fn path(text: &str) -> WsPath {
    WsPath::within(text).unwrap()
}

fn list(rules: &[&str]) -> RuleList {
    RuleList::compile(rules.iter().map(|rule| rule.parse().unwrap()).collect()).unwrap()
}

fn effect_at(rules: &RuleList, action: Action, at: &str) -> Option<RuleEffect> {
    let at = path(at);
    let target = Target::Path { path: &at, overwrite: false };
    rules.judge(&Question { toolset: "file", tool: "file.write", action, target }).map(|rule| rule.effect)
}

fn effect_of_command(rules: &RuleList, command: &str) -> Option<RuleEffect> {
    let target = Target::Command(command);
    let question = Question { toolset: "system", tool: "run_code", action: Action::Exec, target };
    rules.judge(&question).map(|rule| rule.effect)
}

#[test]
fn path_patterns_match_from_the_root_and_across_folders_with_two_stars() {
    for (pattern, matching, others) in [
        ("docs/**", &["docs", "docs/a", "docs/a/b.md"][..], &["doc", "docsx", "a/docs/b", "Docs/a"][..]),
        ("docs/", &["docs", "docs/a", "docs/a/b.md"], &["doc", "a/docs/b"]),
        ("//docs//./**", &["docs", "docs/a"], &["a/docs/b"]),
        ("../docs/x/../**", &["docs", "docs/a"], &["a/docs/b"]),
        ("/", &["", "a", "a/b"], &[]),
        ("/docs/**", &["docs/a"], &["x/docs/a"]),
        ("./docs/*", &["docs/a"], &["docs/a/b"]),
        ("**/.env", &[".env", "a/.env", "a/b/.env"], &["a/.env.local", "a/.env/x"]),
        (".env", &[".env"], &["a/.env"]),
        ("*.rs", &["a.rs"], &["a/b.rs"]),
        ("**", &["a", "a/b", ""], &[]),
        ("src/[ab].rs", &["src/a.rs"], &["src/c.rs"]),
        ("src/{a,b}.rs", &["src/b.rs"], &["src/c.rs"]),
    ] {
        let rule = Rule { patterns: vec![pattern.to_owned()], .."deny write".parse().unwrap() };
        let rules = RuleList::compile(vec![rule]).unwrap();
        for at in matching {
            assert_eq!(effect_at(&rules, Action::Write, at), Some(RuleEffect::Deny), "{pattern} {at}");
        }
        for at in others {
            assert_eq!(effect_at(&rules, Action::Write, at), None, "{pattern} {at}");
        }
    }
}

fn effect_on(rule: &str, action: Action, target: Target<'_>) -> Option<RuleEffect> {
    list(&[rule]).judge(&Question { toolset: "backend", tool: "x", action, target }).map(|rule| rule.effect)
}

#[test]
fn rules_about_names_hold_however_the_name_is_written() {
    for (rule, target) in [
        ("deny github(octo/secrets)", Target::Repository("Octo/SECRETS")),
        ("deny github(Octo/*)", Target::Repository("octo/secrets")),
        ("deny *(octo/secrets)", Target::Repository("octo/Secrets")),
    ] {
        assert_eq!(effect_on(rule, Action::GitHub, target), Some(RuleEffect::Deny), "{rule}");
    }
    for (rule, key) in [("/priv/**", "/priv/x"), ("priv/**", "/priv/x"), ("a//b", "a//b"), ("priv/", "priv/")] {
        let effect = effect_on(&format!("deny memory({rule})"), Action::Memory, Target::Name(key));
        assert_eq!(effect, Some(RuleEffect::Deny), "{rule} {key}");
    }
    assert_eq!(effect_on("deny memory(private)", Action::Memory, Target::Name("Private")), None);
    for (rule, host) in [
        ("example.com", "example.com"),
        ("EXAMPLE.com.", "example.com"),
        ("example.com:443", "example.com"),
        ("example.com:80", "example.com"),
        ("*.example.com", "a.example.com:8443"),
        ("[2001:db8::1]", "[2001:db8::1]:8443"),
    ] {
        let effect = effect_on(&format!("deny fetch({rule})"), Action::Fetch, Target::Host(host));
        assert_eq!(effect, Some(RuleEffect::Deny), "{rule} {host}");
    }
    assert_eq!(effect_on("deny fetch(example.com:8443)", Action::Fetch, Target::Host("example.com")), None);
}

#[test]
fn a_rule_about_a_tool_holds_for_both_spellings_of_its_name() {
    for rule in ["deny tool(file/file_write)", "deny tool(file_write)", "deny tool(file.write)", "deny tool(file/*)"] {
        let target = Target::None;
        let question = Question { toolset: "file", tool: "file.write", action: Action::Write, target };
        assert_eq!(list(&[rule]).judge(&question).map(|rule| rule.effect), Some(RuleEffect::Deny), "{rule}");
    }
}

#[test]
fn a_host_that_nothing_can_match_is_refused() {
    for pattern in ["*", "**", "a", "example.com", "*.example.com", "example.com:80", "1.2.3.4", "[::1]", "[::1]:80"] {
        assert_eq!(HostPattern::check(pattern), Ok(()), "{pattern}");
    }
    for pattern in
        ["http://a.b", "a.b/c", "b\u{fc}cher.example", "*.*", "a..b", "[0:0::1]", "::1", "*.[::1]", "a b", "", "*a.b"]
    {
        assert!(HostPattern::check(pattern).is_err(), "{pattern}");
    }
}

#[test]
fn the_last_match_of_a_list_counts_and_the_strictest_list() {
    let rules = list(&["deny write(docs/**)", "allow write(docs/drafts/**)"]);
    assert_eq!(effect_at(&rules, Action::Write, "docs/a"), Some(RuleEffect::Deny));
    assert_eq!(effect_at(&rules, Action::Write, "docs/drafts/a"), Some(RuleEffect::Allow));
    assert_eq!(effect_at(&rules, Action::Read, "docs/a"), None);
    let lists =
        RuleLists { server: Arc::new(list(&["ask write(docs/**)"])), workspace: Arc::new(list(&["allow write"])) };
    let at = path("docs/a");
    let target = Target::Path { path: &at, overwrite: false };
    let question = Question { toolset: "file", tool: "file.write", action: Action::Write, target };
    let judged = lists.judge(&question).unwrap();
    assert_eq!((judged.effect, judged.from), (RuleEffect::Ask, "server"));
}

#[test]
fn rules_can_be_about_tools_exceptions_and_overwriting() {
    let rule = r#"{"effect":"ask","action":"write","match":["docs/**"],"except":["docs/drafts/**"],
        "when":{"overwrite":true},"because":"Docs publish on merge","approvers":["owner@example.com"]}"#;
    let rule: Rule = serde_json::from_str(rule).unwrap();
    let rules = RuleList::compile(vec![rule.clone()]).unwrap();
    let effect = |at: &str, overwrite| {
        let at = path(at);
        let target = Target::Path { path: &at, overwrite };
        let question = Question { toolset: "system", tool: "write_file", action: Action::Write, target };
        rules.judge(&question).map(|rule| rule.effect)
    };
    assert_eq!(effect("docs/a", true), Some(RuleEffect::Ask));
    assert_eq!(effect("docs/a", false), None);
    assert_eq!(effect("docs/drafts/a", true), None);
    let again: Rule = serde_json::from_str(&serde_json::to_string(&rule).unwrap()).unwrap();
    assert_eq!(again, rule);
    let of_tool = list(&["deny tool(system/write_file)", "deny tool(coding/*)"]);
    let denies = |toolset, tool| {
        of_tool.judge(&Question { toolset, tool, action: Action::Write, target: Target::None }).is_some()
    };
    assert!(denies("system", "write_file") && denies("coding", "edit") && !denies("system", "delete_file"));
    for text in ["ask *", "deny tool(system/*)"] {
        let rule: Rule = text.parse().unwrap();
        let written = serde_json::to_string(&rule).unwrap();
        let again = RuleList::compile(vec![serde_json::from_str(&written).unwrap()]).unwrap();
        let question = Question { toolset: "system", tool: "x", action: Action::Exec, target: Target::None };
        assert!(again.judge(&question).is_some(), "{written}");
    }
}

#[test]
fn wrong_rules_are_refused_with_a_reason() {
    for (rule, reason) in [
        ("deny", "effect and an action"),
        ("forbid write", "not an effect"),
        ("deny wirte", "not an action"),
        ("deny write(a", "not closed"),
        ("deny write(a,,b)", "pattern is empty"),
        ("deny tool", "one name"),
    ] {
        let error = rule.parse::<Rule>().unwrap_err();
        assert!(error.message.contains(reason), "{rule}: {}", error.message);
        assert!(error.message.contains(rule), "{rule}: {}", error.message);
    }
    let error = RuleList::compile(vec!["deny write([)".parse().unwrap()]).unwrap_err();
    assert!(error.message.contains("deny write([)"), "{}", error.message);
    assert!(serde_json::from_str::<Rule>(r#"{"effect":"deny"}"#).is_err());
    assert!(serde_json::from_str::<Rule>(r#"{"effect":"deny","action":"read","matches":[]}"#).is_err());
}

#[test]
fn commands_match_by_their_first_words() {
    let rules = list(&["ask exec", "allow exec(git status, git diff)", "deny exec(git push)"]);
    assert_eq!(effect_of_command(&rules, "git status -s"), Some(RuleEffect::Allow));
    assert_eq!(effect_of_command(&rules, "git statusx"), Some(RuleEffect::Ask));
    assert_eq!(effect_of_command(&rules, "git  push origin"), Some(RuleEffect::Deny));
    assert!(rules.has_narrow_command_rules());
    assert!(!list(&["ask exec", "deny write(a)"]).has_narrow_command_rules());
}

#[test]
fn hosts_match_exactly_or_below_a_domain() {
    let rules = list(&["allow fetch(example.com, *.example.org, local.test:8080)"]);
    let allows = |host| {
        let question =
            Question { toolset: "system", tool: "web_fetch", action: Action::Fetch, target: Target::Host(host) };
        rules.judge(&question).is_some()
    };
    assert!(
        allows("example.com") && allows("EXAMPLE.com:443") && allows("a.b.example.org") && allows("local.test:8080")
    );
    assert!(
        !allows("example.org") && !allows("badexample.org") && !allows("local.test:81") && !allows("a.example.com")
    );
}

#[test]
fn grants_cover_one_session_and_refusals_count_more() {
    let later = crate::now().checked_add(std::time::Duration::from_secs(60)).unwrap();
    let grant = |pattern: &str, is_denial, session: &str| Grant {
        id: GrantId::new(),
        principal: uuid::Uuid::nil(),
        session: session.to_owned(),
        grant: NewGrant { action: Action::Write, pattern: pattern.to_owned(), is_denial, expires_at: later },
        approval: None,
        granted_by: UserId::new(),
        created_at: crate::now(),
    };
    let grants = GrantList::compile(vec![grant("docs/**", false, "a"), grant("docs/x", true, "a")]);
    let covers = |session, at: &str, now| {
        let at = path(at);
        grants.covers(session, Action::Write, &Target::Path { path: &at, overwrite: true }, now)
    };
    assert_eq!(covers("a", "docs/y", crate::now()), Some(false));
    assert_eq!(covers("a", "docs/x", crate::now()), Some(true));
    assert_eq!(covers("b", "docs/y", crate::now()), None);
    assert_eq!(covers("a", "other", crate::now()), None);
    assert_eq!(covers("a", "docs/y", later), None);
}

/// Paths and patterns over a small alphabet, so that they meet.
fn a_path() -> impl Strategy<Value = String> {
    prop::collection::vec("[ab*?\\[{]{1,2}", 1..4).prop_map(|parts| parts.join("/"))
}

fn a_pattern() -> impl Strategy<Value = String> {
    prop::collection::vec("[ab]|\\*|\\*\\*|a\\*|\\?", 1..4).prop_map(|parts| parts.join("/"))
}

proptest! {
    #[test]
    fn the_pattern_offered_for_a_path_matches_that_path_alone(one in a_path(), other in a_path()) {
        let (one, other) = (path(&one), path(&other));
        let target = Target::Path { path: &one, overwrite: false };
        let pattern = grant_pattern(Action::Write, &target).unwrap();
        let globs = Globs::compile(std::slice::from_ref(&pattern), Case::Sensitive).unwrap();
        prop_assert!(globs.matches(&one), "{pattern}");
        prop_assert_eq!(globs.matches(&other), one == other, "{} {}", pattern, other);
    }

    #[test]
    fn what_matches_below_a_folder_is_foreseen(pattern in a_pattern(), at in a_path()) {
        let globs = Globs::compile(std::slice::from_ref(&pattern), Case::Sensitive).unwrap();
        let at = path(&at);
        if globs.matches(&at) {
            for folder in at.ancestors() {
                prop_assert!(globs.may_match_below(&folder), "{pattern} {at} {folder}");
            }
        }
    }

    #[test]
    fn the_short_form_is_read_as_it_is_written(effect in 0..3_usize, action in 0..8_usize, patterns in prop::collection::vec(a_pattern(), 0..3)) {
        let effect = [RuleEffect::Allow, RuleEffect::Ask, RuleEffect::Deny][effect];
        let rule = Rule { effect, action: Some(Action::ALL[action]), patterns, ..("allow read".parse().unwrap()) };
        prop_assert_eq!(rule.to_string().parse::<Rule>().unwrap(), rule);
    }
}
