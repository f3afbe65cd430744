//! `grep`: matches, their order, and errors.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolrest_testkit::{Backend, Port, Postgres, Server, Workspace, eventually};

use crate::on::{On, list_at, options_on, text_at, workspace_at};
use crate::toolset::FILE;

on_every_backend![
    lines_are_found_by_path_and_then_by_number,
    search_is_case_insensitive_by_default,
    path_patterns_choose_files,
    lines_end_at_newlines_only,
    a_final_newline_begins_one_more_line_and_an_empty_file_has_none,
    at_most_a_thousand_matches_are_returned_with_truncated,
    one_match_in_a_thousand_files_is_found,
    an_answer_over_the_limit_is_cut_with_truncated,
    invalid_patterns_are_refused_with_an_explanation,
    json_is_searched_as_indented_text,
    chats_are_searched_as_readable_text,
    each_change_is_seen_at_once,
    every_path_of_a_moved_folder_is_seen_at_once,
    a_viewer_may_search_and_a_stranger_may_not,
    patterns_that_backtrack_exponentially_elsewhere_are_answered,
    one_very_long_line_is_searched,
    answers_are_the_same_with_any_cache,
    a_search_ends_when_its_caller_disconnects,
    a_restarted_server_finds_what_was_written_before,
    invalid_patterns_get_the_message_of_postgresql,
    ignored_files_are_counted_and_searched_only_with_include_ignored,
    a_pattern_with_a_backspace_gets_a_warning_about_word_boundaries;
    documents_are_searched_in_their_text,
    a_search_over_its_time_limit_is_an_error,
];

on!(sqlite_rules, Sqlite: rules_that_are_not_applied_are_reported);
on!(postgres_rules, Postgres: rules_that_are_not_applied_are_reported);

/// The matches as `path:line:text`.
async fn found(workspace: &Workspace, args: Value) -> Vec<String> {
    let result = workspace.ok("grep", args).await;
    shown(&result)
}

fn shown(result: &Value) -> Vec<String> {
    let show = |one: &Value| format!("{}:{}:{}", text_at(one, "/path"), one["line_number"], text_at(one, "/line_text"));
    list_at(result, "/matches").iter().map(show).collect()
}

async fn lines_are_found_by_path_and_then_by_number(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/b.txt", "needle\nhay\nneedle again").await;
    workspace.write("/a/z.txt", "one needle").await;
    workspace.write("/a.txt", "hay\nhay\n  needle\n").await;
    workspace.write("/a b.txt", "needle").await;
    let expected =
        ["/a b.txt:1:needle", "/a.txt:3:  needle", "/a/z.txt:1:one needle", "/b.txt:1:needle", "/b.txt:3:needle again"];
    let result = workspace.ok("grep", json!({"pattern": "needle"})).await;
    assert_eq!(shown(&result), expected);
    assert_eq!(result.as_object().unwrap().keys().collect::<Vec<_>>(), ["matches"], "nothing else is to be said");
    assert!(found(&workspace, json!({"pattern": "absent"})).await.is_empty());
}

async fn search_is_case_insensitive_by_default(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "Straße\nSTRASSE\nstrasse\nÉtage\nétage").await;
    assert_eq!(found(&workspace, json!({"pattern": "strasse"})).await, ["/a.txt:2:STRASSE", "/a.txt:3:strasse"]);
    let exact = json!({"pattern": "strasse", "case_sensitive": true});
    assert_eq!(found(&workspace, exact).await, ["/a.txt:3:strasse"]);
    assert_eq!(found(&workspace, json!({"pattern": "ÉTAGE"})).await, ["/a.txt:4:Étage", "/a.txt:5:étage"]);
    let exact = json!({"pattern": "É", "case_sensitive": true});
    assert_eq!(found(&workspace, exact).await, ["/a.txt:4:Étage"]);
    let within = json!({"pattern": "(?i)strasse", "case_sensitive": true});
    assert_eq!(found(&workspace, within).await.len(), 2);
}

