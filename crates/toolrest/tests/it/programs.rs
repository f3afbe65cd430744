//! Programs: visible files, commits of their changes, limits and errors.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::{Backend, Server, Workspace, eventually};

use crate::command::BINARY;
use crate::on::{On, list_at, text_at};
use crate::processes::{end_sleep, running, unique_sleep, wait_until_true};
use crate::toolset::{BACKEND, SYSTEM};

on_every_backend![
    a_program_sees_the_files_of_the_workspace_and_nothing_else,
    what_a_program_changes_becomes_one_commit_that_can_be_undone,
    a_program_that_changes_nothing_makes_no_commit,
    arguments_and_variables_reach_the_program,
    a_program_that_fails_is_a_result_with_its_exit_code,
    a_program_that_runs_out_of_time_is_an_error_with_what_it_printed,
    a_limit_that_ended_a_program_is_named,
    a_workspace_can_have_tighter_limits_than_the_server,
    long_output_keeps_its_beginning_and_its_end,
    a_link_out_of_the_workspace_gives_no_access,
    two_programs_at_once_both_keep_their_results,
    what_two_programs_changed_at_once_is_reported_and_kept,
    ignored_files_have_no_versions_but_stay_for_the_next_program,
    executables_stay_executable,
    files_without_permissions_are_readable_for_the_next_program,
    a_viewer_runs_nothing,
    git_works,
    a_cancelled_call_changes_nothing,
    a_hundred_short_programs_leave_nothing_behind;
    programs_see_other_types_of_files_as_text
];

/// Runs bash code that must end well, and gives the answer.
pub async fn bash(workspace: &Workspace, code: &str) -> Value {
    let ran = SYSTEM.ok(workspace, "run_code", json!({"language": "bash", "code": code})).await;
    assert_eq!(ran["exitCode"], 0, "{ran}");
    ran
}

/// What bash code prints.
async fn printed(workspace: &Workspace, code: &str) -> String {
    text_at(&bash(workspace, code).await, "/stdout").to_owned()
}

fn changes(ran: &Value) -> Vec<String> {
    let printed_text = |change: &Value| format!("{} {}", text_at(change, "/change"), text_at(change, "/path"));
    list_at(ran, "/changes").iter().map(printed_text).collect()
}

async fn commits(workspace: &Workspace) -> usize {
    list_at(&workspace.get("/commits").await.success(), "/commits").len()
}

async fn a_program_sees_the_files_of_the_workspace_and_nothing_else(on: On) {
    let (workspace, other) = (on.workspace().await, on.workspace().await);
    other.write("/secret.txt", "of another workspace").await;
    workspace.write("/a.txt", "grüße\n").await;
    workspace.write("/deep/er/b.txt", "b").await;
    workspace.ok("mkdir", json!({"path": "/empty"})).await;
    let seen = printed(&workspace, "find . -mindepth 1 | sort; cat a.txt deep/er/b.txt").await;
    assert_eq!(seen, "./a.txt\n./deep\n./deep/er\n./deep/er/b.txt\n./empty\ngrüße\nb");
    let home = on.shared().data_folder().display().to_string();
    let code = format!("ls {home} /root 2>/dev/null; ls /home; cat /workspace/../{home}/toolrest.db; true");
    let looked = bash(&workspace, &code).await;
    assert_eq!(looked["stdout"], "sandbox\n", "{looked}");
    assert_eq!(printed(&workspace, "env | grep -v ^PWD= | grep -ci toolrest; true").await, "0\n");
}

