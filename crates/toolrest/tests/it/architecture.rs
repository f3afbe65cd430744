//! The boundaries between crates that ARCHITECTURE.md promises.

use std::{collections::BTreeSet, fs, path::Path};

/// The dependencies of a crate of ours, without those for its tests.
fn dependencies(name: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("Cargo.toml");
    let manifest = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let section = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    section.lines().filter_map(|line| line.split(['.', ' ']).next()).map(str::to_owned).collect()
}

#[test]
fn only_the_store_speaks_to_databases() {
    for name in ["core", "workspaces", "directory", "ops", "toolsets", "server", "toolrest"] {
        for driver in ["rusqlite", "tokio-postgres", "deadpool-postgres"] {
            assert!(!dependencies(name).contains(driver), "{name} depends on {driver}");
        }
    }
}

#[test]
fn dependencies_between_crates_point_one_way() {
    for (name, allowed) in [
        ("core", &[][..]),
        ("store", &["toolrest-core"]),
        ("workspaces", &["toolrest-core", "toolrest-directory", "toolrest-store"]),
        ("directory", &[]),
        ("edit", &[]),
        ("sandbox", &[]),
        ("ops", &["toolrest-core", "toolrest-edit", "toolrest-sandbox"]),
        ("toolsets", &["toolrest-core", "toolrest-ops"]),
    ] {
        for dependency in dependencies(name).iter().filter(|dependency| dependency.starts_with("toolrest")) {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn the_regular_expressions_stand_alone() {
    let of_ours: Vec<String> =
        dependencies("pgregex").into_iter().filter(|name| name.starts_with("toolrest")).collect();
    assert!(of_ours.is_empty(), "pgregex depends on {of_ours:?}");
}

#[test]
fn core_has_no_input_or_output() {
    for outside in ["axum", "hyper", "rusqlite", "tokio-postgres", "notify", "reqwest"] {
        assert!(!dependencies("core").contains(outside), "core depends on {outside}");
    }
}
