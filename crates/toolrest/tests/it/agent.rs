//! The toolset `agent`: reading, listing and searching.

pub mod projects;

use base64::Engine;
use serde_json::{Value, json};
use toolrest_testkit::Workspace;

use crate::on::{On, text_at};
use projects::{FUNCTIONS, HEADER_LINES, SCRIPT_FILES, SCRIPTS_WITH_FUNCTIONS};

on_every_backend![
    lines_are_read_by_paths_in_every_form,
    one_bad_path_does_not_spoil_the_rest,
    pictures_programs_and_outside_paths_are_told_apart,
    patterns_are_understood_as_they_were_meant,
    a_tree_lists_folders_as_deep_as_fits,
    forms_of_text_are_named_and_ranges_are_forgiving,
    ignored_files_are_left_out_unless_they_are_named;
    a_deleted_file_is_explained,
    rules_that_are_not_applied_are_named
];

on!(of_large_projects, Sqlite: a_log_is_read_to_its_end_in_parts, many_matches_are_counted_and_kept, a_large_tree_fits);
on!(of_large_folders, Folder: a_log_is_read_to_its_end_in_parts, many_matches_are_counted_and_kept, a_large_tree_fits);

/// Calls a tool that must succeed; returns its text.
#[track_caller]
pub fn text_of(reply: &toolrest_testkit::Reply) -> String {
    assert_eq!(reply.status, 200, "{reply}");
    text_at(&reply.json(), "/text").to_owned()
}

/// Calls a tool that must succeed; returns its text.
pub async fn text(workspace: &Workspace, tool: &str, args: Value) -> String {
    text_of(&workspace.call_of("agent", tool, &args).await)
}

/// Calls a tool that must be refused with this code; returns the text.
pub async fn refused(workspace: &Workspace, code: &str, tool: &str, args: Value) -> String {
    let reply = workspace.call_of("agent", tool, &args).await;
    assert!(reply.status >= 400, "{reply}");
    let body = reply.json();
    assert_eq!(text_at(&body, "/error"), code, "{reply}");
    text_at(&body, "/text").to_owned()
}

/// Returns the first 8 digits of the hash of a file.
pub async fn hash(workspace: &Workspace, path: &str) -> String {
    let read = workspace.ok("read", json!({ "path": path })).await;
    text_at(&read, "/hash")[..8].to_owned()
}

/// Writes a file with exactly these bytes.
pub async fn write_bytes(workspace: &Workspace, path: &str, bytes: &[u8]) {
    let content = base64::prelude::BASE64_STANDARD.encode(bytes);
    let args = json!({ "path": path, "content": content, "encoding": "base64", "createDirs": true });
    workspace.call_of("system", "write_file", &args).await.success();
}

async fn lines_are_read_by_paths_in_every_form(on: On) {
    let workspace = on.workspace().await;
    projects::write(&workspace, &projects::c_library()).await;
    let hash = hash(&workspace, "/jsmn.h").await;
    let expected = format!(
        "== jsmn.h 261-263 of {HEADER_LINES} #{hash}\n261\t  parser->pos = start;\n262\t  return JSMN_ERROR_PART;\n263\t}}"
    );
    for paths in [
        json!(["jsmn.h:261-263"]),
        json!(["/workspace/jsmn.h:261-263"]),
        json!(["./jsmn.h#L261-L263"]),
        json!(["a/jsmn.h:261-263"]),
        json!(["jsmn.h:263-261"]),
        json!("jsmn.h:261-263"),
        json!("[\"jsmn.h:261-263\"]"),
    ] {
        assert_eq!(text(&workspace, "read", json!({ "paths": paths })).await, expected, "{paths}");
    }
    for name in ["path", "file", "file_path", "filePath", "files"] {
        assert_eq!(text(&workspace, "read", json!({ name: "jsmn.h:261-263" })).await, expected, "{name}");
    }
    let whole = text(&workspace, "read", json!({ "paths": ["jsmn.h"] })).await;
    assert!(whole.starts_with(&format!("== jsmn.h {HEADER_LINES} lines #{hash}\n1\t")), "{whole}");
    assert_eq!(whole.lines().count(), HEADER_LINES + 1);
    let around = text(&workspace, "read", json!({ "paths": ["jsmn.h:57"] })).await;
    assert!(around.starts_with(&format!("== jsmn.h 27-107 of {HEADER_LINES} #{hash}\n27\t")), "{around}");
    let unknown = refused(&workspace, "bad_args", "read", json!({ "path": "jsmn.h", "colour": 1 })).await;
    assert!(unknown.contains("unknown argument `colour`"), "{unknown}");
}

