//! JSON as text.
//!
//! A parsed `Value` loses the spelling of numbers and may lose the order of keys. JSON files must be returned as they
//! were written, so they are kept as text. Only white space is ever changed.

use crate::{ErrorKind, Result, ToolError};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashSet, fmt, io};

/// A JSON value as text, valid by construction.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// Parses text that must be one JSON value.
    pub fn parse(text: String) -> Result<Self> {
        RawValue::from_string(text).map(Self).map_err(|error| {
            let why = crate::without_position(&error.to_string());
            let place = format!("line {}, column {} of the new text", error.line(), error.column());
            ToolError::new(ErrorKind::WrongType, format!("Content is not valid JSON: {why} ({place})"))
        })
    }

    /// Serialises a value.
    pub fn of(value: &impl Serialize) -> Result<Self> {
        serde_json::value::to_raw_value(value).map(Self).map_err(ToolError::internal)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// Returns the value if it is a string.
    pub fn as_string(&self) -> Option<String> {
        if !self.as_str().starts_with('"') {
            return None;
        }
        serde_json::from_str(self.as_str()).ok()
    }

    /// Returns the same value without white space between tokens.
    #[must_use]
    pub fn compact(&self) -> Self {
        // `layout` changes only white space between tokens, so the result is valid JSON.
        let mut text = String::with_capacity(self.as_str().len());
        layout(self.as_str(), None, |part| text.push_str(part));
        RawValue::from_string(text).map_or_else(|_| self.clone(), Self)
    }

    /// Formats the value: two spaces for each level, and a newline at the end.
    pub fn pretty(&self) -> String {
        let mut text = String::with_capacity(self.as_str().len());
        layout(self.as_str(), Some(INDENT), |part| text.push_str(part));
        text.push('\n');
        text
    }

    /// Returns the size of [`JsonText::pretty`]. Deep nesting can make it a hundred times the size of the value.
    pub fn pretty_bytes(&self) -> usize {
        let mut bytes = 1;
        layout(self.as_str(), Some(INDENT), |part| bytes += part.len());
        bytes
    }

    /// Refuses duplicate keys at any depth: such an object has no canonical form, and parsers differ in which value
    /// they use.
    pub fn check_unique_keys(&self) -> Result<()> {
        let unfit = |error: serde_json::Error| {
            let why = crate::without_position(&error.to_string());
            ToolError::new(ErrorKind::WrongType, format!("The JSON is refused: {why}"))
        };
        serde_json::from_str::<UniqueKeys>(self.as_str()).map(drop).map_err(unfit)
    }

    /// Returns the canonical form of RFC 8785, which is hashed.
    pub fn canonical(&self) -> Result<Vec<u8>> {
        let unfit = |error: &dyn fmt::Display| {
            let why = crate::without_position(&error.to_string());
            ToolError::new(ErrorKind::InvalidArgument, format!("JSON content has no canonical form: {why}"))
        };
        let value: serde_json::Value = serde_json::from_str(self.as_str()).map_err(|error| unfit(&error))?;
        serde_json_canonicalizer::to_vec(&value).map_err(|error| unfit(&error))
    }

    /// Returns the members of an object, in order and as they were written; `None` for other values.
    pub fn members(&self) -> Option<Vec<(String, Self)>> {
        if !self.is_object() {
            return None;
        }
        serde_json::from_str::<Members>(self.as_str()).ok().map(|members| members.0)
    }

    /// Returns the field `text` of an object, if it is a string. It is the text of a document with more fields.
    pub fn document_text(&self) -> Option<String> {
        self.members()?.into_iter().find(|(name, _)| name == "text").and_then(|(_, text)| text.as_string())
    }

    /// Returns the same object with another `text`.
    pub fn with_document_text(&self, text: &str) -> Result<Self> {
        let mut members = self.members().unwrap_or_default();
        for (_, value) in members.iter_mut().filter(|(name, _)| name == "text") {
            *value = Self::of(&text)?;
        }
        Self::from_members(&members)
    }

    /// Creates an object from members.
    pub fn from_members(members: &[(String, Self)]) -> Result<Self> {
        let mut text = String::from("{");
        for (i, (name, value)) in members.iter().enumerate() {
            if i > 0 {
                text.push(',');
            }
            text.push_str(&serde_json::to_string(name).map_err(ToolError::internal)?);
            text.push(':');
            text.push_str(value.as_str());
        }
        text.push('}');
        Self::parse(text)
    }
}

