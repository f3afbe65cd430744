//! Tables of the arguments and results of tools, from their JSON schemas.

use std::fmt::Write as _;

use serde_json::Value;

/// Returns the table of a tool's arguments. The fields of nested objects follow as rows such as `edits[].oldString`.
pub fn arguments_table(schema: &Value) -> String {
    let rows = rows_of(schema);
    if rows.is_empty() {
        return "\nThe tool takes no arguments: `\"args\": {}`.\n".to_owned();
    }
    let mut table = String::from("\n| argument | type | required | |\n|---|---|---|---|\n");
    for Row { name, kind, is_required, description, .. } in rows {
        let required = if is_required { "yes" } else { "no" };
        writeln!(table, "| `{name}` | {kind} | {required} | {description} |").unwrap();
    }
    table
}

/// Returns the table of the fields of a tool's result, without `warnings`, which every result may have.
pub fn result_table(schema: &Value) -> String {
    let mut table = String::from("\n| field of the result | type | |\n|---|---|---|\n");
    let rows = rows_of(schema).into_iter().filter(|row| row.name != "warnings");
    for Row { name, kind, is_required, is_nullable, description } in rows {
        let optional = match (is_required, is_nullable) {
            (false, _) => ", may be missing",
            (true, true) => ", may be null",
            (true, false) => "",
        };
        writeln!(table, "| `{name}` | {kind}{optional} | {description} |").unwrap();
    }
    table
}

struct Row {
    name: String,
    kind: String,
    is_required: bool,
    is_nullable: bool,
    description: String,
}

fn rows_of(schema: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    add_rows(schema, schema, "", &mut rows);
    rows
}

/// Adds a row for each property of an object, and for the properties of its objects and of the objects in its lists.
fn add_rows(root: &Value, object: &Value, prefix: &str, rows: &mut Vec<Row>) {
    let required = object["required"].as_array().cloned().unwrap_or_default();
    for (name, property) in object["properties"].as_object().into_iter().flatten() {
        let path = format!("{prefix}{name}");
        rows.push(Row {
            name: path.clone(),
            kind: type_of(root, property),
            is_required: required.iter().any(|one| one == name),
            is_nullable: is_nullable(property),
            description: description_of(property),
        });
        let property = without_null(root, property);
        add_rows(root, property, &format!("{path}."), rows);
        add_rows(root, without_null(root, &property["items"]), &format!("{path}[]."), rows);
    }
}

fn description_of(property: &Value) -> String {
    let mut text = property["description"].as_str().unwrap_or_default().replace('\n', " ");
    if let Some(default) = property.get("default").filter(|default| !default.is_null() && !text.contains("Default")) {
        write!(text, " Default: `{default}`.").unwrap();
    }
    text
}

/// Follows references, and takes the other alternative of what may be null.
fn without_null<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/")) {
        return without_null(root, &root["$defs"][name]);
    }
    let alternatives = schema["anyOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    match alternatives {
        [one, null] if null["type"] == "null" => without_null(root, one),
        _ => schema,
    }
}

fn is_nullable(schema: &Value) -> bool {
    let types = schema["type"].as_array().into_iter().flatten();
    let alternatives = schema["anyOf"].as_array().into_iter().flatten().map(|one| &one["type"]);
    types.chain(alternatives).any(|one| one == "null")
}

fn type_of(root: &Value, property: &Value) -> String {
    let schema = without_null(root, property);
    if let Some(values) = values_of(root, schema) {
        return values.join(", ");
    }
    if let Some(alternatives) = schema["anyOf"].as_array() {
        return alternatives.iter().map(|one| type_of(root, one)).collect::<Vec<_>>().join(" or ");
    }
    let names: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect(),
        _ => return "any JSON".to_owned(),
    };
    let name = names.join(" or ");
    match name.as_str() {
        "array" => format!("array of {}s", type_of(root, &schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("object of {}s", type_of(root, &schema["additionalProperties"]))
        }
        _ => name,
    }
}

/// Returns the values of an enumeration, if the schema is one.
fn values_of(root: &Value, schema: &Value) -> Option<Vec<String>> {
    if let Some(values) = schema["enum"].as_array() {
        return Some(values.iter().filter(|value| !value.is_null()).map(|value| format!("`{value}`")).collect());
    }
    if !schema["const"].is_null() {
        return Some(vec![format!("`{}`", schema["const"])]);
    }
    let alternatives = schema["oneOf"].as_array()?;
    let values: Option<Vec<_>> = alternatives.iter().map(|one| values_of(root, without_null(root, one))).collect();
    values.map(|values| values.concat())
}