async fn one_bad_path_does_not_spoil_the_rest(on: On) {
    let workspace = on.workspace().await;
    projects::write(&workspace, &projects::c_library()).await;
    let read = text(&workspace, "read", json!({ "paths": ["jsmn.h:1-2", "nope.h"] })).await;
    let lines: Vec<&str> = read.lines().collect();
    assert!(lines[1].starts_with("1\t") && lines[2].starts_with("2\t"), "{read}");
    assert_eq!(lines[3], "error not_found: nope.h", "{read}");
    let only = refused(&workspace, "not_found", "read", json!({ "paths": ["test/jsmn.h"] })).await;
    assert_eq!(only, "error not_found: test/jsmn.h\nnext: similar: jsmn.h");
    let both = refused(&workspace, "not_found", "read", json!({ "paths": ["zzzz.q", "yyyy.q"] })).await;
    assert_eq!(both.matches("error not_found: ").count(), 2, "{both}");
}

async fn pictures_programs_and_outside_paths_are_told_apart(on: On) {
    let workspace = on.workspace().await;
    let picture = image::DynamicImage::new_rgb8(3000, 2000);
    let mut png = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut png, image::ImageFormat::Png).unwrap();
    write_bytes(&workspace, "docs/logo.png", &png.into_inner()).await;
    write_bytes(&workspace, "bin/program", b"\x7fELF\x02\x01\x01\0\0\0\0").await;
    let reply = workspace.call_of("agent", "read", &json!({ "paths": ["docs/logo.png"] })).await;
    let body = reply.success();
    assert!(text_at(&body, "/text").starts_with("== docs/logo.png image 3000x2000, shown at 1568x1045 #"), "{body}");
    let data = base64::prelude::BASE64_STANDARD.decode(text_at(&body, "/blocks/0/data")).unwrap();
    assert!(data.len() <= 1 << 20);
    let shown = image::load_from_memory(&data).unwrap();
    assert_eq!((shown.width(), shown.height(), body["blocks"][1].is_null()), (1568, 1045, true));
    let program = text(&workspace, "read", json!({ "paths": ["bin/program"] })).await;
    assert!(program.starts_with("== bin/program binary (ELF program), 11 #"), "{program}");
    assert_eq!(program.lines().count(), 1);
    let outside = refused(&workspace, "outside", "read", json!({ "paths": ["/usr/include/stdio.h"] })).await;
    assert_eq!(
        outside,
        "error outside: /usr/include/stdio.h is not in the project\nnext: run {\"command\":\"sed -n 1,80p /usr/include/stdio.h\"}"
    );
    refused(&workspace, "outside", "read", json!({ "paths": ["../x"] })).await;
}

async fn patterns_are_understood_as_they_were_meant(on: On) {
    let workspace = on.workspace().await;
    projects::write(&workspace, &projects::c_library()).await;
    let plain = text(&workspace, "grep", json!({ "pattern": "jsmn_parse(", "context": 0 })).await;
    assert_eq!(
        plain.lines().next().unwrap(),
        "== 3 matches in 3 files (as plain text: \"jsmn_parse(\" is no regular expression)"
    );
    assert!(plain.contains("\njsmn.h\n190:JSMN_API int jsmn_parse(jsmn_parser"), "{plain}");
    let halved = text(&workspace, "grep", json!({ "pattern": "value_12\\\\b[" })).await;
    assert!(halved.starts_with("== no matches in 12 files"), "{halved}");
    assert_eq!(text(&workspace, "grep", json!({ "pattern": "zzz" })).await, "== no matches in 12 files");
    let case = text(&workspace, "grep", json!({ "pattern": "PERMISSION" })).await;
    assert_eq!(case, "== no matches in 12 files\n.. 1 ignoring case: (?i)PERMISSION");
    let one = text(&workspace, "grep", json!({ "pattern": "parser->pos" })).await;
    assert!(one.starts_with("== 1 match in 1 file\njsmn.h\n241-"), "{one}");
    assert!(one.contains("\n261:  parser->pos = start;\n262-  return JSMN_ERROR_PART;\n"), "{one}");
    let in_one = text(&workspace, "grep", json!({ "pattern": "^BasedOn", "path": ".clang-format" })).await;
    assert!(in_one.contains("1:BasedOnStyle"), "hidden files are searched: {in_one}");
    let of_glob = text(&workspace, "grep", json!({ "pattern": "include", "glob": "*.c", "context": 0 })).await;
    assert!(of_glob.starts_with("== 3 matches in 3 files\n"), "{of_glob}");
    let bad = refused(&workspace, "bad_pattern", "grep", json!({ "pattern": "x", "glob": "[" })).await;
    assert!(bad.contains("invalid glob"), "{bad}");
}