async fn what_a_program_changes_becomes_one_commit_that_can_be_undone(on: On) {
    let workspace = on.workspace().await;
    for (path, text) in [("/kept", "kept"), ("/changed", "old"), ("/removed", "old"), ("/from", "this was moved")] {
        workspace.write(path, text).await;
    }
    let before = commits(&workspace).await;
    let code = "echo new > changed; rm removed; mkdir -p made/deep; echo x > made/deep/file; mv from to";
    let ran = bash(&workspace, code).await;
    let printed_text = changes(&ran);
    for change in ["changed changed", "removed removed", "created made/deep/file", "moved to"] {
        assert!(printed_text.iter().any(|printed_text| printed_text == change), "{change}: {ran}");
    }
    assert_eq!(commits(&workspace).await, before + 1);
    assert_eq!(workspace.text("/changed").await, "new\n");
    assert_eq!(workspace.text("/made/deep/file").await, "x\n");
    assert_eq!(workspace.text("/to").await, "this was moved");
    workspace.refused(404, "NOT_FOUND", "read", json!({"path": "/removed"})).await;
    let commit = text_at(&ran, "/commitId");
    let shown = workspace.get(&format!("/commits/{commit}/diff")).await.success();
    assert!(text_at(&shown, "/diff").contains("-old\n"), "{shown}");
    workspace.post(&format!("/commits/{commit}/undo"), &json!({})).await.success();
    let texts = [("/kept", "kept"), ("/changed", "old"), ("/removed", "old"), ("/from", "this was moved")];
    for (path, text) in texts {
        assert_eq!(workspace.text(path).await, text, "{path}");
    }
    let mut paths = workspace.paths_below("/").await;
    paths.retain(|path| path != "/chats");
    assert_eq!(paths, ["/changed", "/from", "/kept", "/removed"]);
    assert_eq!(printed(&workspace, "ls; cat changed").await, "changed\nfrom\nkept\nremoved\nold");
}

async fn a_program_that_changes_nothing_makes_no_commit(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a", "a").await;
    let before = commits(&workspace).await;
    let ran = bash(&workspace, "cat a > /tmp/copy; touch a; cp a b; rm b; echo a > c; printf a > c; rm c").await;
    assert_eq!((ran.get("commitId"), ran.get("changes"), ran.get("leftOut")), (None, None, None), "{ran}");
    assert_eq!(commits(&workspace).await, before);
}

async fn arguments_and_variables_reach_the_program(on: On) {
    let workspace = on.workspace().await;
    let code = "import os, sys\nprint(sys.argv[1:], os.environ['NAME'])";
    let args =
        json!({"language": "python", "code": code, "args": ["one", "two words", "gr'ü\"ße\n"], "env": {"NAME": "a=b"}});
    let ran = SYSTEM.ok(&workspace, "run_code", args).await;
    assert_eq!(ran["stdout"], "['one', 'two words', 'gr\\'ü\"ße\\n'] a=b\n", "{ran}");
    let args = json!({"language": "bash", "code": "printf '%s|' \"$@\" \"$NAME\"", "args": ["a b", "c'd"], "env": {"NAME": "x y"}});
    assert_eq!(SYSTEM.ok(&workspace, "run_code", args).await["stdout"], "a b|c'd|x y|");
    let wrong = json!({"language": "bash", "code": "true", "env": {"A B": "x"}});
    SYSTEM.refused(&workspace, 400, "INVALID_ARGUMENT", "run_code", wrong).await;
    let wrong = json!({"language": "perl", "code": "true"});
    SYSTEM.refused(&workspace, 400, "INVALID_ARGUMENT", "run_code", wrong).await;
    for timeout in [json!(0), json!(-1), json!("1")] {
        let wrong = json!({"language": "bash", "code": "true", "timeout": timeout});
        SYSTEM.refused(&workspace, 400, "INVALID_ARGUMENT", "run_code", wrong).await;
    }
}