async fn path_patterns_choose_files(on: On) {
    let workspace = on.workspace().await;
    let files = [
        "/50",
        "/50 percent.txt",
        "/Config.toml",
        "/a_b.txt",
        "/axb.txt",
        "/docs/src.md",
        "/lib/50.txt",
        "/lib/config/x.rs",
        "/main.rs",
        "/src/lib.RS",
        "/src/main.rs",
        "/src/sub/a_b.rs",
        "/xsrc/main.rs.bak",
    ];
    for file in files {
        workspace.write(file, "x").await;
    }
    for (pattern, chosen) in [
        ("src", &["/docs/src.md", "/src/lib.RS", "/src/main.rs", "/src/sub/a_b.rs", "/xsrc/main.rs.bak"][..]),
        ("/src", &["/docs/src.md", "/src/lib.RS", "/src/main.rs", "/src/sub/a_b.rs"]),
        ("main.rs", &["/main.rs", "/src/main.rs", "/xsrc/main.rs.bak"]),
        ("src/", &["/src/lib.RS", "/src/main.rs", "/src/sub/a_b.rs", "/xsrc/main.rs.bak"]),
        ("%.rs", &["/lib/config/x.rs", "/main.rs", "/src/lib.RS", "/src/main.rs", "/src/sub/a_b.rs"]),
        ("*.rs", &["/lib/config/x.rs", "/main.rs", "/src/lib.RS", "/src/main.rs", "/src/sub/a_b.rs"]),
        ("config", &["/Config.toml", "/lib/config/x.rs"]),
        ("a_b", &["/a_b.txt", "/src/sub/a_b.rs"]),
        ("50%", &["/50", "/50 percent.txt"]),
        ("src/*", &["/src/lib.RS", "/src/main.rs", "/src/sub/a_b.rs"]),
        ("/src/%.rs", &["/src/lib.RS", "/src/main.rs", "/src/sub/a_b.rs"]),
        ("", &files),
    ] {
        let lines = found(&workspace, json!({"pattern": "x", "path_pattern": pattern})).await;
        let expected: Vec<String> = chosen.iter().map(|path| format!("{path}:1:x")).collect();
        assert_eq!(lines, expected, "{pattern:?}");
    }
}

async fn lines_end_at_newlines_only(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/crlf.txt", "one\r\ntwo\rthree\u{2028}four\r\n").await;
    assert_eq!(found(&workspace, json!({"pattern": "t"})).await, ["/crlf.txt:2:two\rthree\u{2028}four\r"]);
    assert!(found(&workspace, json!({"pattern": "one$"})).await.is_empty());
    assert_eq!(found(&workspace, json!({"pattern": "one\\r$"})).await, ["/crlf.txt:1:one\r"]);
    assert!(found(&workspace, json!({"pattern": "one.*two"})).await.is_empty(), "no match goes over a line's end");
}

async fn a_final_newline_begins_one_more_line_and_an_empty_file_has_none(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/ends.txt", "a\n").await;
    workspace.write("/open.txt", "a").await;
    workspace.write("/empty.txt", "").await;
    workspace.write("/newline.txt", "\n").await;
    assert_eq!(
        found(&workspace, json!({"pattern": "^$"})).await,
        ["/ends.txt:2:", "/newline.txt:1:", "/newline.txt:2:"]
    );
    assert_eq!(found(&workspace, json!({"pattern": "a$"})).await, ["/ends.txt:1:a", "/open.txt:1:a"]);
}

async fn at_most_a_thousand_matches_are_returned_with_truncated(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", &"x\n".repeat(1000)).await;
    let result = workspace.ok("grep", json!({"pattern": "x"})).await;
    assert_eq!(list_at(&result, "/matches").len(), 1000);
    assert_eq!(result["matches"][999]["line_number"], 1000);
    assert!(result.get("truncated").is_none(), "a thousand is all there is");
    workspace.write("/b.txt", "x").await;
    let result = workspace.ok("grep", json!({"pattern": "x"})).await;
    assert_eq!(list_at(&result, "/matches").len(), 1000);
    assert_eq!(result["truncated"], true);
    assert!(list_at(&result, "/matches").iter().all(|one| one["path"] == "/a.txt"), "the first by path are given");
}

