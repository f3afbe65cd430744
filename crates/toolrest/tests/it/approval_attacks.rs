//! What a hostile agent tries against rules and approvals.

use serde_json::{Value, json};
use toolrest_testkit::{Account, Reply, Workspace, unique_email};

use crate::approvals::{asking, call, decide, key, overwrite, pending, set_rules, waiting};
use crate::on::{On, list_at, text_at};

on_every_backend![
    what_must_not_be_read_without_asking_is_not_in_the_question,
    rules_about_all_reading_bind_programs_and_versions,
    a_grant_for_a_command_covers_no_other,
    variables_of_a_program_are_not_passed_by_a_rule_about_commands,
    rules_about_commands_also_hold_where_nobody_is_asked,
    a_move_is_bound_to_the_content_that_was_shown,
    a_permission_for_the_workspace_lifts_no_denial,
    a_call_runs_once_although_nothing_asks_about_it_any_more,
    a_grant_is_for_what_was_approved_and_not_for_what_was_asked,
    a_pattern_that_is_no_glob_breaks_nothing,
    who_may_decide_is_judged_by_the_edited_arguments,
    a_rule_about_a_tool_holds_behind_later_rules,
    programs_run_again_when_the_rules_are_gone,
    long_diffs_and_commands_are_marked_in_lists,
    a_command_may_name_many_large_files,
    chats_obey_the_rules,
];

on!(in_place, Folder: background_programs_on_a_folder_obey_rules);
on!(lines, Sqlite: compound_commands_are_judged_by_their_parts);

async fn run(agent: &Workspace, args: Value) -> Reply {
    call(agent, "run_code", args, 0, "s").await
}

async fn bash(agent: &Workspace, code: &str) -> Reply {
    run(agent, json!({"language": "bash", "code": code})).await
}

async fn coding(agent: &Workspace, tool: &str, args: &Value) -> Reply {
    agent.call_of("coding", tool, args).await
}

/// A workspace with rules and an agent of it.
async fn with_rules(on: On, rules: Value) -> (Workspace, Workspace) {
    let workspace = on.workspace().await;
    set_rules(&workspace, json!({"rules": rules, "approvals": "spec"})).await;
    let agent = key(&workspace).await;
    (workspace, agent)
}

async fn done(workspace: &Workspace, approval: &Value) -> Value {
    let url = format!("/approvals/{}?wait=20", text_at(approval, "/id"));
    workspace.get(&url).await.success()["approval"].clone()
}

async fn what_must_not_be_read_without_asking_is_not_in_the_question(on: On) {
    let (workspace, _) = with_rules(on, json!([])).await;
    workspace.write("/secret.txt", "PASSWORD=hunter2\n").await;
    let rules = json!({"rules": ["ask read(secret.txt)"], "approvals": "spec", });
    set_rules(&workspace, rules).await;
    let agent = key(&workspace).await;
    let edits = [
        ("write", json!({"filePath": "secret.txt", "content": "x"})),
        ("edit", json!({"filePath": "secret.txt", "oldString": "PASSWORD=hunter3", "newString": "x"})),
        ("read", json!({"filePath": "secret.txt"})),
    ];
    for (tool, args) in edits {
        let path = format!("/api/v1/workspaces/{}/toolsets/coding", agent.id);
        let request = toolrest_testkit::Request::new("POST", &path).bearer(&agent.account.access_token);
        let request = request.header("Prefer", "wait=0").json(&json!({"tool": tool, "args": args}));
        let reply = agent.account.client.send(request).await;
        assert!(!reply.text.contains("hunter2"), "{reply}");
        assert!(reply.status == 202 || tool == "write", "{reply}");
    }
    let seen = agent.get("/approvals").await;
    assert!(!seen.text.contains("hunter2"), "{seen}");
}

