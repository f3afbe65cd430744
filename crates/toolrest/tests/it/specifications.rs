//! The examples of the specifications, run over HTTP in each kind of workspace.

use std::collections::BTreeSet;

use toolrest::core::DynTool;
use toolrest::toolsets;

use crate::fixture::{self, Specification};
use crate::on::On;

/// Instantiates tests for each kind of workspace.
macro_rules! in_each_kind_of_workspace {
    ($($name:ident),+) => {
        on!(sqlite, Sqlite: $($name),+);
        on!(postgres, Postgres: $($name),+);
        on!(folder, Folder: $($name),+);
    };
}

macro_rules! specification {
    ($folder:ident describes $toolset:ident: $($fixture:ident),+ $(,)?) => {
        mod $folder {
            use super::{On, Specification};

            pub const EXAMPLES: Specification = Specification {
                folder: stringify!($folder),
                toolset: stringify!($toolset),
                fixtures: &[$(stringify!($fixture)),+],
            };

            $(
                async fn $fixture(on: On) {
                    EXAMPLES.run(on, stringify!($fixture)).await;
                }
            )+

            in_each_kind_of_workspace![$($fixture),+];
        }
    };
}

specification! {
    spec_000 describes workspace:
    content_types, curl, edit, errors, grep, ls, mkdir, mv, paths, read, rm, touch, typescript, write,
}

specification! {
    spec_001 describes file:
    delete, errors, list, patch, read, search, write,
}

specification! {
    spec_002 describes system:
    definition, delete_file, errors, list_directory, move_file, read_file, run_code, web_fetch, web_search, write_file,
}

pub use spec_003::EXAMPLES as TOOL_BACKEND_EXAMPLES;

specification! {
    spec_003 describes backend:
    browse_web, data_analyze, data_visualize, execute_shell_command, github_create_file_in_repo, github_create_repo,
    github_get_pr_details, github_merge_pr, github_post_pr_comment, list_files, memory_delete, memory_retrieve,
    memory_save, read_file, write_file,
}

specification! {
    spec_004 describes coding:
    apply_patch, edit, errors, glob, ls, multiedit, paths, read, write,
}

const SPECIFICATIONS: [Specification; 5] =
    [spec_000::EXAMPLES, spec_001::EXAMPLES, spec_002::EXAMPLES, spec_003::EXAMPLES, spec_004::EXAMPLES];

/// Tools that are not in a specification; they have separate tests.
const OURS: [&str; 8] = [
    "start_process",
    "list_processes",
    "read_output",
    "write_input",
    "wait_process",
    "stop_process",
    "memory_search",
    "memory_list",
];

#[test]
fn every_fixture_is_run() {
    let in_tests: BTreeSet<String> =
        SPECIFICATIONS.iter().map(|specification| specification.folder.to_owned()).collect();
    assert_eq!(fixture::folders(), in_tests);
    for specification in SPECIFICATIONS {
        let in_tests = specification.fixtures.iter().map(ToString::to_string).collect();
        assert_eq!(specification.fixture_files(), in_tests, "{}", specification.folder);
    }
}

#[test]
fn every_tool_has_examples_that_succeed_and_examples_that_are_refused() {
    let toolsets = toolsets::all(&toolsets::Services::none());
    for specification in SPECIFICATIONS {
        let coverage = specification.coverage();
        let tools = toolsets.find(specification.toolset).unwrap().tools().map(DynTool::name);
        for name in tools.filter(|name| !OURS.contains(name)) {
            let toolset = specification.toolset;
            let calls = coverage.get(name).unwrap_or_else(|| panic!("{toolset}: no example calls {name}"));
            assert!(calls.successes > 0, "{toolset}: no example of {name} succeeds");
            assert!(calls.refusals > 0, "{toolset}: no example of {name} is refused");
        }
    }
}
