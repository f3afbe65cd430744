//! The reference pages say what the code does. `make docs` writes them anew.

use std::{fs, path::Path};

use toolrest::{settings, toolsets};

/// Compares a page with what the code says, or writes it where that is asked for.
fn is_current(name: &str, introduction: &str, body: &str) {
    let page = format!("{introduction}\n\nThis page is made from the code by `make docs`.\n\n{}\n", body.trim_end());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("TOOLREST_WRITE_DOCS").is_some() {
        fs::write(path, page).unwrap();
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_else(|error| panic!("docs/{name}: {error}; run `make docs`"));
    assert!(found == page, "docs/{name} is out of date; run `make docs`");
}

#[test]
fn the_page_of_settings_is_current() {
    is_current(
        "configuration.md",
        "# Configuration\n\nA setting is taken from the last of these that gives it: its default, the settings file \
         (`--config FILE`, or `./toolrest.toml` if it exists), the environment, the command line. `toolrest config` \
         prints the values in force with their origin.",
        &settings::reference(),
    );
}

#[test]
fn the_page_of_errors_is_current() {
    is_current(
        "errors.md",
        "# Errors\n\nOne table for all toolsets: a kind of error, and what each dialect calls it.",
        &toolsets::errors::reference(),
    );
}

#[test]
fn the_pages_of_tools_are_current() {
    for toolset in toolsets::all(&toolsets::Services::none()).iter() {
        let name = toolset.name();
        let introduction = format!("# The toolset `{name}`");
        is_current(&format!("toolset-{name}.md"), &introduction, &toolsets::reference(toolset));
    }
}

#[test]
fn every_tool_refuses_arguments_it_does_not_know() {
    for toolset in toolsets::all(&toolsets::Services::none()).iter() {
        for tool in toolset.tools() {
            let schema = tool.input_schema();
            assert_eq!(schema["additionalProperties"], false, "{} takes anything", tool.name());
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{} does not describe `{name}`", tool.name());
            }
        }
    }
}
