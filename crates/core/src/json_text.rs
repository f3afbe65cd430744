//! JSON kept as it was written.
//!
//! A parsed `Value` forgets how a number was written and may forget the order of keys. Files of JSON types must come
//! back as they went in, so they are held as text; white space is the only thing that is ever changed.

use crate::{ErrorKind, Result, ToolError};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// A JSON value as text, valid by construction.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// Takes text that must be one JSON value.
    pub fn parse(text: String) -> Result<Self> {
        RawValue::from_string(text)
            .map(Self)
            .map_err(|error| ToolError::new(ErrorKind::WrongType, format!("Content is not valid JSON: {error}")))
    }

    /// Writes a value as JSON text.
    pub fn of(value: &impl Serialize) -> Result<Self> {
        serde_json::value::to_raw_value(value).map(Self).map_err(ToolError::internal)
    }

    /// The text as it is held.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// The value if it is a string.
    pub fn as_string(&self) -> Option<String> {
        if !self.as_str().starts_with('"') {
            return None;
        }
        serde_json::from_str(self.as_str()).ok()
    }

    /// The same value without white space between its tokens.
    #[must_use]
    pub fn compact(&self) -> Self {
        // White space between tokens is all that a layout changes, so what comes out is JSON as well.
        RawValue::from_string(layout(self.as_str(), None)).map_or_else(|_| self.clone(), Self)
    }

    /// The same value laid out for people: two spaces a level, and a newline at the end.
    pub fn pretty(&self) -> String {
        let mut text = layout(self.as_str(), Some("  "));
        text.push('\n');
        text
    }

    /// The value in the canonical form of RFC 8785, over which its hash is made.
    pub fn canonical(&self) -> Result<Vec<u8>> {
        let unfit = |error: &dyn fmt::Display| {
            ToolError::new(ErrorKind::InvalidArgument, format!("JSON content has no canonical form: {error}"))
        };
        let value: serde_json::Value = serde_json::from_str(self.as_str()).map_err(|error| unfit(&error))?;
        serde_json_canonicalizer::to_vec(&value).map_err(|error| unfit(&error))
    }

    /// The members of an object, in order, each as it was written; none for other values.
    pub fn members(&self) -> Option<Vec<(String, Self)>> {
        if !self.is_object() {
            return None;
        }
        serde_json::from_str::<Members>(self.as_str()).ok().map(|members| members.0)
    }

    /// Puts an object together from members.
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
    /// Equal when written alike, but for white space.
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

/// Appends a text as a JSON string.
pub fn push_json_string(out: &mut String, text: &str) {
    let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        // A text always serialises.
        out.push_str(&serde_json::to_string(text).unwrap_or_default());
    }
}

/// Lays valid JSON out anew: compact without an indent, one member a line with one.
fn layout(json: &str, indent: Option<&str>) -> String {
    let mut out = String::with_capacity(json.len());
    let mut depth = 0;
    let mut in_string = false;
    let mut escaped = false;
    let mut opened = false;
    let line = |out: &mut String, depth: usize| {
        if let Some(indent) = indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(indent, depth));
        }
    };
    for c in json.chars() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        if matches!(c, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        // An empty object or array stays on one line.
        if opened && !matches!(c, '}' | ']') {
            line(&mut out, depth);
        }
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => {
                depth -= 1;
                if !opened {
                    line(&mut out, depth);
                }
            }
            _ => {}
        }
        out.push(c);
        opened = matches!(c, '{' | '[');
        match c {
            '"' => in_string = true,
            ',' => line(&mut out, depth),
            ':' if indent.is_some() => out.push(' '),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
#[path = "json_text_tests.rs"]
mod tests;
