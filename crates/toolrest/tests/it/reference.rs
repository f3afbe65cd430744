//! Checks that the reference pages in `docs/` are what the code generates. `make docs` writes them.

mod schema_table;
mod tool_pages;

use std::{fs, path::Path};

use toolrest::{settings, toolsets};

use crate::command::{stdout, toolrest};

/// Compares a page with what the code generates. With `TOOLREST_WRITE_DOCS` set, writes the page instead.
fn is_current(name: &str, introduction: &str, body: &str) {
    let page = format!("{introduction}\n\nThis page is generated: `make docs` writes it.\n\n{}\n", body.trim_end());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("TOOLREST_WRITE_DOCS").is_some() {
        fs::write(path, page).unwrap();
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_else(|error| panic!("docs/{name}: {error}; run `make docs`"));
    let differing = found.lines().zip(page.lines()).find(|(found, current)| found != current);
    assert!(found == page, "docs/{name} is out of date; run `make docs`. First difference (old, new): {differing:?}");
}

#[test]
fn the_configuration_page_is_current() {
    is_current(
        "configuration.md",
        "# Configuration\n\nEach setting has a default. The settings file (`--config FILE`, or `./toolrest.toml` if it exists) \
         overrides the default, environment variables override the file, and the command line overrides both. \
         `toolrest config` prints all values with their origin.",
        &settings::reference(),
    );
}

#[test]
fn the_reference_of_the_command_line_is_current() {
    const MARK: &str = "<!-- The rest of this page is generated: `make docs` writes it. -->\n\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command-line.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, _) = page.split_once(MARK).unwrap();
    let output = toolrest(Path::new("/"), &["man", "--markdown"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let current = format!("{before}{MARK}{}\n", stdout(&output).trim_end());
    if std::env::var_os("TOOLREST_WRITE_DOCS").is_some() {
        fs::write(path, current).unwrap();
        return;
    }
    assert!(page == current, "docs/command-line.md is out of date; run `make docs`");
}

/// The default limits of programs, for the page of the sandbox.
fn program_limits_table() -> String {
    let run = settings::Settings::default().run;
    let sandbox = toolrest_sandbox::Limits::default();
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let gib = |bytes: u64| format!("{} GiB", bytes >> 30);
    let rows = [
        format!(
            "time | {} s by the clock (`run.timeout_ms`), up to {} s where a call asks for it (`run.max_timeout_ms`); each \
             process may keep all processors busy for that time | the launcher; the kernel",
            run.timeout_ms / 1000,
            run.max_timeout_ms / 1000
        ),
        format!(
            "memory | {} for all processes, files in `/tmp` and `/dev/shm` included (`run.memory_bytes`), up to {} where a \
             call asks for it (`run.max_memory_bytes`) | control group, else a watchdog that looks every 20 to 250 ms",
            gib(run.memory_bytes),
            gib(run.max_memory_bytes)
        ),
        format!(
            "processes | {}, threads included (`run.processes`) | control group where there is one; the kernel's limit for \
             each user",
            run.processes
        ),
        format!(
            "disk | {} and {} files more than before in all writable folders (`run.disk_bytes`, `run.new_files`); no file \
             may be larger than that | a watchdog that looks every 50 ms; the kernel",
            gib(run.disk_bytes),
            run.new_files
        ),
        format!("temporary files | {} in `/tmp`, as much in `/dev/shm` | the kernel", mib(sandbox.temporary_bytes)),
        format!("open files | {} for each process | the kernel", sandbox.open_files),
        "inotify | 8 instances and 16,384 watches | the kernel".to_owned(),
        "epoll | 65,536 watched files; a descriptor that waits in a socket counts as 1,024 | a watchdog that looks every 250 ms"
            .to_owned(),
        "locks | 32,768 on files, folders, pipes and whatever else can be opened | a watchdog that looks every 250 ms"
            .to_owned(),
        "sockets | 1,024 of all kinds; each direction of a TCP connection holds 64 KiB | a watchdog that looks every 250 ms; \
         the kernel"
            .to_owned(),
        format!(
            "output | {} printed (`run.output_bytes`); of each stream {} KiB are kept, the beginning and the end \
             (`run.output_kept_bytes`) | the server",
            mib(run.output_bytes),
            run.output_kept_bytes >> 10
        ),
    ];
    format!("| {} |\n", rows.join(" |\n| "))
}

#[test]
fn the_limits_on_the_sandbox_page_are_current() {
    const HEAD: &str = "| limit | default | enforced by |\n|---|---|---|\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sandbox.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(HEAD).unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let current = format!("{before}{HEAD}{}\n{after}", program_limits_table());
    if std::env::var_os("TOOLREST_WRITE_DOCS").is_some() {
        fs::write(path, current).unwrap();
        return;
    }
    assert!(page == current, "docs/sandbox.md is out of date; run `make docs`");
}

#[test]
fn the_errors_page_is_current() {
    is_current(
        "errors.md",
        "# Errors\n\nThe kinds of errors, with the HTTP status, the code in each toolset, and what to do. \"retry\" says whether the \
         same call may succeed later.",
        &toolsets::errors::reference(),
    );
}

#[test]
fn every_tool_refuses_arguments_it_does_not_know() {
    let all = toolsets::all(&toolsets::Services::none());
    // The schemas of `agent` are short, because models pay for them; its own tests send it unknown arguments.
    for toolset in all.iter().filter(|toolset| toolset.name() != "agent") {
        for tool in toolset.tools() {
            let schema = tool.input_schema();
            assert_eq!(schema["additionalProperties"], false, "{} takes anything", tool.name());
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{} does not describe `{name}`", tool.name());
            }
        }
    }
}

#[test]
fn the_time_limit_in_descriptions_is_that_of_the_settings() {
    let seconds = settings::Settings::default().run.timeout_ms / 1000;
    let default = format!("Default: the server's `run.timeout_ms`, {seconds} seconds unless the operator changes it.");
    let toolsets = toolsets::all(&toolsets::Services::none());
    for name in ["run_code", "executeShellCommand", "data_analyze", "data_visualize"] {
        let tool = toolsets.iter().flat_map(toolrest::core::Toolset::tools).find(|tool| tool.name() == name).unwrap();
        let about = tool.input_schema()["properties"]["timeout"]["description"].as_str().unwrap().replace('\n', " ");
        assert!(about.ends_with(&default), "{name}: {about}");
    }
}

#[test]
fn the_lifetimes_of_tokens_in_the_readme_are_those_of_the_settings() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let settings = settings::Settings::default();
    for lifetime in [
        format!("An access token is valid for {} minutes", settings.jwt.access_token_expiration_minutes),
        format!("is valid for {} days and can be used once", settings.auth.refresh_token_expiration_days),
    ] {
        assert!(readme.contains(&lifetime), "README.md does not say: {lifetime}");
    }
}

#[test]
fn make_test_does_not_hide_build_output() {
    let makefile = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Makefile")).unwrap();
    // Files that no rule makes, such as sources, have none.
    let rule = |target: &str| {
        let start = makefile.split(&format!("\n{target}:")).nth(1)?;
        start.split("\n\n").next().map(str::to_owned)
    };
    assert!(rule("test").is_some(), "there is no rule for `test`");
    let mut targets = vec!["test".to_owned()];
    while let Some(target) = targets.pop() {
        let Some(rule) = rule(&target) else { continue };
        let (needed, commands) = rule.split_once('\n').unwrap_or((&rule, ""));
        assert!(!commands.contains("--quiet") && !commands.contains("cargo -q"), "make {target}: {commands}");
        targets.extend(needed.split_whitespace().map(str::to_owned));
    }
}
