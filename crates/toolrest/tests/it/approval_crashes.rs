//! Approvals when clients disconnect, servers die, and several servers share a database.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolrest_testkit::{Account, Backend, Port, Postgres, Server, Workspace, eventually, unique_email};

use crate::approvals::{call, decide, key, overwrite, pending, set_rules, waiting};
use crate::on::{On, list_at, options_on, text_at, workspace_at};

on_every_backend![
    a_waiting_call_survives_the_death_of_its_server,
    an_approved_call_runs_although_its_client_is_gone,
    approved_calls_run_once_or_not_at_all_if_their_server_dies;
    held_calls_leave_room_for_others,
];

async fn ended(workspace: &Workspace, id: &str) -> Value {
    // A server that died is noticed after 30 seconds.
    eventually("the approval has ended", Duration::from_secs(50), async || {
        let shown = workspace.get(&format!("/approvals/{id}")).await.success();
        let is_open = ["pending", "approved", "executing"].contains(&text_at(&shown, "/approval/state"));
        (!is_open).then(|| shown["approval"].clone())
    })
    .await
}

async fn commits_of(workspace: &Workspace, tool: &str) -> usize {
    let commits = workspace.get("/commits?limit=1000").await.success();
    list_at(&commits, "/commits").iter().filter(|commit| commit["tool"] == tool).count()
}

async fn a_waiting_call_survives_the_death_of_its_server(on: On) {
    let mut server = on.options().start();
    let workspace = on.workspace_at(&server).await;
    set_rules(&workspace, json!({"preset": "default"})).await;
    let agent = key(&workspace).await;
    workspace.write("/notes.txt", "old\n").await;
    let held = tokio::spawn({
        let agent = agent.clone();
        // The connection breaks, which the client of the tests reports by a panic.
        async move { overwrite(&agent, "notes.txt", "new\n", 60).await }
    });
    let before = pending(&workspace, 1).await.remove(0);
    server.kill9();
    assert!(held.await.is_err());
    server.restart(Port::Same);
    let (workspace, agent) = (workspace.through(&server.client()), agent.through(&server.client()));
    let after = pending(&workspace, 1).await.remove(0);
    assert_eq!((&after["id"], &after["diff"], &after["args"]), (&before["id"], &before["diff"], &before["args"]));
    assert_eq!(workspace.text("/notes.txt").await, "old\n");
    // Repeating the call attaches to the same approval.
    let again = waiting(&overwrite(&agent, "notes.txt", "new\n", 0).await);
    assert_eq!(again["approval"]["id"], before["id"]);
    decide(&workspace, &after, json!({"decision": "approve", "revision": 1})).await.success();
    assert_eq!(ended(&workspace, text_at(&before, "/id")).await["state"], "done");
    let answer = overwrite(&agent, "notes.txt", "new\n", 0).await;
    assert_eq!(answer.status, 200, "{answer}");
    assert_eq!(workspace.text("/notes.txt").await, "new\n");
    assert_eq!(commits_of(&workspace, "write_file").await, 1);
}

async fn an_approved_call_runs_although_its_client_is_gone(on: On) {
    let workspace = on.workspace().await;
    set_rules(&workspace, json!({"preset": "default"})).await;
    let agent = key(&workspace).await;
    workspace.write("/notes.txt", "old\n").await;
    let held = tokio::spawn({
        let agent = agent.clone();
        async move { overwrite(&agent, "notes.txt", "new\n", 60).await }
    });
    let approval = pending(&workspace, 1).await.remove(0);
    held.abort();
    assert!(held.await.unwrap_err().is_cancelled());
    decide(&workspace, &approval, json!({"decision": "approve"})).await.success();
    assert_eq!(ended(&workspace, text_at(&approval, "/id")).await["state"], "done");
    assert_eq!(workspace.text("/notes.txt").await, "new\n");
    assert_eq!(commits_of(&workspace, "write_file").await, 1);
}