async fn a_program_that_fails_is_a_result_with_its_exit_code(on: On) {
    let workspace = on.workspace().await;
    let code = json!({"language": "bash", "code": "echo out; echo err >&2; echo kept > file; exit 7"});
    let ran = SYSTEM.ok(&workspace, "run_code", code).await;
    assert_eq!((&ran["stdout"], &ran["stderr"]), (&json!("out\n"), &json!("err\n")));
    assert_eq!(ran["exitCode"], 7);
    assert!(ran["duration"].as_u64().is_some_and(|duration| duration < 30_000), "{ran}");
    assert_eq!(workspace.text("/file").await, "kept\n", "what it did before it failed stays");
    let killed = json!({"language": "bash", "code": "kill -TERM $$"});
    assert_eq!(SYSTEM.ok(&workspace, "run_code", killed).await["exitCode"], 143);
    let wrong = json!({"language": "python", "code": "1 +"});
    let ran = SYSTEM.ok(&workspace, "run_code", wrong).await;
    assert_eq!(ran["exitCode"], 1);
    assert!(text_at(&ran, "/stderr").contains("SyntaxError"), "{ran}");
    let command = json!({"command": "echo to 003; exit 3"});
    let ran = BACKEND.ok(&workspace, "executeShellCommand", command).await;
    assert_eq!((&ran["stdout"], &ran["stderr"], &ran["exitCode"]), (&json!("to 003\n"), &json!(""), &json!(3)));
}

async fn a_program_that_runs_out_of_time_is_an_error_with_what_it_printed(on: On) {
    let workspace = on.workspace().await;
    let code = "echo before; echo why >&2; echo half > file; setsid sleep 100 & sleep 100";
    let args = json!({"language": "bash", "code": code, "timeout": 0.5});
    let reply = workspace.call_of("system", "run_code", &args).await;
    let body = reply.json();
    assert_eq!((reply.status, text_at(&body, "/error/code")), (504, "TIMEOUT"), "{reply}");
    let details = &body["error"]["details"];
    assert_eq!((&details["stdout"], &details["stderr"]), (&json!("before\n"), &json!("why\n")), "{reply}");
    assert_eq!(details["limit"], "time", "{reply}");
    assert_eq!(workspace.text("/file").await, "half\n", "what it did until then can be seen, and undone");
    assert!(details["commitId"].is_string(), "{reply}");
    let calls = workspace.get("/calls?tool=run_code").await.success();
    let [record] = list_at(&calls, "/calls") else { panic!("one record: {calls}") };
    assert_eq!((text_at(record, "/outcome"), &record["commit_id"]), ("timeout", &details["commitId"]), "{record}");
}

async fn a_limit_that_ended_a_program_is_named(on: On) {
    let workspace = on.workspace().await;
    let run = async |args: Value| SYSTEM.ok(&workspace, "run_code", args).await;
    let hungry = "x = bytearray(400 << 20)\nimport time\ntime.sleep(20)";
    let ran = run(json!({"language": "python", "code": hungry, "memoryBytes": 128 << 20})).await;
    assert_ne!(ran["exitCode"], 0, "{ran}");
    let printed_text = ran["limit"] == "memory" || text_at(&ran, "/stderr").contains("MemoryError");
    assert!(printed_text, "{ran}");
    assert!(text_at(&ran, "/enforcedBy/memory").len() > 3, "{ran}");
}