async fn one_match_in_a_thousand_files_is_found(on: On) {
    let workspace = on.workspace().await;
    for at in 0..1000 {
        let text = if at == 613 { "a line with a nÄdel in it" } else { "nothing here but hay" };
        workspace.write(&format!("/f{at:04}.txt"), text).await;
    }
    for pattern in ["nädel", "N.DEL", "with a n"] {
        let lines = found(&workspace, json!({"pattern": pattern})).await;
        assert_eq!(lines, ["/f0613.txt:1:a line with a nÄdel in it"], "{pattern}");
    }
    workspace.ok("mkdir", json!({"path": "/box"})).await;
    workspace.ok("mv", json!({"source": "/f0613.txt", "destination": "/box/"})).await;
    assert_eq!(found(&workspace, json!({"pattern": "nädel"})).await, ["/box/f0613.txt:1:a line with a nÄdel in it"]);
}

async fn an_answer_over_the_limit_is_cut_with_truncated(on: On) {
    let workspace = on.workspace().await;
    for at in 0..3 {
        workspace.write(&format!("/{at}.txt"), &format!("{}\n", "\u{1}".repeat(9_000)).repeat(400)).await;
    }
    let result = workspace.ok("grep", json!({"pattern": "\\x01"})).await;
    assert_eq!(result["truncated"], true);
    assert!(list_at(&result, "/matches").len() > 500, "as much as an answer can carry");
}

async fn invalid_patterns_are_refused_with_an_explanation(on: On) {
    let workspace = on.workspace().await;
    for (pattern, words) in [
        ("a(", "parentheses () not balanced"),
        ("a)", "parentheses () not balanced"),
        ("[a", "brackets [] not balanced"),
        ("a**", "quantifier operand invalid"),
        ("*", "quantifier operand invalid"),
        ("a{256}", "invalid repetition count"),
        ("a{2,1}", "invalid repetition count"),
        ("[b-a]", "invalid character range"),
        ("[[:nope:]]", "invalid character class"),
        (r"\1", "invalid backreference number"),
        (r"\q", "invalid escape"),
        ("(?z)a", "invalid embedded option"),
    ] {
        let error = workspace.refused(400, "VALIDATION_ERROR", "grep", json!({"pattern": pattern})).await;
        let message = text_at(&error, "/error");
        assert!(message.contains(words), "{pattern}: {message}");
        assert!(message.contains("character"), "{pattern}: the position is missing in {message}");
        assert!(error["fields"]["pattern"].is_string(), "{error}");
    }
    workspace.refused(400, "VALIDATION_ERROR", "grep", json!({})).await;
    workspace.refused(400, "VALIDATION_ERROR", "grep", json!({"pattern": 5})).await;
    let misspelt = json!({"pattern": "a", "path_patern": "x"});
    let error = workspace.refused(400, "VALIDATION_ERROR", "grep", misspelt).await;
    assert!(text_at(&error, "/error").contains("path_pattern"), "{error}");
}

async fn documents_are_searched_in_their_text(on: On) {
    let workspace = on.workspace().await;
    let content = json!({"title": "hidden needle", "text": "first\nneedle in the text", "tags": ["needle"]});
    workspace.ok("write", json!({"path": "/doc.md", "content": content})).await;
    workspace.ok("write", json!({"path": "/plain.md", "content": {"text": "a needle"}})).await;
    for _ in 0..2 {
        let lines = found(&workspace, json!({"pattern": "needle"})).await;
        assert_eq!(lines, ["/doc.md:2:needle in the text", "/plain.md:1:a needle"]);
    }
}

