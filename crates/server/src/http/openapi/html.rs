//! The page that shows the OpenAPI description, without scripts.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}\
    code,pre{font:14px/1.4 ui-monospace,monospace}pre{background:#f4f4f4;padding:.8rem;overflow:auto}\
    summary{cursor:pointer;padding:.3rem 0}table{border-collapse:collapse}td{padding:.1rem 1rem .1rem 0;vertical-align:top}\
    b{display:inline-block;min-width:4.5rem}@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}\
    pre{background:#252525}a{color:#8bf}}";

/// Returns the page.
pub(super) fn page(description: &Value) -> String {
    let mut groups: BTreeMap<&str, String> = BTreeMap::new();
    for (path, operations) in description["paths"].as_object().into_iter().flatten() {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            let group = groups.entry(operation["tags"][0].as_str().unwrap_or_default()).or_default();
            show_operation(group, method, path, operation);
        }
    }
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Toolrest: the HTTP interface</title>\n\
         <style>{STYLE}</style>\n<h1>The HTTP interface</h1>\n\
         <p>Version {}. <a href=\"/api/openapi.json\">openapi.json</a> is the same for programs (OpenAPI 3.1).</p>\n",
        escaped(description["info"]["version"].as_str().unwrap_or_default())
    );
    for (group, operations) in groups {
        let _ = write!(page, "<h2 id=\"{0}\">{0}</h2>\n{operations}", escaped(group));
    }
    page.push_str("<h2 id=\"schemas\">schemas</h2>\n");
    for (name, schema) in description["components"]["schemas"].as_object().into_iter().flatten() {
        let name = escaped(name);
        let _ = write!(page, "<details id=\"{name}\"><summary><code>{name}</code></summary>");
        show_json(&mut page, schema);
        page.push_str("</details>\n");
    }
    page.push_str("</html>\n");
    page
}

fn show_operation(page: &mut String, method: &str, path: &str, operation: &Value) {
    let text = |name: &str| escaped(operation[name].as_str().unwrap_or_default());
    let _ = writeln!(
        page,
        "<details id=\"{}\"><summary><b>{}</b> <code>{}</code> – {}</summary>",
        text("operationId"),
        method.to_uppercase(),
        escaped(path),
        text("summary"),
    );
    let token = if operation["security"].is_array() { "Needs a token. " } else { "" };
    let _ = write!(page, "<p>{token}{}</p>\n<table>\n", text("description"));
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let part = |name: &str| escaped(parameter[name].as_str().unwrap_or_default());
        let _ = writeln!(page, "<tr><td><code>{}</code><td>{}<td>{}", part("name"), part("in"), part("description"));
    }
    page.push_str("</table>\n");
    if let Some(schema) = operation.pointer("/requestBody/content/application~1json/schema") {
        page.push_str("<p>Body:</p>");
        show_json(page, schema);
    }
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let _ = write!(
            page,
            "<p>{}: {}</p>",
            escaped(status),
            escaped(response["description"].as_str().unwrap_or_default())
        );
        if let Some(schema) = response.pointer("/content/application~1json/schema") {
            show_json(page, schema);
        }
    }
    page.push_str("</details>\n");
}

fn show_json(page: &mut String, json: &Value) {
    let _ = write!(page, "<pre>{}</pre>", escaped(&serde_json::to_string_pretty(json).unwrap_or_default()));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