async fn a_workspace_can_have_tighter_limits_than_the_server(on: On) {
    let workspace = on.workspace().await;
    let settings = json!({"settings": {"run": {"timeout_ms": 300, "output_bytes": 100_000}}});
    let changed = workspace.patch("", &settings).await.success();
    assert_eq!(changed["workspace"]["settings"]["run"]["timeout_ms"], 300);
    assert_eq!(workspace.get("").await.success()["workspace"]["settings"], settings["settings"]);
    let args = json!({"language": "bash", "code": "sleep 20", "timeout": 15});
    let message = SYSTEM.refused(&workspace, 504, "TIMEOUT", "run_code", args).await;
    assert!(message.contains("ms, its time limit"), "{message}");
    let flood = SYSTEM
        .ok(&workspace, "run_code", json!({"language": "bash", "code": "head -c 300000 /dev/zero; sleep 9"}))
        .await;
    assert_eq!(flood["limit"], "output", "{flood}");
    let unknown = json!({"settings": {"run": {"timeout": 300}}});
    workspace.patch("", &unknown).await.refused(400, "VALIDATION_ERROR");
    let unlisted = json!({"settings": {"run": {"network": ["example.com"]}}});
    workspace.patch("", &unlisted).await.refused(400, "VALIDATION_ERROR");
    let run = async |change: Value| {
        let changed = workspace.patch("", &json!({"settings": change})).await.success();
        changed["workspace"]["settings"]["run"].clone()
    };
    // What is not named stays, and null takes one limit away.
    assert_eq!(run(json!({})).await, settings["settings"]["run"]);
    assert_eq!(
        run(json!({"run": {"processes": 50}})).await,
        json!({"timeout_ms": 300, "output_bytes": 100_000, "processes": 50})
    );
    assert_eq!(run(json!({"run": {"timeout_ms": null}})).await, json!({"output_bytes": 100_000, "processes": 50}));
    assert_eq!(run(json!({"run": {"network": []}})).await, json!({"output_bytes": 100_000, "processes": 50}));
    assert_eq!(run(json!({"run": null})).await, json!({}));
    assert_eq!(printed(&workspace, "sleep 0.5; echo done").await, "done\n");
}

async fn long_output_keeps_its_beginning_and_its_end(on: On) {
    let workspace = on.workspace().await;
    let ran = bash(&workspace, "echo first; yes €€€€€€€ | head -n 100000; echo last").await;
    let stdout = text_at(&ran, "/stdout");
    assert!(stdout.starts_with("first\n€") && stdout.ends_with("€\nlast\n"), "{}", &stdout[..200]);
    assert!(
        stdout.len() < 300 << 10 && stdout.contains("bytes cut") && !stdout.contains('\u{fffd}'),
        "{}",
        stdout.len()
    );
    let bad = bash(&workspace, r"printf 'a\xff\x00b'").await;
    assert_eq!(bad["stdout"], "a\u{fffd}\u{0}b");
}

async fn a_link_out_of_the_workspace_gives_no_access(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/real", "real").await;
    let outside = on.shared().data_folder().join("toolrest.db");
    let code = format!("ln -s {} out; ln -s / root; ln -s real inside; cat out", outside.display());
    let args = json!({"language": "bash", "code": code});
    let ran = SYSTEM.ok(&workspace, "run_code", args).await;
    assert_ne!(ran["exitCode"], 0, "the program itself cannot follow it: {ran}");
    let left: Vec<&str> = list_at(&ran, "/leftOut").iter().map(|left| text_at(left, "/reason")).collect();
    assert_eq!(left, ["link", "link", "link"], "{ran}");
    for path in ["out", "root/etc/passwd"] {
        let reply = workspace.call_of("system", "read_file", &json!({"path": path})).await;
        assert!(reply.status >= 400, "{path}: {reply}");
        let reply = workspace.call_of("coding", "read", &json!({"filePath": path})).await;
        assert!(reply.status >= 400, "{path}: {reply}");
    }
    let found = workspace.ok("grep", json!({"pattern": "root:"})).await;
    assert_eq!(list_at(&found, "/matches").len(), 0, "{found}");
    assert_eq!(printed(&workspace, "cat inside").await, "real", "it is there for the next program");
}

async fn two_programs_at_once_both_keep_their_results(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/shared", "before\n").await;
    let pause = unique_sleep();
    let run = async |name: &str| {
        let code = format!("cat shared > {name}; mkdir -p folder; sleep {pause}; echo {name} > folder/{name}");
        bash(&workspace, &code).await
    };
    let names: Vec<String> = (0..4).map(|number| format!("file{number}")).collect();
    let go_on = async {
        wait_until_true("all four run at once", || running(&pause) == 4).await;
        end_sleep(&pause);
    };
    let ran = tokio::join!(run(&names[0]), run(&names[1]), run(&names[2]), run(&names[3]), go_on);
    for ran in [&ran.0, &ran.1, &ran.2, &ran.3] {
        assert_eq!(ran.get("conflicts"), None, "{ran}");
    }
    for name in &names {
        assert_eq!(workspace.text(&format!("/folder/{name}")).await, format!("{name}\n"));
        assert_eq!(workspace.text(&format!("/{name}")).await, "before\n");
    }
    assert_eq!(printed(&workspace, "ls folder | wc -l").await, "4\n");
}

