//! The boundaries between crates that ARCHITECTURE.md promises.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the names of all crates of the workspace, which are the names of their folders.
fn crates() -> BTreeSet<String> {
    let folders = fs::read_dir(repository().join("crates")).unwrap().map(|entry| entry.unwrap());
    folders.map(|folder| folder.file_name().into_string().unwrap()).collect()
}

fn manifest(name: &str) -> String {
    read(&repository().join("crates").join(name).join("Cargo.toml"))
}

/// Returns the dependencies of a crate by name, each with the rest of its line, without those for tests.
fn dependencies(name: &str) -> BTreeMap<String, String> {
    let manifest = manifest(name);
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let lines = section.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_at(line.find(['.', ' ']).unwrap()))
        .map(|(name, rest)| (name.into(), rest.into()))
        .collect()
}

/// Returns the crates of the workspace that a crate depends on.
fn own_dependencies(name: &str) -> BTreeSet<String> {
    let crates = crates();
    let short = |name: &String| name.strip_prefix("toolrest-").unwrap_or(name).to_owned();
    dependencies(name).keys().map(short).filter(|name| crates.contains(name)).collect()
}

/// Reads the list of dependencies in ARCHITECTURE.md: lines of the form `crate → crate, crate`.
fn documented_dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let page = read(&repository().join("ARCHITECTURE.md"));
    let (_, list) = page.split_once("\nDependencies between crates").unwrap();
    let list = list.split("```").nth(1).unwrap();
    let lines = list.lines().filter_map(|line| line.split_once('→'));
    lines
        .map(|(name, uses)| (name.trim().to_owned(), uses.split(',').map(|name| name.trim().to_owned()).collect()))
        .collect()
}

#[test]
fn crates_depend_on_each_other_as_the_architecture_says() {
    let actual: BTreeMap<String, BTreeSet<String>> = crates()
        .into_iter()
        .filter(|name| !["bench", "testkit"].contains(&name.as_str()))
        .map(|name| (name.clone(), own_dependencies(&name)))
        .filter(|(_, uses)| !uses.is_empty())
        .collect();
    assert_eq!(actual, documented_dependencies(), "the list of dependencies in ARCHITECTURE.md differs");
}

#[test]
fn no_crate_of_the_product_depends_on_test_crates() {
    for name in crates().iter().filter(|name| *name != "bench") {
        let uses = own_dependencies(name);
        assert!(!uses.contains("testkit") && !uses.contains("bench"), "{name} depends on {uses:?}");
    }
}

#[test]
fn only_the_store_depends_on_database_drivers() {
    for name in ["core", "workspaces", "directory", "ops", "toolsets", "server", "toolrest"] {
        for driver in ["rusqlite", "tokio-postgres", "deadpool-postgres"] {
            assert!(!dependencies(name).contains_key(driver), "{name} depends on {driver}");
        }
    }
}

#[test]
fn core_does_not_depend_on_io_libraries() {
    let dependencies = dependencies("core");
    for library in ["axum", "hyper", "libc", "notify", "reqwest", "rusqlite", "rustix", "tempfile", "tokio-postgres"] {
        assert!(!dependencies.contains_key(library), "core depends on {library}");
    }
}

#[test]
fn core_does_not_get_the_io_features_of_tokio() {
    let manifest = read(&repository().join("Cargo.toml"));
    let shared = manifest.lines().find(|line| line.starts_with("tokio = ")).unwrap();
    for features in [shared, &dependencies("core")["tokio"]] {
        for feature in ["fs", "full", "io-std", "io-util", "net", "process", "signal"] {
            assert!(
                !features.contains(&format!("\"{feature}\"")),
                "core gets the feature {feature} of tokio: {features}"
            );
        }
    }
}

/// Returns the source files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// Returns the modules for I/O of the standard library and of tokio that a source text uses, by path or in a nested
/// `use`.
fn io_modules(source: &str) -> Vec<String> {
    let code: String = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join(" ");
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut used = Vec::new();
    for root in ["std", "tokio"] {
        for (at, _) in code.match_indices(&format!("{root}::")) {
            let is_whole = !code[..at].ends_with(is_name);
            let rest = &code[at + root.len() + 2..];
            // The names that follow: one, or those at the first level of a nested `use`.
            let names: Vec<&str> = match rest.strip_prefix('{') {
                Some(list) => first_level(list),
                None => vec![rest],
            };
            let first_name =
                |text: &str| text.trim_start().split(|c| !is_name(c)).next().unwrap_or_default().to_owned();
            let names =
                names.into_iter().map(first_name).filter(|name| ["fs", "net", "process"].contains(&name.as_str()));
            used.extend(names.filter(|_| is_whole).map(|name| format!("{root}::{name}")));
        }
    }
    used
}

/// Splits the items of a nested `use` up to its closing brace, without those of inner braces.
fn first_level(list: &str) -> Vec<&str> {
    let (mut items, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                items.push(&list[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items
}

#[test]
fn core_does_not_use_io_modules() {
    for path in sources(&repository().join("crates/core/src")) {
        let used = io_modules(&read(&path));
        assert!(used.is_empty(), "{} uses {used:?}", path.display());
    }
}

#[test]
fn io_modules_are_found_however_they_are_imported() {
    for (source, expected) in [
        ("use std::fs;", &["std::fs"][..]),
        ("let text = std::fs::read(path);", &["std::fs"]),
        ("use std::{\n    collections::{BTreeMap, HashMap},\n    net::IpAddr,\n};", &["std::net"]),
        ("use tokio::{process::Command, sync::Mutex};", &["tokio::process"]),
        ("tokio::net::TcpStream::connect(address)", &["tokio::net"]),
        ("// std::fs is not used here\nuse std::fmt;", &[]),
        ("use std::{fmt, sync::Arc};", &[]),
    ] {
        assert_eq!(io_modules(source), expected, "{source}");
    }
}
