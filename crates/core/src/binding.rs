//! Reading JSON that callers sent as the type that is needed, and saying what is wrong with it.

use crate::json_text::UniqueKeys;
use crate::{ErrorKind, JsonText, Result, ToolError};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Objects with more members are not searched for the one at fault: no type has so many.
const SEARCHED_MEMBERS: usize = 64;

/// Only texts up to this size are searched below their first level.
const DEEPLY_SEARCHED_BYTES: usize = 64 << 10;

/// Reads JSON as a type. The refusal names the member at fault, in plain words.
pub fn bind<T: DeserializeOwned>(json: &JsonText) -> Result<T> {
    read::<T>(json).map_err(|message| {
        let fails = |part: &JsonText| read::<T>(part).is_err_and(|other| other == message);
        refusal(&message, json, &fails)
    })
}

/// Reads the arguments of a tool. An unknown one is named together with the nearest that the schema has.
pub(crate) fn bind_arguments<T: DeserializeOwned>(args: &JsonText, schema: &Value) -> Result<T> {
    bind::<UniqueKeys>(args)?;
    bind(args).map_err(|error| unknown_argument(args, schema).unwrap_or(error))
}

fn read<T: DeserializeOwned>(json: &JsonText) -> Result<T, String> {
    serde_json::from_str(json.as_str()).map_err(|error| without_position(&error.to_string()))
}

/// The message of a JSON error without where it is in the text: callers do not see the text as it is read.
pub fn without_position(message: &str) -> String {
    let position = message.rfind(" at line ").filter(|at| {
        let mut words = message[at + " at line ".len()..].split(' ');
        let is_number = |word: Option<&str>| word.is_some_and(|word| word.parse::<u64>().is_ok());
        is_number(words.next()) && words.next() == Some("column") && is_number(words.next()) && words.next().is_none()
    });
    message[..position.unwrap_or(message.len())].to_owned()
}

/// The refusal of an argument that the schema does not have, if there is one.
fn unknown_argument(args: &JsonText, schema: &Value) -> Option<ToolError> {
    let known: Vec<&str> =
        schema["properties"].as_object().map(|names| names.keys().map(String::as_str).collect()).unwrap_or_default();
    let given = args.members().unwrap_or_default();
    let (unknown, _) = given.iter().find(|(name, _)| !known.contains(&name.as_str()))?;
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(name, unknown), name))
        .filter(|(distance, name)| *distance <= name.len().max(unknown.len()) / 2)
        .min();
    let hint = match nearest {
        Some((_, name)) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "this tool takes none".to_owned(),
        None => format!("known: {}", known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    };
    Some(ToolError::argument(unknown, format!("unknown argument `{unknown}`; {hint}")))
}

/// Turns a message of serde into an error that names the member at fault.
fn refusal(message: &str, json: &JsonText, fails: &dyn Fn(&JsonText) -> bool) -> ToolError {
    if let Some(missing) = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next()) {
        return ToolError::argument(missing, message);
    }
    let depth = if json.as_str().len() <= DEEPLY_SEARCHED_BYTES { Depth::All } else { Depth::FirstLevel };
    let path = path_to_fault(json, depth, fails);
    let words = in_plain_words(message);
    match &path[..] {
        [] => ToolError::new(ErrorKind::InvalidArgument, words),
        [name] if words.contains(&format!("`{name}`")) => ToolError::argument(name, words),
        [name, ..] => ToolError::argument(name, format!("`{}`: {words}", path.join("."))),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    FirstLevel,
    All,
}

/// The names that lead to the member at which reading begins to fail; none if that cannot be told.
///
/// Members are read in order. So the first of them up to which reading fails is the one at fault, and it is found by
/// bisection.
fn path_to_fault(json: &JsonText, depth: Depth, fails: &dyn Fn(&JsonText) -> bool) -> Vec<String> {
    let members = json.members().filter(|members| members.len() <= SEARCHED_MEMBERS).unwrap_or_default();
    let fails_up_to = |count: &usize| JsonText::from_members(&members[..*count]).is_ok_and(|part| fails(&part));
    let counts: Vec<usize> = (0..=members.len()).collect();
    let first_failing = counts.partition_point(|count| !fails_up_to(count));
    let Some((before, [at_fault, ..])) = first_failing.checked_sub(1).and_then(|at| members.split_at_checked(at))
    else {
        return Vec::new();
    };
    let (name, value) = at_fault;
    let mut path = vec![name.clone()];
    if depth == Depth::All {
        let fails_with = |value: &JsonText| {
            let members = [before, &[(name.clone(), value.clone())]].concat();
            JsonText::from_members(&members).is_ok_and(|part| fails(&part))
        };
        path.extend(path_to_fault(value, depth, &fails_with));
    }
    path
}

/// The message of a JSON error without the names of Rust's types.
fn in_plain_words(message: &str) -> String {
    if message == "expected value" {
        return "expected a text".to_owned();
    }
    let Some((given, expected)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let expected = match expected {
        "a nonzero usize" | "a nonzero u64" => "a whole number from 1 on",
        "usize" | "u64" | "u32" => "a whole number from 0 on",
        "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    };
    format!("{given}, expected {expected}")
}

#[cfg(test)]
#[path = "binding_tests.rs"]
mod tests;