async fn what_two_programs_changed_at_once_is_reported_and_kept(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/shared.txt", "before\n").await;
    let pause = unique_sleep();
    let code = format!("echo slow >> shared.txt; sleep {pause}; echo more >> shared.txt");
    let slow = bash(&workspace, &code);
    let quick = async {
        wait_until_true("the slow program runs", || running(&pause) == 1).await;
        let quick = bash(&workspace, "echo quick >> shared.txt").await;
        end_sleep(&pause);
        quick
    };
    let (slow, quick) = tokio::join!(slow, quick);
    assert_eq!(quick.get("conflicts"), None, "{quick}");
    let conflict = &list_at(&slow, "/conflicts")[0];
    assert_eq!(conflict["path"], "shared.txt", "{slow}");
    assert_eq!(workspace.text("/shared.txt").await, "before\nquick\n");
    let kept = text_at(conflict, "/keptAs");
    assert_eq!(workspace.text(&format!("/{kept}")).await, "before\nslow\nmore\n", "{slow}");
}

async fn ignored_files_have_no_versions_but_stay_for_the_next_program(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/.gitignore", "node_modules/\n*.log\n").await;
    let ran =
        bash(&workspace, "mkdir -p node_modules/a && echo x > node_modules/a/b; echo y > trace.log; echo z > kept")
            .await;
    assert_eq!(changes(&ran), ["created kept"], "{ran}");
    let left: Vec<(&str, &str)> =
        list_at(&ran, "/leftOut").iter().map(|left| (text_at(left, "/path"), text_at(left, "/reason"))).collect();
    assert!(left.iter().all(|(_, reason)| *reason == "ignored"), "{ran}");
    assert_eq!(left.len(), 2, "{ran}");
    assert_eq!(printed(&workspace, "cat node_modules/a/b trace.log").await, "x\ny\n");
}

async fn executables_stay_executable(on: On) {
    let workspace = on.workspace().await;
    let ran = bash(&workspace, "printf '#!/bin/sh\\necho runs\\n' > tool; chmod +x tool").await;
    assert_eq!(changes(&ran), ["created tool"]);
    assert_eq!(printed(&workspace, "./tool").await, "runs\n");
    // A file tool's edit keeps it so.
    SYSTEM.ok(&workspace, "write_file", json!({"path": "tool", "content": "#!/bin/sh\necho still\n"})).await;
    assert_eq!(printed(&workspace, "./tool").await, "still\n");
    let ran = bash(&workspace, "chmod -x tool").await;
    assert_eq!(changes(&ran), ["changed tool"], "{ran}");
    let ran = SYSTEM.ok(&workspace, "run_code", json!({"language": "bash", "code": "./tool"})).await;
    assert_eq!(ran["exitCode"], 126, "{ran}");
}

async fn files_without_permissions_are_readable_for_the_next_program(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/dir/file", "text").await;
    bash(&workspace, "chmod 000 dir/file dir").await;
    if matches!(on, On::Sqlite | On::Postgres) {
        bash(&workspace, "chmod 000 .").await;
        assert_eq!(printed(&workspace, "cat dir/file; echo more > dir/other").await, "text");
        assert_eq!(workspace.text("/dir/other").await, "more\n");
    }
    assert_eq!(workspace.text("/dir/file").await, "text");
}