async fn rules_about_all_reading_bind_programs_and_versions(on: On) {
    for rule in ["deny read", "deny read(**)"] {
        let workspace = on.workspace().await;
        let written = workspace.ok("write", json!({"path": "/.env", "content": "TOKEN=secret\n"})).await;
        set_rules(&workspace, json!({"rules": [rule], "approvals": "spec"})).await;
        let agent = key(&workspace).await;
        let ran = bash(&agent, "cat .env").await;
        assert_eq!((ran.status, text_at(&ran.json(), "/error/code")), (403, "APPROVAL_DENIED"), "{ran}");
        let file = text_at(&written, "/file_id");
        let version = text_at(&written, "/version_id");
        agent.get(&format!("/files/{file}/versions/{version}")).await.refused(403, "APPROVAL_DENIED");
    }
}

async fn a_grant_for_a_command_covers_no_other(on: On) {
    let (workspace, agent) = with_rules(on, json!(["ask exec"])).await;
    waiting(&bash(&agent, "ls -la").await);
    let asked = pending(&workspace, 1).await.remove(0);
    assert_eq!(asked["grants_offered"], json!(["exec(ls -la)", "exec(ls)"]), "{asked}");
    decide(&workspace, &asked, json!({"decision": "approve", "scope": "session"})).await.success();
    done(&workspace, &asked).await;
    assert_eq!(bash(&agent, "ls -la .").await.status, 200);
    for code in
        ["ls -la\ntouch pwned", "ls -la && touch pwned", "ls -la; id", "ls -la $(touch pwned)", "ls -la > pwned"]
    {
        waiting(&bash(&agent, code).await);
    }
    let python = json!({"language": "python", "code": "import os\nprint(1)"});
    waiting(&run(&agent, python).await);
    let listed = workspace.get("/approvals?state=pending").await.success();
    let of_python = list_at(&listed, "/approvals").iter().find(|one| one["args"]["language"] == "python").unwrap();
    assert_eq!(of_python["grants_offered"], json!(["exec(python)"]), "{of_python}");
    assert_eq!(workspace.paths_in("/").await, Vec::<String>::new());
}

async fn variables_of_a_program_are_not_passed_by_a_rule_about_commands(on: On) {
    let (workspace, agent) = with_rules(on, json!(["ask exec", "allow exec(ls)", "deny exec(rm)"])).await;
    workspace.write("/evil.sh", "touch pwned\n").await;
    assert_eq!(bash(&agent, "ls").await.status, 200);
    let with_env = json!({"language": "bash", "code": "ls", "env": {"BASH_ENV": "/workspace/evil.sh"}});
    waiting(&run(&agent, with_env).await);
    let asked = pending(&workspace, 1).await.remove(0);
    assert!(text_at(&asked, "/command").contains("BASH_ENV=/workspace/evil.sh"), "{asked}");
    for code in ["/bin/rm evil.sh", "/usr/bin/rm evil.sh"] {
        let refused = bash(&agent, code).await;
        assert_eq!(refused.status, 403, "{refused}");
    }
    waiting(&bash(&agent, "flock lock rm evil.sh").await);
}

/// Command lines that only consist of allowed commands.
const ALLOWED_LINES: [&str; 12] = [
    "git status",
    "git  status   --short",
    "ls",
    "ls -la src",
    "/usr/bin/ls",
    "'git' \"status\"",
    "git status && ls",
    "ls; git status",
    "ls | git status",
    "echo a || ls",
    "ls\ngit status\n",
    "echo 'rm x' && ls",
];

/// Command lines with a command that is denied.
const DENIED_LINES: [&str; 18] = [
    "rm x",
    "rm",
    "/bin/rm x",
    "/usr/bin/rm -rf /",
    "'rm' x",
    "r'm' x",
    "git status && rm x",
    "git status&&rm x",
    "ls; rm -rf x",
    "ls;rm x",
    "ls | rm x",
    "echo a || rm x",
    "ls\nrm x",
    "\n\nls\n\nrm x\n",
    "git push",
    "git  'push' origin",
    "git push && ls",
    "ls || git push --force",
];