async fn a_tree_lists_folders_as_deep_as_fits(on: On) {
    let workspace = on.workspace().await;
    projects::write(&workspace, &projects::c_library()).await;
    let tree = text(&workspace, "ls", json!({})).await;
    assert!(tree.starts_with("== . 12 files, 2 folders\n.clang-format 19\n.travis.yml 12\nLICENSE 29\n"), "{tree}");
    assert!(tree.contains("\ntest/\n test.h 21\n tests.c 67\n testutil.h 18"), "{tree}");
    let found = text(&workspace, "ls", json!({ "glob": "*.c" })).await;
    assert_eq!(found, "== 3 files fit *.c\nexample/jsondump.c\nexample/simple.c\ntest/tests.c");
    let none = text(&workspace, "ls", json!({ "path": "test", "glob": "*.rs" })).await;
    assert_eq!(none, "== no file fits *.rs in test (3 files looked at)");
    assert_eq!(text(&workspace, "ls", json!({ "path": "test/test.h" })).await, "test/test.h 21");
    let folder = text(&workspace, "read", json!({ "paths": ["test"] })).await;
    assert!(folder.starts_with("== test 3 files, 0 folders\n"), "{folder}");
    refused(&workspace, "not_found", "ls", json!({ "path": "nothing" })).await;
}

async fn forms_of_text_are_named_and_ranges_are_forgiving(on: On) {
    let workspace = on.workspace().await;
    write_bytes(&workspace, "crlf.txt", b"one\r\ntwo\r\n").await;
    write_bytes(&workspace, "latin.txt", b"gr\xfc\xdfe\n").await;
    write_bytes(&workspace, "wide.txt", b"\xff\xfea\0b\0\n\0").await;
    let forms = [("crlf.txt", " crlf"), ("latin.txt", " latin-1"), ("wide.txt", " bom utf-16")];
    for (path, form) in forms {
        let read = text(&workspace, "read", json!({ "paths": [path] })).await;
        assert!(read.lines().next().unwrap().ends_with(form), "{read}");
    }
    let past = text(&workspace, "read", json!({ "paths": ["crlf.txt:2-99"] })).await;
    assert!(past.contains("== crlf.txt 2 of 2 #") && past.ends_with("\n2\ttwo"), "{past}");
    let long = format!("{}\nend\n", "x".repeat(50_000));
    workspace.write("/long.txt", &long).await;
    let cut = text(&workspace, "read", json!({ "paths": ["long.txt"] })).await;
    assert!(cut.contains("x… +49000 bytes\n2\tend"), "{}", &cut[cut.len() - 80..]);
    let alone = text(&workspace, "read", json!({ "paths": ["long.txt:1-1"] })).await;
    assert!(alone.len() > 30_000 && alone.len() <= 32_768, "{}", alone.len());
    for times in 1..=3 {
        let read = text(&workspace, "read", json!({ "paths": ["long.txt:2-2"] })).await;
        let is_noted = read.contains(".. same call, same answer, third time");
        assert_eq!(is_noted, times == 3, "{times}: {read}");
    }
}

async fn ignored_files_are_left_out_unless_they_are_named(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/.gitignore", "node_modules/\n").await;
    workspace.write("/index.js", "needle\n").await;
    workspace.write("/node_modules/x/index.js", "needle hay\n").await;
    let tree = text(&workspace, "ls", json!({})).await;
    assert!(tree.starts_with("== . 2 files, 0 folders; ignored: node_modules/\n"), "{tree}");
    let found = text(&workspace, "grep", json!({ "pattern": "needle" })).await;
    assert!(found.starts_with("== 1 match in 1 file\nindex.js\n"), "{found}");
    let hay = text(&workspace, "grep", json!({ "pattern": "hay" })).await;
    assert_eq!(hay, "== no matches in 2 files\n.. 1 in ignored files");
    let named = text(&workspace, "grep", json!({ "pattern": "hay", "path": "node_modules/x" })).await;
    assert!(named.starts_with("== 1 match in 1 file\nnode_modules/x/index.js\n"), "{named}");
    let listed = text(&workspace, "ls", json!({ "path": "node_modules/x" })).await;
    assert!(listed.ends_with("\nindex.js 11"), "{listed}");
}

async fn rules_that_are_not_applied_are_named(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.log", "needle\n").await;
    workspace.write("/.gitignore", &format!("{}*.log\n", "x\n".repeat(4_096))).await;
    for (tool, args) in [("ls", json!({})), ("grep", json!({"pattern": "needle"}))] {
        let told = text(&workspace, tool, args).await;
        assert!(told.contains("\n.. Not all .gitignore rules from "), "{tool}: {told}");
    }
}