async fn a_viewer_runs_nothing(on: On) {
    let workspace = on.workspace().await;
    let (viewer, stranger) = (on.account().await, on.account().await);
    workspace.add_member(&viewer, "viewer").await;
    for (account, tool, args) in [
        (&viewer, "run_code", json!({"language": "bash", "code": "true"})),
        (&stranger, "run_code", json!({"language": "bash", "code": "true"})),
        (&stranger, "run_code", json!({"language": "none"})),
        (&viewer, "start_process", json!({"command": "true"})),
        (&stranger, "list_processes", json!({})),
        (&viewer, "read_output", json!({"id": "x"})),
    ] {
        let seen = workspace.for_user(account);
        SYSTEM.refused(&seen, 403, "PERMISSION_DENIED", tool, args).await;
    }
}

async fn git_works(on: On) {
    let workspace = on.workspace().await;
    let code = "git init -q . && git config user.email a@b && git config user.name n && echo x > f && git add f && git commit -qm one";
    let ran = bash(&workspace, code).await;
    assert_eq!(changes(&ran), ["created f"], "{ran}");
    let code = "echo y >> f && git -c user.email=a@b -c user.name=n commit -qam two && git log --format=%s";
    assert_eq!(printed(&workspace, code).await, "two\none\n");
}

async fn a_cancelled_call_changes_nothing(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/file", "before").await;
    let pause = unique_sleep();
    let args = json!({"language": "bash", "code": format!("echo half > file; echo new > other; sleep {pause}")});
    tokio::select! {
        reply = workspace.call_of("system", "run_code", &args) => panic!("the program did not wait: {reply}"),
        () = wait_until_true("the program has changed its files", || running(&pause) == 1) => {}
    }
    let workspace = workspace.through(&on.shared().client());
    assert_eq!(workspace.text("/file").await, "before");
    assert_eq!(printed(&workspace, "cat file; ls").await, "beforefile\n");
}

async fn a_hundred_short_programs_leave_nothing_behind(on: On) {
    let workspace = on.workspace().await;
    let mut running = tokio::task::JoinSet::new();
    for number in 0..100 {
        let workspace = workspace.through(&on.shared().client());
        running.spawn(async move {
            let (language, code) = if number % 2 == 0 {
                ("bash", format!("echo {number}"))
            } else {
                ("python", format!("print({number})"))
            };
            let ran = SYSTEM.ok(&workspace, "run_code", json!({"language": language, "code": code})).await;
            assert_eq!(ran["stdout"], format!("{number}\n"), "{ran}");
        });
    }
    running.join_all().await;
    assert_eq!(printed(&workspace, "ls -A; ps -e --no-headers 2>/dev/null | wc -l; true").await.lines().count(), 1);
}

async fn programs_see_other_types_of_files_as_text(on: On) {
    let workspace = on.workspace().await;
    workspace.ok("write", json!({"path": "/board.canvas", "content": {"b": 1, "a": [2]}, "file_type": "canvas"})).await;
    workspace.ok("write", json!({"path": "/note", "content": {"text": "hello\n", "author": "me"}})).await;
    let seen = printed(&workspace, "cat board.canvas note").await;
    assert_eq!(seen, "{\n  \"b\": 1,\n  \"a\": [\n    2\n  ]\n}\nhello\n");
    bash(&workspace, "sed -i s/1/7/ board.canvas; echo more >> note").await;
    assert_eq!(workspace.read("/board.canvas").await["content"], json!({"b": 7, "a": [2]}));
    assert_eq!(workspace.read("/note").await["content"], json!({"text": "hello\nmore\n", "author": "me"}));
    let ran = bash(&workspace, "echo no json > board.canvas").await;
    assert_eq!(list_at(&ran, "/conflicts").len(), 1, "{ran}");
    assert_eq!(workspace.read("/board.canvas").await["content"], json!({"b": 7, "a": [2]}));
    let kept = text_at(&ran, "/conflicts/0/keptAs");
    assert_eq!(workspace.text(&format!("/{kept}")).await, "no json\n");
}