/// Command lines of which it is not certain what they run, or that run what no rule allows.
const UNCERTAIN_LINES: [&str; 40] = [
    "git",
    "git log",
    "git statusx",
    "lsx",
    "./ls",
    "ls > out",
    "ls < in",
    "ls $(rm x)",
    "ls `rm x`",
    "ls \"$(rm x)\"",
    "ls $HOME",
    "ls *",
    "ls ~",
    "ls # rm",
    "ls & rm x",
    "ls |& rm x",
    "ls <(rm x)",
    "A=b ls",
    "PATH=. ls",
    "env rm x",
    "ls | xargs rm",
    "bash -c 'rm x'",
    "sh x.sh",
    "sudo rm x",
    "timeout 5 rm x",
    "nohup rm x",
    "eval rm x",
    "exec rm x",
    "command rm x",
    ". ./x",
    "(rm x)",
    "{ rm x; }",
    "! ls",
    "if true; then rm x; fi",
    "for f in a; do rm f; done",
    "rm() { ls; }; rm",
    "bash <<EOF\nrm x\nEOF",
    "find . -exec rm {} +",
    "find . -delete",
    "git -c core.pager=rm status",
];

async fn compound_commands_are_judged_by_their_parts(on: On) {
    let rules = [
        "ask exec",
        "allow exec(git status)",
        "allow exec(ls)",
        "allow exec(echo)",
        "deny exec(rm)",
        "deny exec(git push)",
    ];
    let (workspace, _) = with_rules(on, json!(rules)).await;
    let table = [(&ALLOWED_LINES[..], "allow"), (&DENIED_LINES[..], "deny"), (&UNCERTAIN_LINES[..], "ask")];
    for (lines, expected) in table {
        for line in lines {
            let args = json!({"language": "bash", "code": line});
            let body = json!({"toolset": "system", "tool": "run_code", "args": args});
            let judged = workspace.post("/policy/check", &body).await.success();
            assert_eq!(judged["decision"], expected, "{line:?}: {judged}");
        }
    }
}

async fn rules_about_commands_also_hold_where_nobody_is_asked(on: On) {
    let workspace = on.workspace().await;
    let agent = key(&workspace).await;
    for mode in ["never", "off"] {
        set_rules(&workspace, json!({"rules": ["deny exec(rm)"], "approvals": mode})).await;
        let refused = bash(&agent, "echo $HOME; rm -f x").await;
        assert_eq!((refused.status, text_at(&refused.json(), "/error/code")), (403, "APPROVAL_DENIED"), "{refused}");
        assert_eq!(bash(&agent, "echo fine").await.status, 200);
    }
}

async fn a_move_is_bound_to_the_content_that_was_shown(on: On) {
    let (workspace, _) = asking(on).await;
    workspace.write("/draft.md", "harmless\n").await;
    workspace.ok("mkdir", json!({"path": "/docs"})).await;
    set_rules(&workspace, json!({"rules": ["ask write(docs/**)"], "approvals": "spec"})).await;
    let agent = key(&workspace).await;
    let args = json!({"from": "draft.md", "to": "docs/a.md"});
    waiting(&call(&agent, "move_file", args, 0, "").await);
    let shown = pending(&workspace, 1).await.remove(0);
    workspace.write("/draft.md", "evil\n").await;
    decide(&workspace, &shown, json!({"decision": "approve", "revision": 1})).await.success();
    let again = pending(&workspace, 1).await.remove(0);
    assert_eq!(again["revision"], 2, "{again}");
    assert_eq!(workspace.text("/draft.md").await, "evil\n");
}

async fn a_permission_for_the_workspace_lifts_no_denial(on: On) {
    let (workspace, agent) = with_rules(on, json!(["deny write(secret/**)"])).await;
    for path in ["/a.txt", "/secret/x.txt"] {
        let rules = json!({"rules": [], "approvals": "spec"});
        set_rules(&workspace, rules).await;
        workspace.write(path, "old\n").await;
    }
    set_rules(&workspace, json!({"rules": ["deny write(secret/**)"], "approvals": "spec"})).await;
    let args = json!({"filePath": "a.txt", "content": "new\n"});
    let path = format!("/api/v1/workspaces/{}/toolsets/coding", agent.id);
    let request = toolrest_testkit::Request::new("POST", &path).bearer(&agent.account.access_token);
    let request = request.header("Prefer", "wait=0").json(&json!({"tool": "write", "args": args}));
    assert_eq!(agent.account.client.send(request).await.status, 202);
    let asked = pending(&workspace, 1).await.remove(0);
    let wide = json!({"decision": "approve", "scope": "workspace", "grant": "write(**)"});
    decide(&workspace, &asked, wide).await.refused(400, "VALIDATION_ERROR");
    decide(&workspace, &asked, json!({"decision": "approve", "scope": "workspace"})).await.success();
    let rules = workspace.get("/rules").await.success();
    assert_eq!(rules["short"], json!(["deny write(secret/**)", "allow write(a.txt)"]), "{rules}");
    let refused = coding(&agent, "write", &json!({"filePath": "secret/x.txt", "content": "new\n"})).await;
    assert_eq!(refused.status, 403, "{refused}");
}

