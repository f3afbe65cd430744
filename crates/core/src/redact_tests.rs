use super::*;
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

fn redact(args: &Json) -> String {
    Redactor::new(b"key").redact(&args.to_string())
}

fn redacted(args: &Json) -> Json {
    serde_json::from_str(&redact(args)).unwrap()
}

#[test]
fn short_arguments_stay_as_they_are() {
    let args = json!({"path": "/a.txt", "limit": 5, "deep": {"list": [1, -2.5, null, true, "é\n"]}, "empty": {}});
    assert_eq!(redacted(&args), args);
}

#[test]
fn a_long_text_becomes_its_size_and_its_keyed_hash() {
    let args = json!({"content": "x".repeat(201)});
    let shown = redacted(&args);
    assert_eq!(shown["content"]["bytes"], 201);
    assert_eq!(shown["content"]["hash"].as_str().unwrap().len(), 16);
    assert_eq!(redact(&args), redact(&args), "equal values have equal hashes");
    let other = Redactor::new(b"another key").redact(&args.to_string());
    assert_ne!(redact(&args), other);
}

#[test]
fn secrets_leave_nothing() {
    for secret in [
        json!({"password": "hunter2"}),
        json!({"headers": {"Authorization": "hunter2", "X-Api-Key": ["hunter2"]}}),
        json!({"headers": [{"name": "Cookie", "value": "hunter2"}, {"value": "hunter2", "name": "x-auth-token"}]}),
        json!({"env": {"GITHUB_TOKEN": {"is": "hunter2"}}}),
        json!({"headers": ["Authorization: Basic hunter2"]}),
        json!({"command": "curl -H 'authorization: Bearer hunter2' https://example.com"}),
        json!({"command": "API_KEY=hunter2 ./run"}),
        json!({"command": "login --password hunter2"}),
        json!({"note": "Bearer hunter2"}),
        json!({"args": ["--token", "hunter2"]}),
        json!({"input": "hunter2"}),
        json!({"env": {"DB_PASS": "hunter2", "PWD_OF_DB": "hunter2"}}),
        json!({"url": "https://user:hunter2@example.com/x"}),
        json!({"command": "curl -u trk_hunter2hunter2hunter2 localhost"}),
    ] {
        let shown = redact(&secret);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains(REDACTED), "{shown}");
        assert!(!shown.contains("hash"), "{shown}");
    }
}

#[test]
fn what_does_not_fit_is_cut_off_with_a_mark() {
    let many: Vec<String> = (0..1000).map(|i| format!("element {i}")).collect();
    let shown = redact(&json!({"first": 1, "many": many, "last": 2}));
    assert!(shown.len() <= MAX_ARGS_BYTES);
    let shown: Json = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["first"], &shown["many"][0]), (&json!(1), &json!("element 0")));
    assert_eq!(shown["many"].as_array().unwrap().last().unwrap(), "…");
}

#[test]
fn text_that_cannot_be_read_leaves_valid_json() {
    for args in [r#"{"a":"b","c":{"d":["\ud800"]}}"#.to_owned(), format!("{}1{}", "[".repeat(5000), "]".repeat(5000))] {
        let shown = Redactor::new(b"key").redact(&args);
        assert!(shown.len() <= MAX_ARGS_BYTES && serde_json::from_str::<Json>(&shown).is_ok(), "{shown}");
    }
    let nul = redact(&json!({"text": "a\0b"}));
    assert!(!nul.contains('\0'), "{nul}");
}

/// Any JSON, in which every text under a secret name begins with `secret:`, and every long text with `long:`.
fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        ".{0,40}".prop_map(Json::from),
        (196usize..400).prop_map(|more| format!("long:{}", "y\"".repeat(more)).into()),
    ];
    let name = prop_oneof![
        "[a-z]{1,8}",
        ".{0,300}",
        Just("value".to_owned()),
        Just("name".to_owned()),
        prop::sample::select(&["password", "X-Token", "apiKey", "Set-Cookie"][..]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(24, 400, 20, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Json::from),
            prop::collection::vec((name.clone(), inner), 0..20).prop_map(|members| {
                let mark = |(name, value): (String, Json)| {
                    let value = if is_secret_name(&name) { json!(["secret:", value]) } else { value };
                    (name, value)
                };
                Json::Object(members.into_iter().map(mark).collect::<Map<_, _>>())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn the_result_is_valid_bounded_and_without_secrets_and_long_values(args in any_json()) {
        let shown = redact(&json!({ "args": args }));
        prop_assert!(shown.len() <= MAX_ARGS_BYTES);
        prop_assert!(serde_json::from_str::<Json>(&shown).is_ok(), "{}", shown);
        prop_assert!(!shown.contains("secret:"), "{}", shown);
        prop_assert!(!shown.contains("long:"), "{}", shown);
        prop_assert!(!shown.contains('\0'));
    }
}