#[tokio::test]
async fn one_workspace_does_not_delay_programs_of_others() {
    let options = On::Sqlite.options().env("TOOLREST__RUN__AT_ONCE", "3");
    let server = options.env("TOOLREST__RUN__AT_ONCE_PER_WORKSPACE", "2").start();
    let (busy, other) = (On::Sqlite.workspace_at(&server).await, On::Sqlite.workspace_at(&server).await);
    let mut long = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let busy = busy.through(&server.client());
        long.spawn(async move { bash(&busy, "exec sleep 60.0625").await });
    }
    wait_until_true("two of them run", || running("60.0625") == 2).await;
    let patience = Duration::from_secs(20);
    let at_once = tokio::time::timeout(patience, printed(&other, "echo at once")).await;
    assert_eq!(at_once.expect("the other workspace had to wait"), "at once\n");
    long.abort_all();
}

#[tokio::test]
async fn a_program_may_run_for_longer_than_other_calls_may_take() {
    let server = On::Sqlite.options().env("TOOLREST__LIMITS__CALL_TIMEOUT_MS", "4000").start();
    let workspace = On::Sqlite.workspace_at(&server).await;
    assert_eq!(printed(&workspace, "sleep 5; echo done").await, "done\n");
}

#[tokio::test]
async fn programs_that_are_turned_off_are_refused_and_the_rest_works() {
    let server = On::Sqlite.options().env("TOOLREST__RUN__ENABLED", "false").start();
    assert!(refusal(&server).await.contains("run.enabled"));
}

#[tokio::test]
async fn a_machine_that_cannot_isolate_programs_refuses_them_and_names_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let wrapper = folder.path().join("toolrest");
    // Root in a user namespace is not root enough to map the owners of files.
    let script = format!("#!/bin/sh\nexec unshare --user --map-root-user {BINARY} \"$@\"\n");
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755)).unwrap();
    let server = Server::options(wrapper, Backend::Sqlite).start();
    let message = refusal(&server).await;
    assert!(
        message.contains("id-mapped mounts: ") && message.contains("run the server as an ordinary user"),
        "{message}"
    );
    assert!(
        server.output().contains("programs cannot be run"),
        "the operator is printed_text too: {}",
        server.output()
    );
}

/// How a server refuses every program, and does everything else.
async fn refusal(server: &Server) -> String {
    let workspace = On::Sqlite.workspace_at(server).await;
    workspace.write("/a", "a").await;
    assert_eq!(workspace.text("/a").await, "a");
    let args = json!({"language": "bash", "code": "true"});
    SYSTEM.refused(&workspace, 503, "SANDBOX_UNAVAILABLE", "run_code", args).await;
    let start = json!({"command": "true"});
    SYSTEM.refused(&workspace, 503, "SANDBOX_UNAVAILABLE", "start_process", start).await;
    let reply = workspace.call_of("backend", "executeShellCommand", &json!({"command": "true"})).await;
    let body = reply.json();
    assert_eq!(text_at(&body, "/error/code"), "SANDBOX_UNAVAILABLE", "{reply}");
    assert_eq!(body["error"]["retryable"], false, "{reply}");
    assert!(text_at(&body, "/error/remediation").contains("toolrest doctor"), "{reply}");
    text_at(&body, "/error/message").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_run_once_the_sandbox_check_succeeds() {
    let home = tempfile::tempdir().unwrap();
    // As on a full disk, there is no folder for what proves the sandbox.
    let temporary = home.path().join("temporary");
    let server = On::Sqlite.options().env("TMPDIR", temporary.to_str().unwrap()).start();
    let workspace = On::Sqlite.workspace_at(&server).await;
    let run = async || {
        let args = json!({"language": "bash", "code": "echo ran"});
        workspace.call_of("system", "run_code", &args).await
    };
    let refused = run().await;
    assert_eq!((refused.status, text_at(&refused.json(), "/error/code")), (503, "SANDBOX_UNAVAILABLE"), "{refused}");
    std::fs::create_dir(&temporary).unwrap();
    let ran = async || Some(run().await).filter(|reply| reply.status == 200);
    eventually("programs can be run", Duration::from_secs(60), ran).await;
}