async fn a_call_runs_once_although_nothing_asks_about_it_any_more(on: On) {
    let (workspace, agent) = with_rules(on, json!(["ask exec"])).await;
    let append = "echo line >> log.txt";
    waiting(&bash(&agent, append).await);
    let asked = pending(&workspace, 1).await.remove(0);
    decide(&workspace, &asked, json!({"decision": "approve"})).await.success();
    done(&workspace, &asked).await;
    // A rule that allows it comes before the agent repeats the call, as it was told to.
    set_rules(&workspace, json!({"rules": ["allow exec"], "approvals": "spec"})).await;
    let answer = bash(&agent, append).await;
    assert_eq!(answer.status, 200, "{answer}");
    assert_eq!(workspace.text("/log.txt").await, "line\n");
    // The next one is another call.
    assert_eq!(bash(&agent, append).await.status, 200);
    assert_eq!(workspace.text("/log.txt").await, "line\nline\n");
}

async fn a_grant_is_for_what_was_approved_and_not_for_what_was_asked(on: On) {
    let (workspace, agent) = asking(on).await;
    for path in ["/a.txt", "/b.txt"] {
        workspace.write(path, "old\n").await;
    }
    waiting(&overwrite(&agent, "a.txt", "new\n", 0).await);
    let asked = pending(&workspace, 1).await.remove(0);
    let args = json!({"path": "b.txt", "content": "new\n"});
    let id = text_at(&asked, "/id");
    let without_token = json!({"decision": "approve", "args": args});
    decide(&workspace, &asked, without_token).await.refused(400, "VALIDATION_ERROR");
    let preview = workspace.post(&format!("/approvals/{id}/preview"), &json!({"args": args})).await.success();
    let decision = json!({"decision": "approve", "scope": "session", "args": args, "preview": preview["preview"]});
    decide(&workspace, &asked, decision).await.success();
    done(&workspace, &asked).await;
    let grants = workspace.get("/grants").await.success();
    assert_eq!(grants["grants"][0]["pattern"], "b.txt", "{grants}");
    assert_eq!(workspace.text("/a.txt").await, "old\n");
}

async fn a_pattern_that_is_no_glob_breaks_nothing(on: On) {
    let (workspace, agent) = with_rules(on, json!(["ask exec", "ask exec([ -f x)"])).await;
    waiting(&bash(&agent, "test -f [").await);
    let asked = pending(&workspace, 1).await.remove(0);
    decide(&workspace, &asked, json!({"decision": "approve"})).await.success();
    assert_eq!(done(&workspace, &asked).await["state"], "done");
    assert_eq!(call(&agent, "list_directory", json!({"path": "."}), 0, "s").await.status, 200);
}

async fn who_may_decide_is_judged_by_the_edited_arguments(on: On) {
    let (workspace, _) = asking(on).await;
    let editor = Account::register(&on.shared().client(), &unique_email("editor")).await;
    workspace.add_member(&editor, "editor").await;
    let by_editor = workspace.for_user(&editor);
    for path in ["/a.md", "/legal/terms.md"] {
        workspace.write(path, "old\n").await;
    }
    let named = json!({"effect": "ask", "action": "write", "match": ["legal/**"], "approvers": ["nobody@example.com"]});
    set_rules(&workspace, json!({"rules": [named], "approvals": "spec"})).await;
    let agent = key(&workspace).await;
    waiting(&overwrite(&agent, "a.md", "new\n", 0).await);
    let asked = pending(&workspace, 1).await.remove(0);
    let args = json!({"path": "legal/terms.md", "content": "new\n"});
    let id = text_at(&asked, "/id");
    let preview = by_editor.post(&format!("/approvals/{id}/preview"), &json!({"args": args})).await.success();
    let decision = json!({"decision": "approve", "args": args, "preview": preview["preview"]});
    decide(&by_editor, &asked, decision).await.refused(403, "FORBIDDEN");
    assert_eq!(workspace.text("/legal/terms.md").await, "old\n");
}

