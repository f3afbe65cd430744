//! Arguments as models send them: one value for a list, a list or an object as JSON text, numbers and booleans as text.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Deserialises a list: also a single value, or JSON text.
pub(super) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    list_of(Value::deserialize(deserializer)?).map_err(Error::custom)
}

/// Like [`list`], for an optional argument.
pub(super) fn list_if_any<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        value => list_of(value).map(Some).map_err(Error::custom),
    }
}

fn list_of<T: DeserializeOwned>(value: Value) -> Result<Vec<T>, String> {
    let value = match value {
        Value::String(text) if text.trim_start().starts_with(['[', '{']) => {
            // A file can have such a name.
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
        value => value,
    };
    let items = match value {
        Value::Array(items) => items,
        Value::Null => return Err("expected a list".to_owned()),
        single => vec![single],
    };
    let item = |(n, item)| {
        let item = match item {
            Value::String(text) => {
                let as_text = T::deserialize(Value::String(text.clone()));
                return as_text.or_else(|error| serde_json::from_str(&text).map_err(|_| in_item(n, &error)));
            }
            item => item,
        };
        T::deserialize(item).map_err(|error| in_item(n, &error))
    };
    items.into_iter().enumerate().map(item).collect()
}

fn in_item(n: usize, error: &serde_json::Error) -> String {
    format!("item {}: {error}", n + 1)
}

/// Deserialises an optional number, also as text.
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::Number(number) => Ok(number.as_f64()),
        Value::String(text) if text.trim().is_empty() => Ok(None),
        Value::String(text) => {
            let number = text.trim().trim_end_matches('s').trim_end().parse::<f64>().ok().filter(|n| n.is_finite());
            number.map(Some).ok_or_else(|| Error::custom(format!("expected a number, not '{text}'")))
        }
        _ => Err(Error::custom("expected a number")),
    }
}

/// Deserialises an optional boolean, also as text.
pub(super) fn switch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::Bool(is_on) => Ok(Some(is_on)),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "1" => Ok(Some(true)),
            "false" | "no" | "0" | "" => Ok(Some(false)),
            _ => Err(Error::custom(format!("expected true or false, not '{text}'"))),
        },
        _ => Err(Error::custom("expected true or false")),
    }
}

/// Removes what only makes the schema longer: a model pays for it in every request. Unknown arguments are refused anyway.
pub(super) fn compact(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.remove("additionalProperties");
            members.remove("format");
            members.remove("minimum");
            members.remove("default");
            members.values_mut().for_each(compact);
        }
        Value::Array(items) => items.iter_mut().for_each(compact),
        _ => {}
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
