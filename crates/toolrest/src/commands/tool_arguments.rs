//! The arguments of a tool on the command line: a JSON object, standard input, a file, or `key=value` by the tool's schema.

use super::failure::{Failure, Outcome};
use super::target::Client;
use clap::Args;
use serde_json::{Map, Value};
use std::{fs, io};

/// A tool with its arguments.
#[derive(Args)]
pub(crate) struct ToolCallArgs {
    /// The tool, as TOOLSET/TOOL, such as `coding/read`
    #[arg(value_name = "TOOLSET/TOOL")]
    tool: String,
    /// One JSON object, `-` for standard input, `@FILE`, or any number of `key=value` (the type is that of the tool's
    /// schema), `key:=JSON` and `key=@FILE`
    #[arg(value_name = "ARGUMENTS")]
    args: Vec<String>,
}

impl ToolCallArgs {
    /// Returns the toolset and the tool.
    pub(super) fn names(&self) -> Outcome<(&str, &str)> {
        self.tool.split_once('/').filter(|(toolset, tool)| !toolset.is_empty() && !tool.is_empty()).ok_or_else(|| {
            Failure::Usage(format!("'{}' does not name a tool; write TOOLSET/TOOL, such as coding/read", self.tool))
        })
    }

    /// Returns the arguments as a JSON object.
    pub(super) async fn read(&self, client: &Client) -> Outcome<Value> {
        match &self.args[..] {
            [] => Ok(Value::Object(Map::new())),
            [only] if only == "-" => object(&read_stdin()?, "standard input"),
            [only] if only.trim_start().starts_with('{') => object(only, "the argument"),
            [only] if only.starts_with('@') => object(&read_file(&only[1..])?, &only[1..]),
            pairs => {
                let (toolset, tool) = self.names()?;
                let schema = schema_of(client, toolset, tool).await?;
                by_schema(&schema, pairs)
            }
        }
    }
}

fn read_stdin() -> Outcome<String> {
    io::read_to_string(io::stdin()).map_err(Failure::io("cannot read standard input"))
}

fn read_file(path: &str) -> Outcome<String> {
    fs::read_to_string(path).map_err(Failure::io(format!("cannot read {path}")))
}

fn object(text: &str, source: &str) -> Outcome<Value> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Failure::Usage(format!("{source} must have a JSON object with the tool's arguments"))),
        Err(error) => Err(Failure::Usage(format!("{source} is not JSON: {error}"))),
    }
}

/// Returns the schema of a tool's arguments.
async fn schema_of(client: &Client, toolset: &str, tool: &str) -> Outcome<Value> {
    let catalogue = client.get(&format!("/toolsets/{}?format=native", super::encoded(toolset))).await?;
    let tools = catalogue["tools"].as_array().cloned().unwrap_or_default();
    let is_named =
        |known: &Value| known["name"].as_str().is_some_and(|name| name == tool || name.replace('.', "_") == tool);
    if let Some(found) = tools.iter().find(|known| is_named(known)) {
        return Ok(found["input_schema"].clone());
    }
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    Err(Failure::NotFound(format!("the toolset {toolset} has no tool '{tool}'; it has {}", names.join(", "))))
}

/// Reads `key=value` arguments by the schema of the tool.
fn by_schema(schema: &Value, pairs: &[String]) -> Outcome<Value> {
    let mut args = Map::new();
    for pair in pairs {
        let (mut key, text) = pair.split_once('=').ok_or_else(|| {
            Failure::Usage(format!(
                "'{pair}' is not an argument; write key=value, key:=JSON, one JSON object, @FILE or -"
            ))
        })?;
        let is_json = key.ends_with(':');
        key = key.trim_end_matches(':');
        let Some(property) = schema["properties"].get(key) else {
            let names: Vec<&str> =
                schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            let takes = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Failure::Usage(format!("the tool has no argument '{key}'; it takes {takes}")));
        };
        let text = match text.strip_prefix('@') {
            Some(escaped) if escaped.starts_with('@') => escaped.to_owned(),
            Some(path) => read_file(path)?,
            None => text.to_owned(),
        };
        let types = types_of(schema, property, 0);
        let value = if is_json {
            serde_json::from_str(&text).map_err(|error| Failure::Usage(format!("`{key}` is not JSON: {error}")))?
        } else {
            value_of(&types, key, &text)?
        };
        match args.get_mut(key) {
            None => drop(args.insert(key.to_owned(), value)),
            Some(Value::Array(all)) if types.contains(&"array") => match value {
                Value::Array(more) => all.extend(more),
                other => all.push(other),
            },
            Some(_) => return Err(Failure::Usage(format!("`{key}` is given twice"))),
        }
    }
    Ok(Value::Object(args))
}

/// Returns the types that a property accepts; none if it accepts any.
fn types_of<'a>(root: &'a Value, property: &'a Value, depth: usize) -> Vec<&'a str> {
    const MAX_DEPTH: usize = 8;
    if depth > MAX_DEPTH {
        return Vec::new();
    }
    if let Some(path) = property["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
        return root.pointer(path).map_or_else(Vec::new, |found| types_of(root, found, depth + 1));
    }
    match &property["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ if property["enum"].is_array() || property["const"].is_string() => vec!["string"],
        _ => {
            let choices = ["anyOf", "oneOf", "allOf"].iter().filter_map(|name| property[*name].as_array()).flatten();
            choices.flat_map(|choice| types_of(root, choice, depth + 1)).collect()
        }
    }
}

/// Returns the value of a text for a property of these types. A text stays a text wherever one is accepted, unless it is
/// a value of another type that is accepted too.
fn value_of(types: &[&str], key: &str, text: &str) -> Outcome<Value> {
    let others: Vec<&str> = types.iter().copied().filter(|name| *name != "string" && *name != "null").collect();
    if others.is_empty() {
        return Ok(Value::from(text));
    }
    let is_accepted = |value: &Value| match value {
        Value::Null => types.contains(&"null"),
        Value::Bool(_) => others.contains(&"boolean"),
        Value::Number(number) => others.contains(&"number") || (others.contains(&"integer") && !number.is_f64()),
        Value::String(_) => false,
        Value::Array(_) => others.contains(&"array"),
        Value::Object(_) => others.contains(&"object"),
    };
    match serde_json::from_str::<Value>(text) {
        Ok(value) if is_accepted(&value) => Ok(value),
        _ if types.contains(&"string") => Ok(Value::from(text)),
        _ if others.contains(&"array") => Ok(Value::from(vec![text])),
        _ => Err(Failure::Usage(format!("`{key}` must be of the type {}, not '{text}'", others.join(" or ")))),
    }
}

#[cfg(test)]
#[path = "tool_arguments_tests.rs"]
mod tests;