impl PartialEq for JsonText {
    /// Compares the texts without white space between tokens.
    fn eq(&self, other: &Self) -> bool {
        self.compact().as_str() == other.compact().as_str()
    }
}

impl JsonSchema for JsonText {
    fn schema_name() -> Cow<'static, str> {
        "AnyJson".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}

struct Members(Vec<(String, JsonText)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

/// Returns the size of a text as a JSON string, including the quotes.
pub fn json_string_bytes(text: &str) -> usize {
    text.bytes().map(json_bytes_of).sum::<usize>() + 2
}

/// Returns the size of a byte of a text inside a JSON string.
pub fn json_bytes_of(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

/// Appends a text as a JSON string.
pub fn push_json_string(out: &mut String, text: &str) {
    let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        // Strings always serialise.
        out.push_str(&serde_json::to_string(text).unwrap_or_default());
    }
}

/// Serialises a value. Returns `None` if it is longer than the limit. Never allocates more than the limit.
pub fn to_json_within(value: &impl Serialize, limit_bytes: usize) -> Result<Option<String>> {
    let mut out = Bounded { json: Vec::new(), limit_bytes };
    match serde_json::to_writer(&mut out, value) {
        Ok(()) => String::from_utf8(out.json).map(Some).map_err(ToolError::internal),
        Err(error) if error.is_io() => Ok(None),
        Err(error) => Err(ToolError::internal(error)),
    }
}

/// A writer that fails when the limit is exceeded.
struct Bounded {
    json: Vec<u8>,
    limit_bytes: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit_bytes - self.json.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.json.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const INDENT: &str = "  ";

/// Formats valid JSON and emits it in parts: compact without an indent, with one member per line otherwise.
fn layout(json: &str, indent: Option<&str>, mut emit: impl FnMut(&str)) {
    let mut depth = 0;
    let mut opened = false;
    let mut rest = json;
    let line = |emit: &mut dyn FnMut(&str), depth: usize| {
        if let Some(indent) = indent {
            emit("\n");
            (0..depth).for_each(|_| emit(indent));
        }
    };
    while let Some(c) = rest.chars().next() {
        let length = token_bytes(rest, c);
        let (token, after) = rest.split_at(length);
        rest = after;
        if matches!(c, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        let closes = matches!(c, '}' | ']');
        if closes {
            depth -= 1;
        }
        // An empty object or array stays on one line.
        if opened != closes {
            line(&mut emit, depth);
        }
        emit(token);
        opened = matches!(c, '{' | '[');
        match c {
            '{' | '[' => depth += 1,
            ',' => line(&mut emit, depth),
            ':' if indent.is_some() => emit(" "),
            _ => {}
        }
    }
}

/// Returns the length of the first token: a whole string, or one character of anything else.
fn token_bytes(text: &str, first: char) -> usize {
    if first != '"' {
        return first.len_utf8();
    }
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// Deserialises from any JSON value without duplicate keys; keeps nothing.
pub(crate) struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Check;

        impl<'de> Visitor<'de> for Check {
            type Value = UniqueKeys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_bool<E>(self, _: bool) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_i64<E>(self, _: i64) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_u64<E>(self, _: u64) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_f64<E>(self, _: f64) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_str<E>(self, _: &str) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueKeys, A::Error> {
                while items.next_element::<UniqueKeys>()?.is_some() {}
                Ok(UniqueKeys)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeys, A::Error> {
                let mut keys = HashSet::new();
                while let Some((key, UniqueKeys)) = map.next_entry::<String, UniqueKeys>()? {
                    if let Some(twice) = keys.replace(key) {
                        return Err(de::Error::custom(format!("the key {twice:?} occurs twice in one object")));
                    }
                }
                Ok(UniqueKeys)
            }
        }

        deserializer.deserialize_any(Check)
    }
}

#[cfg(test)]
#[path = "json_text_tests.rs"]
mod tests;
