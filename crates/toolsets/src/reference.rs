//! The tools of a toolset as a page of documentation, from the same schemas that clients get.

use serde_json::Value;
use std::fmt::Write;
use toolrest_core::{DynTool, Toolset};

/// Describes every tool with its arguments and its answer.
pub fn reference(toolset: &Toolset) -> String {
    toolset.tools().map(tool).collect::<Vec<_>>().join("\n")
}

fn tool(tool: &dyn DynTool) -> String {
    let mut page = format!("## `{}`\n\n{}.\n", tool.name(), tool.description());
    for (title, schema) in [("takes", tool.input_schema()), ("gives", tool.output_schema())] {
        // Writing to a string does not fail.
        let _ = write!(page, "\n| {title} | type | |\n|---|---|---|\n");
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let optional = if required.iter().any(|needed| needed == name) { "" } else { ", optional" };
            // A row of a table is one line.
            let about = property["description"].as_str().unwrap_or_default().replace('\n', " ");
            let _ = writeln!(page, "| `{name}` | {}{optional} | {about} |", type_of(property));
        }
    }
    page
}

fn type_of(property: &Value) -> String {
    match &property["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".into(),
    }
}
