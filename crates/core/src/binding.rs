//! Conversion of JSON from callers into typed values, with errors that name the member at fault.

use crate::json_text::UniqueKeys;
use crate::{ErrorKind, JsonText, Result, ToolError};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Maximum number of members of an object that is searched for the member at fault. No argument type has more.
const MAX_SEARCHED_MEMBERS: usize = 64;

/// Maximum size of a JSON text in which nested members are searched too.
const MAX_DEEP_SEARCH_BYTES: usize = 64 << 10;

/// Deserialises JSON. The error names the member at fault and no types of Rust.
pub fn bind<T: DeserializeOwned>(json: &JsonText) -> Result<T> {
    read::<T>(json).map_err(|message| {
        let fails = |part: &JsonText| read::<T>(part).is_err_and(|other| other == message);
        binding_error(&message, json, &fails)
    })
}

/// Deserialises the arguments of a tool. The error for an unknown argument suggests the most similar one of the schema.
pub(crate) fn bind_arguments<T: DeserializeOwned>(args: &JsonText, schema: &Value) -> Result<T> {
    // Rejects duplicate keys.
    bind::<UniqueKeys>(args)?;
    bind(args).map_err(|error| unknown_argument(args, schema, &error).unwrap_or(error))
}

fn read<T: DeserializeOwned>(json: &JsonText) -> Result<T, String> {
    serde_json::from_str(json.as_str()).map_err(|error| without_position(&error.to_string()))
}

/// Removes the position from the message of a JSON error: callers do not see the text that was parsed.
pub fn without_position(message: &str) -> String {
    let position = message.rfind(" at line ").filter(|at| {
        let mut words = message[at + " at line ".len()..].split(' ');
        let is_number = |word: Option<&str>| word.is_some_and(|word| word.parse::<u64>().is_ok());
        is_number(words.next()) && words.next() == Some("column") && is_number(words.next()) && words.next().is_none()
    });
    message[..position.unwrap_or(message.len())].to_owned()
}

/// Creates the error for an argument that the schema does not have, if there is one.
///
/// A tool may accept names that its schema does not show, so an error about another argument is not replaced.
fn unknown_argument(args: &JsonText, schema: &Value, error: &ToolError) -> Option<ToolError> {
    let at_fault = error.argument_at_fault();
    let known: Vec<&str> =
        schema["properties"].as_object().map(|names| names.keys().map(String::as_str).collect()).unwrap_or_default();
    let given = args.members().unwrap_or_default();
    let is_unknown = |name: &str| !known.contains(&name) && at_fault.is_none_or(|at_fault| at_fault == name);
    let (unknown, _) = given.iter().find(|(name, _)| is_unknown(name))?;
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

/// Converts a message of serde into an error that names the member at fault.
fn binding_error(message: &str, json: &JsonText, fails: &dyn Fn(&JsonText) -> bool) -> ToolError {
    if let Some(missing) = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next()) {
        return ToolError::missing_argument(missing, message);
    }
    let depth = if json.as_str().len() <= MAX_DEEP_SEARCH_BYTES { Depth::All } else { Depth::FirstLevel };
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

/// Returns the names on the path to the member at fault; empty if it cannot be found.
///
/// Members are deserialised in order. So the shortest prefix of the members that fails ends with the member at fault.
/// It is found by bisection.
fn path_to_fault(json: &JsonText, depth: Depth, fails: &dyn Fn(&JsonText) -> bool) -> Vec<String> {
    let members = json.members().filter(|members| members.len() <= MAX_SEARCHED_MEMBERS).unwrap_or_default();
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

/// Replaces the names of Rust's types in the message of a JSON error.
fn in_plain_words(message: &str) -> String {
    // serde_json reports this for an enum that is given as neither a string nor an object.
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
