use super::*;

const PROGRAM: &str = "/usr/bin/toolrest";

fn arguments() -> Vec<String> {
    ["mcp", "--dir", "/home/ada/project"].map(str::to_owned).into()
}

#[test]
fn an_entry_is_added_and_everything_else_stays() {
    let before = "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  }\n}\n";
    let entry = Client::Cursor.entry(PROGRAM, &arguments());
    let after: Value = serde_json::from_str(&with_entry(before, "mcpServers", entry.clone()).unwrap()).unwrap();
    assert_eq!(after["theme"], "dark");
    assert_eq!(after["mcpServers"]["other"]["command"], "x");
    assert_eq!(after["mcpServers"]["toolrest"]["args"][2], "/home/ada/project");
    let again = with_entry(&after.to_string(), "mcpServers", entry).unwrap();
    assert_eq!(again, after.to_string(), "an entry that is there is not written again");
}

#[test]
fn a_configuration_that_cannot_be_read_is_not_replaced() {
    let error = with_entry("{ // comment\n}", "servers", json!({})).unwrap_err();
    assert!(error.contains("JSON without comments"), "{error}");
    assert!(with_entry("{\"servers\": []}", "servers", json!({})).is_err());
}

#[test]
fn a_section_of_toml_is_added_and_replaced() {
    let before = "# mine\nmodel = \"o3\"\n\n[mcp_servers.other]\ncommand = \"x\"\n";
    let added = toml_section::with(before, "mcp_servers.toolrest", PROGRAM, &arguments()).unwrap();
    assert!(added.starts_with(before), "{added}");
    assert!(added.ends_with("args = [\"mcp\", \"--dir\", \"/home/ada/project\"]\n"), "{added}");
    let same = toml_section::with(&added, "mcp_servers.toolrest", PROGRAM, &arguments()).unwrap();
    assert_eq!(same, added);
    let more = format!("{added}\n[tools]\nweb = true\n");
    let changed = toml_section::with(&more, "mcp_servers.toolrest", "/opt/toolrest", &["mcp".to_owned()]).unwrap();
    assert!(changed.contains("command = \"/opt/toolrest\"") && !changed.contains(PROGRAM), "{changed}");
    assert!(changed.starts_with(before) && changed.ends_with("[tools]\nweb = true\n"), "{changed}");
}

#[test]
fn an_entry_of_toml_in_another_form_is_left_alone() {
    let before = "mcp_servers = { toolrest = { command = \"x\" } }\n";
    assert!(toml_section::with(before, "mcp_servers.toolrest", PROGRAM, &arguments()).is_err());
}

#[test]
fn only_the_lines_that_change_are_shown() {
    let text = shown(Path::new("/x.json"), "a\nb\nc\n", "a\nB\nc\n");
    assert_eq!(text, "/x.json\n@@ line 2 @@\n-b\n+B");
}