async fn a_rule_about_a_tool_holds_behind_later_rules(on: On) {
    let (_, agent) = with_rules(on, json!(["deny tool(system/list_processes)", "allow exec"])).await;
    let refused = call(&agent, "list_processes", json!({}), 0, "").await;
    assert_eq!(refused.status, 403, "{refused}");
}

async fn programs_run_again_when_the_rules_are_gone(on: On) {
    let (workspace, agent) = with_rules(on, json!(["deny read(x/**)"])).await;
    assert_eq!(bash(&agent, "echo one").await.status, 403);
    set_rules(&workspace, json!({"rules": []})).await;
    assert_eq!(bash(&agent, "echo two").await.status, 200);
}

async fn a_command_may_name_many_large_files(on: On) {
    let (workspace, agent) = with_rules(on, json!(["ask exec"])).await;
    let names: Vec<String> = (0..14).map(|n| format!("data-{n}.csv")).collect();
    for name in &names {
        workspace.write(&format!("/{name}"), &format!("{name}{}", "x".repeat(3 << 20))).await;
    }
    let body = waiting(&bash(&agent, &format!("wc {}", names.join(" "))).await);
    let approval = workspace.get(&format!("/approvals/{}", text_at(&body, "/approval/id"))).await.success();
    let command = text_at(&approval, "/approval/command");
    assert_eq!(command.matches("\n# data-").count(), names.len(), "{command}");
}

async fn long_diffs_and_commands_are_marked_in_lists(on: On) {
    let (workspace, agent) = with_rules(on, json!(["ask exec", "ask write"])).await;
    let command = format!("{}\nrm -rf /tmp/x", "# comment\n".repeat(900));
    waiting(&bash(&agent, &command).await);
    waiting(&overwrite(&agent, "long.txt", &"a line of the file\n".repeat(900), 0).await);
    for approval in pending(&workspace, 2).await {
        let mark = if approval["tool"] == "run_code" { "command_truncated" } else { "diff_truncated" };
        assert_eq!(approval[mark], true, "{approval}");
        let whole = done_or_pending(&workspace, &approval).await;
        assert_eq!(whole.get(mark), None, "{whole}");
    }
}

async fn done_or_pending(workspace: &Workspace, approval: &Value) -> Value {
    workspace.get(&format!("/approvals/{}", text_at(approval, "/id"))).await.success()["approval"].clone()
}

async fn chats_obey_the_rules(on: On) {
    let workspace = on.workspace().await;
    let made = workspace.post("/chats", &json!({"title": "plan"})).await.success();
    let chat = text_at(&made, "/chat/id");
    let agent = key(&workspace).await;
    set_rules(&workspace, json!({"rules": ["deny read(chats/**)", "deny write(chats/**)"]})).await;
    agent.get(&format!("/chats/{chat}")).await.refused(403, "APPROVAL_DENIED");
    let message = json!({"role": "user", "content": "hello"});
    agent.post(&format!("/chats/{chat}/messages"), &message).await.refused(403, "APPROVAL_DENIED");
    agent.post("/chats", &json!({"title": "other"})).await.refused(403, "APPROVAL_DENIED");
}

async fn background_programs_on_a_folder_obey_rules(on: On) {
    for rules in [json!(["deny write"]), json!(["ask delete"]), json!(["deny *", "allow exec"])] {
        let workspace = on.workspace().await;
        set_rules(&workspace, json!({"rules": rules, "approvals": "spec"})).await;
        let agent = key(&workspace).await;
        let started = call(&agent, "start_process", json!({"command": "echo evil > bg.txt"}), 0, "").await;
        assert_eq!(started.status, 403, "{started}");
    }
}