async fn a_deleted_file_is_explained(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/jsmn.c", "x\n").await;
    workspace.ok("rm", json!({ "path": "/jsmn.c" })).await;
    let gone = refused(&workspace, "not_found", "read", json!({ "paths": ["jsmn.c"] })).await;
    assert!(gone.starts_with("error not_found: jsmn.c\nnext: it was deleted by commit "), "{gone}");
    assert!(gone.contains(" (rm, ") && gone.contains(" ago), undo brings it back"), "{gone}");
    workspace.write("/empty.txt", "one\ntwo\n").await;
    workspace.write("/empty.txt", "").await;
    let empty = text(&workspace, "read", json!({ "paths": ["empty.txt"] })).await;
    assert!(empty.starts_with("== empty.txt empty (0 bytes) #e3b0c442; had 2 lines before commit "), "{empty}");
}

/// Reads everything from a path on, following the calls that the answers name; returns the lines.
async fn read_to_end(workspace: &Workspace, path: &str) -> Vec<(usize, String)> {
    let (mut path, mut seen) = (path.to_owned(), Vec::new());
    loop {
        let read = text(workspace, "read", json!({ "paths": [path] })).await;
        assert!(read.len() <= 32_768, "{}", read.len());
        let shown = read.lines().take_while(|line| !line.starts_with(".. ")).filter(|line| !line.starts_with("== "));
        for line in shown {
            let (number, line) = line.split_once('\t').unwrap_or_else(|| panic!("{line}"));
            seen.push((number.parse().unwrap(), line.to_owned()));
        }
        let last = read.lines().last().unwrap();
        let Some(next) = last.strip_prefix(".. ").and_then(|note| note.split('"').nth(1)) else { return seen };
        next.clone_into(&mut path);
    }
}

async fn a_log_is_read_to_its_end_in_parts(on: On) {
    let workspace = on.workspace().await;
    let lines = (1..=70_000).map(|n| format!("{n} something happened at this time, and it was logged\n"));
    let log = lines.collect::<Vec<_>>().concat();
    workspace.write("/server.log", &log).await;
    let seen = read_to_end(&workspace, "server.log").await;
    assert_eq!(seen.len(), 70_000);
    for (at, (number, line)) in seen.iter().enumerate() {
        assert!(*number == at + 1 && line.starts_with(&format!("{number} something")), "{number} at {at}");
    }
}

async fn many_matches_are_counted_and_kept(on: On) {
    let workspace = on.workspace().await;
    projects::write(&workspace, &projects::script_library()).await;
    let found = text(&workspace, "grep", json!({ "pattern": "function" })).await;
    assert!(found.len() <= 8_192, "{}", found.len());
    let header = found.lines().next().unwrap();
    let counted = format!("== {FUNCTIONS} matches in {SCRIPTS_WITH_FUNCTIONS} files, counts only; all in out:");
    assert!(header.starts_with(&counted), "{header}");
    let out = header.split("all in ").nth(1).unwrap().split('.').next().unwrap();
    let kept = read_to_end(&workspace, out).await;
    assert_eq!(kept.iter().filter(|(_, line)| line.contains("function")).count(), FUNCTIONS);
    let narrowed = text(&workspace, "grep", json!({ "pattern": "handler1 ", "path": out })).await;
    assert!(narrowed.starts_with(&format!("== {SCRIPTS_WITH_FUNCTIONS} matches in 1 file")), "{narrowed}");
    let etag = text(&workspace, "grep", json!({ "pattern": "exports.compileETag" })).await;
    assert!(etag.contains("-  return val;\n"), "{etag}");
    let stranger = on.account().await;
    workspace.add_member(&stranger, "editor").await;
    let theirs = refused(&workspace.for_user(&stranger), "expired", "read", json!({ "paths": [out] })).await;
    assert!(theirs.starts_with(&format!("error expired: {out} was kept for 24 h")), "{theirs}");
    let tree = text(&workspace, "ls", json!({})).await;
    assert!(tree.starts_with(&format!("== . {SCRIPT_FILES} files, ")) && tree.len() <= 6_144, "{tree}");
}

async fn a_large_tree_fits(on: On) {
    const FILES: usize = 6_497;
    let workspace = on.workspace().await;
    projects::write(&workspace, &projects::many_files(FILES)).await;
    let tree = text(&workspace, "ls", json!({})).await;
    assert!(tree.len() <= 6_144, "{}", tree.len());
    assert!(tree.starts_with(&format!("== . {FILES} files, ")), "{}", &tree[..100]);
    let mut counted = 0;
    for line in tree.lines().filter(|line| !line.starts_with("== ") && !line.starts_with(".. ")) {
        counted += match line.trim().split_once("/ ") {
            Some((_, count)) => count.split(' ').next().unwrap().parse::<usize>().unwrap(),
            None if line.ends_with('/') => 0,
            None => 1,
        };
    }
    assert_eq!(counted, FILES, "{tree}");
    for name in ["docs/", "src/", "tests/"] {
        assert!(tree.lines().any(|line| line.starts_with(name)), "{tree}");
    }
}
