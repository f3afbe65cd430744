//! Every request and response that specification 000 prints, as data in `spec_000/*.json`.
//!
//! A scenario has `setup` calls, whose results may be saved under a name, and `exchanges`: a request as it goes over
//! the wire and the answer to expect. `${name}` stands for a saved value, `${workspace}`, `${access_token}` or
//! `${foreign_token}` (a user who is no member). Expected strings may be patterns: `$uuid`, `$timestamp`, `$sha256`,
//! `$string`, and `$positioned:` for a message that may end in ` at line N column M`. All else is exact.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value};
use toolrest_testkit::{Client, Request};

use crate::on::{On, list_at, text_at};

/// Fields that may stand at the top level of any result beside those that 000 shows.
const EXTRA_RESULT_FIELDS: [&str; 4] = ["hash", "matched_with", "skipped", "warnings"];

macro_rules! fixtures {
    ($($name:ident),+ $(,)?) => {
        const FIXTURES: &[&str] = &[$(stringify!($name)),+];
        $(
            async fn $name(on: On) {
                play(on, stringify!($name)).await;
            }
        )+
        on_both_databases![$($name),+];
    };
}

fixtures![content_types, curl, edit, errors, grep, ls, mkdir, mv, paths, read, rm, touch, typescript, write,];

#[test]
fn every_fixture_file_is_played() {
    let files: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let played = FIXTURES.iter().map(ToString::to_string).collect();
    assert_eq!(files, played);
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/spec_000")
}

async fn play(on: On, fixture: &str) {
    let file = fs::read_to_string(folder().join(format!("{fixture}.json"))).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let owner = on.account().await;
    let stranger = on.account().await;
    for scenario in list_at(&file, "/scenarios") {
        let workspace = owner.workspace("Specification 000").await;
        let mut names = BTreeMap::from([
            ("workspace".to_owned(), workspace.id.clone()),
            ("access_token".to_owned(), owner.access_token.clone()),
            ("foreign_token".to_owned(), stranger.access_token.clone()),
        ]);
        for call in scenario["setup"].as_array().into_iter().flatten() {
            let args = fill_in(&call["args"], &names);
            let result = workspace.ok(text_at(call, "/tool"), args).await;
            for (name, pointer) in call["save"].as_object().into_iter().flatten() {
                let saved = text_at(&result, pointer.as_str().unwrap());
                names.insert(name.clone(), saved.to_owned());
            }
        }
        for (step, exchange) in list_at(scenario, "/exchanges").iter().enumerate() {
            let fault = try_exchange(&owner.client, &fill_in(exchange, &names)).await;
            if let Err(fault) = fault {
                panic!("{fixture}.json, “{}”, exchange {}: {fault}", text_at(scenario, "/name"), step + 1);
            }
        }
    }
}

async fn try_exchange(client: &Client, exchange: &Value) -> Result<(), String> {
    let wanted = &exchange["request"];
    let mut request = Request::new(text_at(wanted, "/method"), text_at(wanted, "/path"));
    for (name, value) in wanted["headers"].as_object().unwrap() {
        request = request.header(name, value.as_str().unwrap());
    }
    let reply = client.send(request.body(wanted["body"].to_string())).await;
    let expected = &exchange["expect"];
    if expected["status"] != reply.status {
        return Err(format!("expected {}, but {reply}", expected["status"]));
    }
    compare(&expected["body"], &reply.json(), "").map_err(|fault| format!("{fault}; {reply}"))
}

/// Replaces `${name}` in every string.
fn fill_in(value: &Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => {
            let filled =
                names.iter().fold(text.clone(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value));
            Value::String(filled)
        }
        Value::Array(items) => items.iter().map(|item| fill_in(item, names)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), fill_in(value, names))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

fn compare(expected: &Value, actual: &Value, at: &str) -> Result<(), String> {
    match (expected, actual) {
        (Value::Object(expected_fields), Value::Object(fields)) => {
            for (name, value) in expected_fields {
                let actual = fields.get(name).ok_or_else(|| format!("{at}/{name} is missing"))?;
                compare(value, actual, &format!("{at}/{name}"))?;
            }
            let extra = fields.keys().find(|name| !expected_fields.contains_key(*name) && !may_be_extra(name, at));
            extra.map_or(Ok(()), |name| Err(format!("{at}/{name} is unexpected")))
        }
        (Value::Array(expected_items), Value::Array(items)) => {
            if expected_items.len() != items.len() {
                return Err(format!("{at} has {} items, expected {}", items.len(), expected_items.len()));
            }
            expected_items
                .iter()
                .zip(items)
                .enumerate()
                .try_for_each(|(index, (expected, item))| compare(expected, item, &format!("{at}/{index}")))
        }
        (Value::String(pattern), Value::String(text)) if fits(pattern, text) => Ok(()),
        (expected, actual) if expected == actual => Ok(()),
        (expected, actual) => Err(format!("{at} is {actual}, expected {expected}")),
    }
}

fn may_be_extra(name: &str, at: &str) -> bool {
    match at {
        "" => name == "fields",
        "/result" => EXTRA_RESULT_FIELDS.contains(&name),
        _ => false,
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    match pattern {
        "$uuid" => is_shaped_like(text, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh"),
        "$sha256" => is_shaped_like(text, &"h".repeat(64)),
        "$timestamp" => is_timestamp(text),
        "$string" => !text.is_empty(),
        pattern => match pattern.strip_prefix("$positioned:") {
            Some(message) => text.strip_prefix(message).is_some_and(|rest| rest.is_empty() || is_position(rest)),
            None => pattern == text,
        },
    }
}

/// `h` stands for a lower-case hexadecimal digit, `d` for a decimal one.
fn is_shaped_like(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
            b'h' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            b'd' => byte.is_ascii_digit(),
            other => byte == other,
        })
}

/// ISO 8601 in UTC, to the second or finer.
fn is_timestamp(text: &str) -> bool {
    let Some(time) = text.strip_suffix('Z') else {
        return false;
    };
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, "0"));
    is_shaped_like(seconds, "dddd-dd-ddTdd:dd:dd")
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_position(text: &str) -> bool {
    let numbers = text.strip_prefix(" at line ").and_then(|rest| rest.split_once(" column "));
    numbers.is_some_and(|(line, column)| line.parse::<u32>().is_ok() && column.parse::<u32>().is_ok())
}