async fn json_is_searched_as_indented_text(on: On) {
    let workspace = on.workspace().await;
    let content = json!({"elements": [{"type": "rect", "x": 10}], "version": 1});
    workspace.ok("write", json!({"path": "/a.canvas", "content": content, "file_type": "canvas"})).await;
    // The same bytes as a text are another file, with other lines.
    workspace.write("/a.txt", r#"{"elements":[{"type":"rect","x":10}],"version":1}"#).await;
    for _ in 0..2 {
        let lines = found(&workspace, json!({"pattern": r#""type": ?"rect""#})).await;
        let compact = r#"/a.txt:1:{"elements":[{"type":"rect","x":10}],"version":1}"#;
        assert_eq!(lines, [r#"/a.canvas:4:      "type": "rect","#, compact]);
        assert_eq!(
            found(&workspace, json!({"pattern": r#"^  "version": 1$"#})).await,
            [r#"/a.canvas:8:  "version": 1"#]
        );
    }
}

async fn chats_are_searched_as_readable_text(on: On) {
    let workspace = on.workspace().await;
    let chat = workspace.post("/chats", &json!({"title": "Plans"})).await.success()["chat"].take();
    let messages = format!("/chats/{}/messages", text_at(&chat, "/id"));
    for (role, content) in [("user", "Where is the\nneedle?"), ("assistant", "In the haystack.")] {
        workspace.post(&messages, &json!({"role": role, "content": content})).await.success();
        let path = text_at(&chat, "/path");
        assert_eq!(found(&workspace, json!({"pattern": "needle"})).await, [format!("{path}:4:needle?")]);
    }
    let lines = found(&workspace, json!({"pattern": "haystack|plans"})).await;
    assert_eq!(lines, ["/chats/Plans.chat:1:Plans", "/chats/Plans.chat:6:assistant: In the haystack."]);
    workspace.post(&messages, &json!({"role": "user", "content": "Thanks for the haystack"})).await.success();
    assert_eq!(found(&workspace, json!({"pattern": "haystack"})).await.len(), 2);
}

async fn each_change_is_seen_at_once(on: On) {
    let workspace = on.workspace().await;
    let needle = || json!({"pattern": "needle"});
    workspace.write("/other.txt", "hay").await;
    assert!(found(&workspace, needle()).await.is_empty());
    let file = workspace.write("/a.txt", "needle 1").await;
    assert_eq!(found(&workspace, needle()).await, ["/a.txt:1:needle 1"]);
    workspace.ok("edit", json!({"path": "/a.txt", "old_string": "1", "new_string": "2"})).await;
    assert_eq!(found(&workspace, needle()).await, ["/a.txt:1:needle 2"]);
    workspace.ok("mv", json!({"source": "/a.txt", "destination": "/b.txt"})).await;
    assert_eq!(found(&workspace, needle()).await, ["/b.txt:1:needle 2"]);
    workspace.ok("rm", json!({"path": "/b.txt"})).await;
    assert!(found(&workspace, needle()).await.is_empty());
    let id = text_at(&file, "/file_id");
    workspace.post(&format!("/files/{id}/restore"), &json!({})).await.success();
    assert_eq!(found(&workspace, needle()).await, ["/b.txt:1:needle 2"]);
    let commits = workspace.get("/commits").await.success();
    let newest = text_at(&list_at(&commits, "/commits")[0], "/id").to_owned();
    workspace.post(&format!("/commits/{newest}/undo"), &json!({})).await.success();
    assert!(found(&workspace, needle()).await.is_empty());
    workspace.write("/b.txt", "hay").await;
    assert!(found(&workspace, needle()).await.is_empty());
    workspace.ok("touch", json!({"path": "/c.txt"})).await;
    workspace.write("/c.txt", "a needle").await;
    assert_eq!(found(&workspace, needle()).await, ["/c.txt:1:a needle"]);
}

async fn every_path_of_a_moved_folder_is_seen_at_once(on: On) {
    let workspace = on.workspace().await;
    for at in 0..30 {
        workspace.write(&format!("/old/{}/f{at}.txt", at % 3), "needle").await;
    }
    assert_eq!(found(&workspace, json!({"pattern": "needle"})).await.len(), 30);
    workspace.ok("mv", json!({"source": "/old", "destination": "/new"})).await;
    let lines = found(&workspace, json!({"pattern": "needle"})).await;
    assert_eq!(lines.len(), 30);
    assert!(lines.iter().all(|line| line.starts_with("/new/")), "{lines:?}");
    assert!(lines.is_sorted(), "{lines:?}");
    workspace.ok("rm", json!({"path": "/new/1/f1.txt"})).await;
    assert_eq!(found(&workspace, json!({"pattern": "needle"})).await.len(), 29);
}

async fn a_viewer_may_search_and_a_stranger_may_not(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "needle").await;
    found(&workspace, json!({"pattern": "needle"})).await;
    let (viewer, stranger) = (on.account().await, on.account().await);
    workspace.add_member(&viewer, "viewer").await;
    assert_eq!(found(&workspace.for_user(&viewer), json!({"pattern": "needle"})).await, ["/a.txt:1:needle"]);
    let outside = workspace.for_user(&stranger);
    outside.refused(403, "FORBIDDEN", "grep", json!({"pattern": "needle"})).await;
    outside.refused(403, "FORBIDDEN", "grep", json!({"pattern": "("})).await;
}

async fn patterns_that_backtrack_exponentially_elsewhere_are_answered(on: On) {
    let workspace = on.workspace().await;
    let line = format!("{}b", "a".repeat(50_000));
    workspace.write("/long.txt", &line).await;
    workspace.write("/short.txt", "aaaa").await;
    for (pattern, expected) in [
        ("(a+)+$", &["/short.txt"][..]),
        ("^(a|aa)+$", &["/short.txt"]),
        ("(a*)*b$", &["/long.txt"]),
        ("((a{1,10}){1,10}){1,10}b", &["/long.txt"]),
        ("(?=.*b$)a", &["/long.txt"]),
    ] {
        let args = json!({"pattern": pattern, "case_sensitive": true});
        let result = workspace.ok("grep", args).await;
        let paths: Vec<&str> = list_at(&result, "/matches").iter().map(|one| text_at(one, "/path")).collect();
        assert_eq!(paths, expected, "{pattern}");
    }
    // Back-references may take too many steps; then the answer says so.
    for pattern in [r"^(a*)(a*)(a*)\1\2\3c", r"(a+)\1+\1+c$", r"(.*)(.*)(.*)(.*)\4\3\2\1x"] {
        let begun = Instant::now();
        let reply = workspace.call("grep", &json!({"pattern": pattern})).await;
        assert!(begun.elapsed() < Duration::from_secs(25), "{pattern}: {:?}", begun.elapsed());
        match reply.status {
            200 => assert!(list_at(&reply.json(), "/result/matches").is_empty(), "{pattern}"),
            _ => drop(reply.refused(504, "TIMEOUT")),
        }
    }
    let error = workspace.refused(400, "VALIDATION_ERROR", "grep", json!({"pattern": "((a{255}){255}){255}"})).await;
    assert!(text_at(&error, "/error").contains("too complex"), "{error}");
}

async fn one_very_long_line_is_searched(on: On) {
    let server = on
        .options()
        .env("TOOLREST__LIMITS__BODY_BYTES", "104857600")
        // A debug build on a busy machine takes its time over 50 MB.
        .env("TOOLREST__SEARCH__TIMEOUT_MS", "60000")
        .env("TOOLREST__LIMITS__CALL_TIMEOUT_MS", "60000")
        .start();
    let workspace = on.workspace_at(&server).await;
    let line = "0123456789".repeat(5_000_000) + "end";
    workspace.write("/long.txt", &line).await;
    workspace.write("/short.txt", "the end").await;
    assert!(found(&workspace, json!({"pattern": "nowhere"})).await.is_empty());
    assert!(found(&workspace, json!({"pattern": r"\yx\y"})).await.is_empty());
    assert_eq!(found(&workspace, json!({"pattern": "the end"})).await, ["/short.txt:1:the end"]);
    let result = workspace.ok("grep", json!({"pattern": "9end$"})).await;
    let matched = list_at(&result, "/matches");
    assert_eq!((matched.len(), text_at(&matched[0], "/path")), (1, "/long.txt"));
    let shown = text_at(&matched[0], "/line_text");
    assert!(line.starts_with(shown) && shown.len() < line.len(), "the line is cut to what an answer can carry");
    assert_eq!(result["truncated"], true);
}

async fn answers_are_the_same_with_any_cache(on: On) {
    let mut server = on.options().env("TOOLREST__SEARCH__CACHE_BYTES", "0").start();
    let workspace = on.workspace_at(&server).await;
    for at in 0..300 {
        let mut text = String::new();
        for line in 0..50 {
            writeln!(text, "line {line} of file {at}: word{}", (at * 50 + line) % 977).unwrap();
        }
        workspace.write(&format!("/d{}/f{at}.txt", at % 7), &text).await;
    }
    let patterns = ["word976$", "file 1?3:", "[0-9]{3}: word1[0-9]$", "LINE 49", "word5", "nothing"];
    let mut answers: Vec<Vec<Value>> = Vec::new();
    for cache in ["0", "20000", "200000", "536870912"] {
        server.stop();
        server.set_env("TOOLREST__SEARCH__CACHE_BYTES", cache);
        server.restart(Port::Same);
        let mut found = Vec::new();
        for round in 0..3 {
            for pattern in patterns {
                let result = workspace.ok("grep", json!({"pattern": pattern})).await;
                match round {
                    0 => found.push(result),
                    _ => assert!(found.contains(&result), "{pattern} with {cache} bytes, round {round}"),
                }
            }
        }
        answers.push(found);
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(answers[0].iter().filter(|found| !list_at(found, "/matches").is_empty()).count() == 5);
}

/// A text and a pattern that take far longer than any test waits.
async fn endless(workspace: &Workspace) -> Value {
    for at in 0..40 {
        workspace.write(&format!("/slow{at}.txt"), &format!("{}b", "ä".repeat(300_000))).await;
    }
    json!({"pattern": r"(\m(\w{1,200}){1,100}c)|\Mc"})
}

async fn a_search_over_its_time_limit_is_an_error(on: On) {
    let server = on.options().env("TOOLREST__SEARCH__TIMEOUT_MS", "300").start();
    let workspace = on.workspace_at(&server).await;
    let args = endless(&workspace).await;
    let begun = Instant::now();
    let error = workspace.refused(504, "TIMEOUT", "grep", args).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let message = text_at(&error, "/error");
    assert!(message.contains("ms") && message.contains("path"), "{message}");
    workspace.write("/a.txt", "needle").await;
    assert_eq!(found(&workspace, json!({"pattern": "needle"})).await, ["/a.txt:1:needle"]);
}

async fn a_search_ends_when_its_caller_disconnects(on: On) {
    let server = on.options().env("TOOLREST__SEARCH__TIMEOUT_MS", "60000").start();
    let workspace = on.workspace_at(&server).await;
    let args = endless(&workspace).await;
    let call = tokio::spawn({
        let workspace = workspace.clone();
        async move { workspace.try_call("grep", &args).await.map(drop) }
    });
    eventually("the search is at work", Duration::from_secs(20), async || {
        (cpu_in(&server, Duration::from_millis(200)).await > Duration::from_millis(100)).then_some(())
    })
    .await;
    call.abort();
    eventually("the server is idle again", Duration::from_secs(10), async || {
        (cpu_in(&server, Duration::from_millis(300)).await < Duration::from_millis(60)).then_some(())
    })
    .await;
}

/// The CPU time that a server uses within some time.
async fn cpu_in(server: &Server, time: Duration) -> Duration {
    let used = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        // Ticks of user and system time, a hundred in a second.
        Duration::from_millis(10 * (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()))
    };
    let before = used();
    tokio::time::sleep(time).await;
    used().saturating_sub(before)
}

async fn a_restarted_server_finds_what_was_written_before(on: On) {
    let mut server = on.options().start();
    let workspace = on.workspace_at(&server).await;
    workspace.write("/a.txt", "needle").await;
    assert_eq!(found(&workspace, json!({"pattern": "needle"})).await.len(), 1);
    server.kill9();
    server.restart(Port::Same);
    workspace.write("/b.txt", "needle").await;
    assert_eq!(found(&workspace, json!({"pattern": "needle"})).await.len(), 2);
}

async fn invalid_patterns_get_the_message_of_postgresql(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "foo bar\nfoobar\nb\u{8}\na\\b\na{x\n&&\nK\u{212A}k\nx1\nGetValue(\nget_value(").await;
    for (pattern, lines) in [
        (r"\mbar", &[1][..]),
        (r"\ybar\y", &[1]),
        (r"b\b", &[3]),
        (r"a\Bb", &[4]),
        ("a{x", &[5]),
        ("[&&]{2}", &[6]),
        ("^k.k$", &[7]),
        ("^[[:alpha:]][[:digit:]]$", &[8]),
        (r"get_?value\(", &[9, 10]),
        ("***=a{x", &[5]),
        (r"^(.)\1", &[6, 7]),
        ("(?<!foo )bar", &[2]),
        ("foo(?! )", &[2]),
    ] {
        let result = workspace.ok("grep", json!({"pattern": pattern})).await;
        let numbers: Vec<u64> =
            list_at(&result, "/matches").iter().map(|one| one["line_number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, lines, "{pattern}");
    }
}

async fn ignored_files_are_counted_and_searched_only_with_include_ignored(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/.gitignore", "target/\n*.log\n!keep.log\n").await;
    for path in ["/.hidden", "/a.rs", "/keep.log", "/sub/x.log", "/target/b.rs"] {
        workspace.write(path, "needle").await;
    }
    let result = workspace.ok("grep", json!({"pattern": "needle"})).await;
    assert_eq!(shown(&result), ["/.hidden:1:needle", "/a.rs:1:needle", "/keep.log:1:needle"]);
    assert_eq!(result["skipped"], json!({"ignored": 2}), "{result}");
    let result = workspace.ok("grep", json!({"pattern": "needle", "path_pattern": "/target/*"})).await;
    assert!(shown(&result).is_empty() && result["skipped"]["ignored"].as_u64() >= Some(1), "{result}");
    let all = json!({"pattern": "needle", "path_pattern": "*", "include_ignored": true});
    let result = workspace.ok("grep", all).await;
    assert_eq!(list_at(&result, "/matches").len(), 5, "{result}");
    assert!(result.get("skipped").is_none(), "{result}");
}

async fn rules_that_are_not_applied_are_reported(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.log", "needle").await;
    // One file has too many rules, or all files together have too many lines.
    for (of_root, of_folder, is_cut) in [(4_095, 0, false), (4_096, 0, true), (0, 9_999, false), (0, 10_000, true)] {
        workspace.write("/.gitignore", &format!("{}*.log\n", "x\n".repeat(of_root))).await;
        workspace.write("/.a/.gitignore", &"#\n".repeat(of_folder)).await;
        let grep = workspace.ok("grep", json!({"pattern": "needle"})).await;
        let listed = FILE.ok(&workspace, "file.list", json!({"pattern": "**"})).await;
        assert_eq!(list_at(&grep, "/matches").len(), usize::from(is_cut), "{grep}");
        for (answer, root) in [(&grep, "/"), (&listed, "")] {
            let file = if of_root > 0 { ".gitignore" } else { ".a/.gitignore" };
            let warning = answer.pointer("/warnings/0").and_then(Value::as_str);
            let says_so = |text: &str| text.starts_with(&format!("Not all .gitignore rules from {root}{file} on"));
            assert_eq!(warning.map(says_so), is_cut.then_some(true), "{answer}");
        }
    }
}

async fn a_pattern_with_a_backspace_gets_a_warning_about_word_boundaries(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "a word\na\\b").await;
    let result = workspace.ok("grep", json!({"pattern": r"\bword\b"})).await;
    assert!(shown(&result).is_empty(), "{result}");
    assert!(text_at(&result, "/warnings/0").contains(r"`\y`"), "{result}");
    for (pattern, line) in [(r"\yword\y", "/a.txt:1:a word"), (r"a\\b", r"/a.txt:2:a\b"), (r"***=a\b", r"/a.txt:2:a\b")]
    {
        let result = workspace.ok("grep", json!({"pattern": pattern})).await;
        assert_eq!(shown(&result), [line], "{pattern}");
        assert!(result.get("warnings").is_none(), "{result}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_through_one_replica_is_found_through_another() {
    let backend = Backend::Postgres(Postgres::shared().create_database());
    let servers = [options_on(backend.clone()).start(), options_on(backend).start()];
    let workspace = workspace_at(&servers[0]).await;
    let sides = [workspace.through(&servers[0].client()), workspace.through(&servers[1].client())];
    for round in 0..40 {
        let (writer, reader) = (&sides[round % 2], &sides[(round + 1) % 2]);
        writer.write("/counter.txt", &format!("count {round}")).await;
        let lines = found(reader, json!({"pattern": "^count"})).await;
        assert_eq!(lines, [format!("/counter.txt:1:count {round}")]);
    }
}