/// Kills a server while it runs approved calls: some have committed, some are on their way, some have not begun.
async fn approved_calls_run_once_or_not_at_all_if_their_server_dies(on: On) {
    const CALLS: usize = 60;
    let mut server = on.options().start();
    let workspace = on.workspace_at(&server).await;
    set_rules(&workspace, json!({"preset": "default"})).await;
    let agent = key(&workspace).await;
    for n in 0..CALLS {
        workspace.write(&format!("/{n}.txt"), "old\n").await;
        waiting(&overwrite(&agent, &format!("{n}.txt"), "new\n", 0).await);
    }
    let in_state = async |workspace: &Workspace, state: &str| {
        let listed = workspace.get(&format!("/approvals?state={state}&limit=1000")).await.success();
        list_at(&listed, "/approvals").to_vec()
    };
    let asked = in_state(&workspace, "pending").await;
    let decisions = asked.iter().map(|one| json!({"id": one["id"], "decision": "approve"}));
    let decisions = json!({"decisions": decisions.collect::<Vec<_>>()});
    let decider = tokio::spawn({
        let workspace = workspace.clone();
        async move { workspace.try_post("/approvals/decisions", &decisions).await.map(drop) }
    });
    eventually("some calls are done", Duration::from_secs(20), async || {
        (in_state(&workspace, "done").await.len() >= 3).then_some(())
    })
    .await;
    server.kill9();
    drop(decider.await.unwrap());
    server.restart(Port::Same);
    let workspace = workspace.through(&server.client());
    eventually("nothing runs any more", Duration::from_secs(60), async || {
        let open = [in_state(&workspace, "approved").await, in_state(&workspace, "executing").await].concat();
        open.is_empty().then_some(())
    })
    .await;
    let mut done = 0;
    for approval in &asked {
        let shown = workspace.get(&format!("/approvals/{}", text_at(approval, "/id"))).await.success();
        let text = workspace.text(&format!("/{}", text_at(approval, "/args/path"))).await;
        // Those that were not decided before the server died still wait.
        let expected = match text_at(&shown, "/approval/state") {
            "done" => "new\n",
            "failed" | "pending" => "old\n",
            state => panic!("{state}: {shown}"),
        };
        assert_eq!(text, expected, "{shown}");
        done += usize::from(expected == "new\n");
    }
    assert_eq!(commits_of(&workspace, "write_file").await, done);
    println!("{done} of {CALLS} calls are done after the death of their server");
}

async fn held_calls_leave_room_for_others(on: On) {
    const KEYS: usize = 3;
    const CALLS_OF_KEY: usize = 90;
    let workspace = on.workspace().await;
    set_rules(&workspace, json!({"rules": ["ask write(held/**)"], "approvals": "spec"})).await;
    let mut held = JoinSet::new();
    for _ in 0..KEYS {
        let agent = key(&workspace).await;
        for n in 0..CALLS_OF_KEY {
            let agent = agent.clone();
            let args = json!({"path": format!("held/{n}.txt"), "content": "x", "createDirs": true});
            held.spawn(async move { call(&agent, "write_file", args, 120, "").await });
        }
    }
    let count = KEYS * CALLS_OF_KEY;
    eventually("all calls are held", Duration::from_secs(60), async || {
        let listed = workspace.get("/approvals?state=pending&limit=1000").await.success();
        (list_at(&listed, "/approvals").len() == count).then_some(())
    })
    .await;
    // More calls are held than may be under way at once in a workspace.
    let begun = Instant::now();
    workspace.write("/free.txt", "text\n").await;
    assert_eq!(workspace.text("/free.txt").await, "text\n");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let listed = workspace.get("/approvals?state=pending&limit=1000").await.success();
    for some in list_at(&listed, "/approvals").chunks(90) {
        let denials = some.iter().map(|one| json!({"id": one["id"], "decision": "deny"}));
        let denials = json!({"decisions": denials.collect::<Vec<_>>()});
        workspace.post("/approvals/decisions", &denials).await.success();
    }
    for reply in held.join_all().await {
        assert_eq!(reply.status, 403, "{reply}");
    }
}

