//! `toolrest mcp install`: the configurations of agents.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use toolrest_testkit::temp_folder;

use crate::command::{BINARY, stderr, stdout, toolrest};

fn install(home: &Path, arguments: &[&str]) -> Output {
    let arguments = [&["mcp", "install"], arguments].concat();
    toolrest(home, &arguments).env("HOME", home).env_remove("XDG_CONFIG_HOME").output().unwrap()
}

fn json(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn installing_shows_the_change_and_keeps_what_is_there() {
    let home = temp_folder("agents");
    let file = home.path().join(".claude.json");
    fs::write(
        &file,
        "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
    )
    .unwrap();
    let printed = install(home.path(), &["claude-code", "--print"]);
    assert!(printed.status.success(), "{}", stderr(&printed));
    assert!(stdout(&printed).contains("+    \"toolrest\": {"), "{}", stdout(&printed));
    assert!(json(&file)["mcpServers"].get("toolrest").is_none(), "nothing is written with --print");

    let done = install(home.path(), &["claude-code"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let config = json(&file);
    assert_eq!(config["numStartups"], 7);
    assert_eq!(config["mcpServers"]["other"]["command"], "x");
    assert_eq!(config["mcpServers"]["toolrest"]["command"], BINARY);
    assert_eq!(config["mcpServers"]["toolrest"]["args"], serde_json::json!(["mcp"]));
    let again = install(home.path(), &["claude-code"]);
    assert!(stderr(&again).contains("has this entry already"), "{}", stderr(&again));
}

#[test]
fn every_agent_gets_an_entry_in_its_own_file() {
    let home = temp_folder("agents");
    let folder = home.path().canonicalize().unwrap();
    let dir = folder.to_str().unwrap();
    let files = [
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", "/mcpServers/toolrest/args/2"),
        ("cursor", ".cursor/mcp.json", "/mcpServers/toolrest/args/2"),
        ("vscode", ".config/Code/User/mcp.json", "/servers/toolrest/args/2"),
        ("opencode", ".config/opencode/opencode.json", "/mcp/toolrest/command/3"),
        ("gemini", ".gemini/settings.json", "/mcpServers/toolrest/args/2"),
    ];
    for (client, file, place) in files {
        let done = install(home.path(), &[client, "--dir", dir]);
        assert!(done.status.success(), "{client}: {}", stderr(&done));
        let config = json(&home.path().join(file));
        assert_eq!(config.pointer(place).and_then(Value::as_str), Some(dir), "{client}: {config}");
    }
    let done = install(home.path(), &["codex", "--dir", dir]);
    assert!(done.status.success(), "{}", stderr(&done));
    let config = fs::read_to_string(home.path().join(".codex/config.toml")).unwrap();
    assert!(config.starts_with("[mcp_servers.toolrest]\ncommand = "), "{config}");

    let refused = install(home.path(), &["claude-desktop", "--print"]);
    assert!(!refused.status.success());
    assert!(stderr(&refused).contains("name one with --dir"), "{}", stderr(&refused));
}
