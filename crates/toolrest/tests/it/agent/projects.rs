//! The projects that the tests of the toolset `agent` work on: a library in C, and a larger one in JavaScript.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::json;
use toolrest_testkit::Workspace;

/// Lines of `jsmn.h` with `return JSMN_ERROR_PART;`.
pub const RETURNS: [usize; 3] = [169, 262, 447];
/// Number of lines of `jsmn.h`.
pub const HEADER_LINES: usize = 471;
/// Files and matches of `function` in the project in JavaScript.
pub const SCRIPT_FILES: usize = 213;
pub const SCRIPTS_WITH_FUNCTIONS: usize = 139;
pub const FUNCTIONS: usize = 3_201;

/// The files of a project by their paths.
pub type Project = BTreeMap<String, String>;

/// A library of 12 files in C.
pub fn c_library() -> Project {
    let mut header = String::new();
    for line in 1..=HEADER_LINES {
        let text = match line {
            60 => "  JSMN_ERROR_PART = -3".to_owned(),
            190 => "JSMN_API int jsmn_parse(jsmn_parser *parser, const char *js) {".to_owned(),
            261 => "  parser->pos = start;".to_owned(),
            263 => "}".to_owned(),
            line if RETURNS.contains(&line) => "  return JSMN_ERROR_PART;".to_owned(),
            line if line % 10 == 0 => format!("/* {line} */"),
            line => format!("  int value_{line} = {line};"),
        };
        writeln!(header, "{text}").unwrap();
    }
    let tests = "#include \"../jsmn.h\"\nint main(void) {\n  return jsmn_parse(0, 0);\n}\n";
    let others = [
        ("LICENSE", "Permission is hereby granted\n"),
        ("Makefile", "test:\n\tcc test/tests.c -o test/test_default\n"),
        ("README.md", "# JSMN\n\nA parser.\n"),
        ("library.json", "{\"name\": \"jsmn\"}\n"),
        ("example/jsondump.c", "#include \"../jsmn.h\"\n"),
        ("example/simple.c", "#include \"../jsmn.h\"\nint r = jsmn_parse(0, 0);\n"),
        ("test/test.h", "#define check(x) (x)\n"),
        ("test/testutil.h", "#include \"test.h\"\n"),
        ("test/tests.c", tests),
        (".clang-format", "BasedOnStyle: LLVM\n"),
        (".travis.yml", "language: c\n"),
    ];
    let others = others.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned()));
    others.chain([("jsmn.h".to_owned(), header)]).collect()
}

/// A library of 213 files in JavaScript.
pub fn script_library() -> Project {
    let mut project = Project::new();
    for n in 0..SCRIPT_FILES {
        let path = match n {
            0 => "index.js".to_owned(),
            1 => "package.json".to_owned(),
            2..=60 => format!("lib/module{n}.js"),
            61..=150 => format!("test/acceptance/case{}/test{n}.js", n % 20),
            _ => format!("examples/example{}/index{n}.js", n % 40),
        };
        let mut text = format!("'use strict';\n// file {n}\n");
        if n < SCRIPTS_WITH_FUNCTIONS {
            // The rest goes to the first file.
            let each = FUNCTIONS / SCRIPTS_WITH_FUNCTIONS;
            let rest = if n == 0 { FUNCTIONS % SCRIPTS_WITH_FUNCTIONS } else { 0 };
            for line in 0..each + rest {
                writeln!(text, "exports.handler{line} = function () {{ return {line}; }};").unwrap();
            }
        }
        project.insert(path, text);
    }
    let response = project.remove("lib/module2.js").unwrap() + "exports.compileETag = (val) => {\n  return val;\n};\n";
    project.insert("lib/response.js".to_owned(), response);
    project
}

/// A project of many small files.
pub fn many_files(count: usize) -> Project {
    let path = |n: usize| match n % 3 {
        0 => format!("src/group{}/part{}/file{n}.rs", n % 50, n % 7),
        1 => format!("docs/chapter{}/page{n}.md", n % 30),
        _ => format!("tests/test{n}.rs"),
    };
    (0..count).map(|n| (path(n), format!("{n}\n"))).collect()
}

/// Number of files that one patch adds.
const FILES_OF_PATCH: usize = 500;

/// Writes a project with patches.
pub async fn write(workspace: &Workspace, project: &Project) {
    let files: Vec<(&String, &String)> = project.iter().collect();
    for some in files.chunks(FILES_OF_PATCH) {
        let mut patch = "*** Begin Patch\n".to_owned();
        for (path, text) in some {
            writeln!(patch, "*** Add File: {path}").unwrap();
            for line in text.lines() {
                writeln!(patch, "+{line}").unwrap();
            }
        }
        patch.push_str("*** End Patch\n");
        workspace.call_of("coding", "apply_patch", &json!({ "patchText": patch })).await.success();
    }
}