/// Two servers on one PostgreSQL database, a workspace seen through both, and an agent of the first.
async fn on_two_replicas() -> (Server, Server, Workspace, Workspace, Workspace) {
    let backend = Backend::Postgres(Postgres::shared().create_database());
    let (first, second) = (options_on(backend.clone()).start(), options_on(backend).start());
    let workspace = workspace_at(&first).await;
    set_rules(&workspace, json!({"rules": ["ask exec"], "approvals": "spec"})).await;
    let (elsewhere, agent) = (workspace.through(&second.client()), key(&workspace).await);
    (first, second, workspace, elsewhere, agent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_asked_on_one_replica_is_decided_on_another_and_runs_once() {
    let (_first, _second, workspace, elsewhere, agent) = on_two_replicas().await;
    let mut waits = Vec::new();
    for n in 0..20 {
        workspace.write("/notes.txt", &format!("old {n}\n")).await;
        let held = tokio::spawn({
            let agent = agent.clone();
            async move { (overwrite(&agent, "notes.txt", &format!("new {n}\n"), 60).await, Instant::now()) }
        });
        let approval = pending(&elsewhere, 1).await.remove(0);
        let decided = Instant::now();
        decide(&elsewhere, &approval, json!({"decision": "approve", "revision": 1})).await.success();
        let (reply, answered) = held.await.unwrap();
        waits.push(answered.duration_since(decided));
        assert_eq!(reply.status, 200, "{reply}");
        assert_eq!(elsewhere.text("/notes.txt").await, format!("new {n}\n"));
    }
    assert_eq!(commits_of(&elsewhere, "write_file").await, 20);
    waits.sort();
    println!("decided on another replica: answered after {:?} (p50), {:?} (longest)", waits[10], waits[19]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_not_run_again_if_its_server_dies_while_it_runs() {
    let (mut first, _second, workspace, elsewhere, agent) = on_two_replicas().await;
    let args = json!({"language": "bash", "code": "echo begun > begun.txt; sleep 1000"});
    let held = tokio::spawn({
        let agent = agent.clone();
        async move { call(&agent, "run_code", args, 60, "").await }
    });
    let approval = pending(&workspace, 1).await.remove(0);
    decide(&workspace, &approval, json!({"decision": "approve"})).await.success();
    let id = text_at(&approval, "/id");
    eventually("the call runs", Duration::from_secs(20), async || {
        let shown = elsewhere.get(&format!("/approvals/{id}")).await.success();
        (shown["approval"]["state"] == "executing").then_some(())
    })
    .await;
    first.kill9();
    assert!(held.await.is_err());
    let ended = ended(&elsewhere, id).await;
    assert_eq!((text_at(&ended, "/state"), text_at(&ended, "/outcome")), ("failed", "interrupted"), "{ended}");
    let calls = elsewhere.get("/calls?tool=run_code").await.success();
    assert!(list_at(&calls, "/calls").iter().all(|call| call["outcome"] == "interrupted"), "{calls}");
}

/// A server that was stopped for so long that another one declared its calls dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_paused_commits_nothing_when_it_wakes_up() {
    let (mut first, _second, workspace, elsewhere, agent) = on_two_replicas().await;
    let args = json!({"language": "bash", "code": "sleep 5; echo late > late.txt"});
    let held = tokio::spawn({
        let agent = agent.clone();
        async move { call(&agent, "run_code", args, 60, "").await }
    });
    let approval = pending(&workspace, 1).await.remove(0);
    decide(&workspace, &approval, json!({"decision": "approve"})).await.success();
    eventually("the program runs", Duration::from_secs(20), async || {
        let running = elsewhere.get("/calls?state=running").await.success();
        list_at(&running, "/calls").iter().any(|call| call["tool"] == "run_code").then_some(())
    })
    .await;
    first.pause();
    let id = text_at(&approval, "/id");
    let failed = ended(&elsewhere, id).await;
    assert_eq!((text_at(&failed, "/state"), text_at(&failed, "/outcome")), ("failed", "interrupted"), "{failed}");
    first.resume();
    let reply = held.await.unwrap();
    assert_eq!(reply.status, 409, "{reply}");
    assert_eq!(workspace.paths_in("/").await, Vec::<String>::new());
    assert_eq!(commits_of(&elsewhere, "run_code").await, 0);
    assert_eq!(ended(&workspace, id).await["state"], "failed");
    // The server works on.
    workspace.write("/after.txt", "text\n").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_people_who_decide_at_once_on_two_servers_one_wins() {
    let (_first, second, workspace, elsewhere, agent) = on_two_replicas().await;
    let editor = Account::register(&second.client(), &unique_email("editor")).await;
    workspace.add_member(&editor, "editor").await;
    let by_editor = elsewhere.for_user(&editor);
    let mut wins = [0, 0];
    for n in 0..10 {
        let (old, new) = (format!("old {n}\n"), format!("new {n}\n"));
        workspace.write("/notes.txt", &old).await;
        waiting(&overwrite(&agent, "notes.txt", &new, 0).await);
        let asked = pending(&workspace, 1).await.remove(0);
        let (approved, denied) = tokio::join!(
            decide(&workspace, &asked, json!({"decision": "approve", "revision": 1})),
            decide(&by_editor, &asked, json!({"decision": "deny", "revision": 1})),
        );
        let (state, text) = match (approved.status, denied.status) {
            (200, 409) => ("done", new),
            (409, 200) => ("denied", old),
            _ => panic!("{approved} and {denied}"),
        };
        wins[usize::from(state == "denied")] += 1;
        assert_eq!(ended(&workspace, text_at(&asked, "/id")).await["state"], state);
        assert_eq!(elsewhere.text("/notes.txt").await, text);
    }
    assert_eq!(commits_of(&workspace, "write_file").await, wins[0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waiting_calls_are_listed_in_one_page() {
    const KEYS: usize = 10;
    const CALLS_OF_KEY: usize = 100;
    let workspace = On::Sqlite.workspace().await;
    set_rules(&workspace, json!({"rules": ["ask write"], "approvals": "spec"})).await;
    let mut asking = JoinSet::new();
    for _ in 0..KEYS {
        let agent = key(&workspace).await;
        asking.spawn(async move {
            for n in 0..CALLS_OF_KEY {
                waiting(&overwrite(&agent, &format!("{n}.txt"), "a line\n", 0).await);
            }
        });
    }
    asking.join_all().await;
    // Checking the answer against its description would take longer than the answer.
    let client = workspace.account.client.clone().without_schema_checks();
    let begun = Instant::now();
    let listed = workspace.through(&client).get("/approvals?state=pending&limit=1000").await.success();
    let elapsed = begun.elapsed();
    assert_eq!(list_at(&listed, "/approvals").len(), KEYS * CALLS_OF_KEY);
    println!("{} waiting calls are listed in {elapsed:?}", KEYS * CALLS_OF_KEY);
    assert!(elapsed < Duration::from_secs(2), "{elapsed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_starts_the_call_soon() {
    let workspace = On::Sqlite.workspace().await;
    set_rules(&workspace, json!({"preset": "default"})).await;
    let agent = key(&workspace).await;
    let mut waits = Vec::new();
    for n in 0..20 {
        workspace.write("/notes.txt", &format!("old {n}\n")).await;
        let held = tokio::spawn({
            let agent = agent.clone();
            async move { (overwrite(&agent, "notes.txt", &format!("new {n}\n"), 60).await, Instant::now()) }
        });
        let approval = pending(&workspace, 1).await.remove(0);
        let decided = Instant::now();
        decide(&workspace, &approval, json!({"decision": "approve"})).await.success();
        let (reply, answered) = held.await.unwrap();
        assert_eq!(reply.status, 200, "{reply}");
        waits.push(answered.duration_since(decided));
    }
    waits.sort();
    println!("decided: answered after {:?} (p50), {:?} (longest)", waits[10], waits[19]);
    assert!(waits[10] < Duration::from_secs(1), "{waits:?}");
}
