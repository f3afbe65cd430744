//! Secrets of workspaces: who sets them, who uses them, and that nobody sees them.

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use toolrest_testkit::{Account, Request, Server, Workspace, eventually, unique_email};

use crate::command::toolrest;
use crate::denied_paths::Random;
use crate::github_host::pull_request;
use crate::on::{On, list_at, text_at, workspace_at};
use crate::toolset::{BACKEND, SYSTEM};

on_both_databases![
    persons_set_list_and_delete_secrets,
    viewers_strangers_and_keys_do_not,
    programs_get_the_secrets_that_they_name,
    a_planted_secret_appears_nowhere,
    a_planted_secret_appears_nowhere_in_random_calls,
];

const VALUE: &str = "s3cr3t-Xy-0123456789";

async fn set(workspace: &Workspace, name: &str, value: &str) -> Value {
    workspace.send("PUT", &format!("/secrets/{name}"), Some(&json!({"value": value}))).await.success()
}

async fn persons_set_list_and_delete_secrets(on: On) {
    let workspace = on.workspace().await;
    let first = set(&workspace, "TOKEN", VALUE).await;
    assert_eq!(text_at(&first, "/secret/name"), "TOKEN");
    let again = set(&workspace, "TOKEN", "another value").await;
    assert_eq!(again["secret"]["created_at"], first["secret"]["created_at"]);
    set(&workspace, "A_KEY2", VALUE).await;
    let listed = workspace.get("/secrets").await;
    assert!(!listed.text.contains(VALUE), "{listed}");
    let listed = listed.success();
    let names: Vec<&str> = list_at(&listed, "/secrets").iter().map(|secret| text_at(secret, "/name")).collect();
    assert_eq!((names, &listed["count"]), (vec!["A_KEY2", "TOKEN"], &json!(2)));
    workspace.delete("/secrets/TOKEN").await.success();
    workspace.delete("/secrets/TOKEN").await.refused(404, "NOT_FOUND");
    for name in ["token", "1A", "A-B", "A.B", "_A", &"A".repeat(65)] {
        let reply = workspace.send("PUT", &format!("/secrets/{name}"), Some(&json!({"value": VALUE}))).await;
        reply.refused(400, "VALIDATION_ERROR");
    }
    for body in [
        json!({}),
        json!({"value": 1_234_567_890}),
        json!({"value": ["s3cr3t-Xy"]}),
        json!({"value": "short"}),
        json!({"value": "nul nul\u{0}"}),
        json!({"value": "x".repeat(32_769)}),
        json!({"value": VALUE, "other": "s3cr3t-Xy"}),
        json!({"valu": VALUE}),
    ] {
        let reply = workspace.send("PUT", "/secrets/TOKEN", Some(&body)).await;
        assert_eq!(reply.status, 400, "{reply}");
        assert!(!reply.text.contains("s3cr3t-Xy") && !reply.text.contains("1234567890"), "{reply}");
    }
}

async fn viewers_strangers_and_keys_do_not(on: On) {
    let (workspace, viewer, stranger) = (on.workspace().await, on.account().await, on.account().await);
    workspace.add_member(&viewer, "viewer").await;
    set(&workspace, "TOKEN", VALUE).await;
    let key = workspace.post("/keys", &json!({"name": "agent"})).await.success();
    let agent = Account { access_token: text_at(&key, "/secret").to_owned(), ..workspace.account.clone() };
    for account in [&viewer, &stranger, &agent] {
        let workspace = workspace.for_user(account);
        let replies = [
            workspace.get("/secrets").await,
            workspace.send("PUT", "/secrets/TOKEN", Some(&json!({"value": "changed value"}))).await,
            workspace.delete("/secrets/TOKEN").await,
        ];
        for reply in replies {
            reply.refused(403, "FORBIDDEN");
        }
    }
    let command = json!({"command": "printf %s ${#TOKEN}", "secrets": ["TOKEN"]});
    for account in [&viewer, &stranger] {
        let workspace = workspace.for_user(account);
        BACKEND.refused(&workspace, 403, "FORBIDDEN", "executeShellCommand", command.clone()).await;
    }
    let ran = BACKEND.ok(&workspace.for_user(&agent), "executeShellCommand", command).await;
    assert_eq!(ran["stdout"], VALUE.len().to_string(), "the secret is as it was, and a program of the key gets it");
}

async fn programs_get_the_secrets_that_they_name(on: On) {
    let workspace = on.workspace().await;
    set(&workspace, "TOKEN", VALUE).await;
    set(&workspace, "OTHER", "another value").await;
    workspace.write("/data.csv", "a\n1\n").await;
    let shell =
        "test \"$TOKEN\" = s3cr3t\"-Xy-0123456789\" && test -z \"$OTHER\" && echo \"got $TOKEN\"; echo $TOKEN >&2";
    let ran = BACKEND.ok(&workspace, "executeShellCommand", json!({"command": shell, "secrets": ["TOKEN"]})).await;
    assert_eq!((&ran["stdout"], &ran["stderr"]), (&json!("got [secret TOKEN]\n"), &json!("[secret TOKEN]\n")));
    let python = "import os; print(os.environ['TOKEN'], os.environ['OTHER'])";
    let ran = SYSTEM
        .ok(&workspace, "run_code", json!({"language": "python", "code": python, "secrets": ["TOKEN", "OTHER"]}))
        .await;
    assert_eq!(ran["stdout"], "[secret TOKEN] [secret OTHER]\n");
    let args = json!({"input_file_path": "data.csv", "analysis_script": python, "secrets": ["TOKEN", "OTHER"]});
    assert_eq!(BACKEND.ok(&workspace, "data_analyze", args).await["stdout"], "[secret TOKEN] [secret OTHER]\n");
    let started =
        SYSTEM.ok(&workspace, "start_process", json!({"command": "echo a $TOKEN b", "secrets": ["TOKEN"]})).await;
    let id = started["id"].as_str().unwrap_or_else(|| panic!("{started}"));
    SYSTEM.ok(&workspace, "wait_process", json!({"id": id})).await;
    let output = SYSTEM.ok(&workspace, "read_output", json!({"id": id})).await;
    assert!(output.to_string().contains("a [secret TOKEN] b"), "{output}");

    let args = |secrets: &[&str]| json!({"command": "true", "secrets": secrets});
    BACKEND.refused(&workspace, 404, "NOT_FOUND", "executeShellCommand", args(&["NONE"])).await;
    BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "executeShellCommand", args(&["not a name"])).await;
    let twice = json!({"language": "bash", "code": "true", "env": {"TOKEN": "x"}, "secrets": ["TOKEN"]});
    SYSTEM.refused(&workspace, 400, "INVALID_ARGUMENT", "run_code", twice).await;
    // The end of the output is cut within the secret.
    let long = "for i in $(seq 40000); do printf '%s' $TOKEN; done";
    let ran = BACKEND.ok(&workspace, "executeShellCommand", json!({"command": long, "secrets": ["TOKEN"]})).await;
    let stdout = ran["stdout"].as_str().unwrap();
    assert!(stdout.contains("bytes cut"), "{} bytes", stdout.len());
    assert!(!stdout.contains("s3cr3t") && !stdout.contains("456789"), "{}", &stdout[..200]);
}

async fn a_planted_secret_appears_nowhere(on: On) {
    let server = on.options().env("TOOLREST__LOG__LEVEL", "trace").env("TOOLREST__POLICY__APPROVALS", "spec").start();
    let workspace = workspace_at(&server).await;
    set(&workspace, "TOKEN", VALUE).await;
    workspace.send("PUT", "/secrets/TOKEN", Some(&json!({"value": VALUE, "x": 1}))).await;
    workspace.send("PUT", "/secrets/lower", Some(&json!({"value": VALUE}))).await;
    let mut answers = Vec::new();
    let calls = [
        (
            "backend",
            "executeShellCommand",
            json!({"command": "env; echo $TOKEN; echo $TOKEN >&2", "secrets": ["TOKEN"]}),
        ),
        ("backend", "executeShellCommand", json!({"command": "echo $TOKEN; exit 3", "secrets": ["TOKEN"]})),
        (
            "backend",
            "executeShellCommand",
            json!({"command": "echo $TOKEN; sleep 60", "timeout": 0.3, "secrets": ["TOKEN"]}),
        ),
        ("backend", "executeShellCommand", json!({"command": "echo $TOKEN", "secrets": ["TOKEN", "NONE"]})),
        (
            "backend",
            "data_analyze",
            json!({"input_file_path": "a", "analysis_script": "import os\nprint(os.environ['TOKEN'])\nraise SystemExit(os.environ['TOKEN'])", "secrets": ["TOKEN"]}),
        ),
        (
            "system",
            "run_code",
            json!({"language": "python", "code": "import os\nraise ValueError(os.environ['TOKEN'])", "secrets": ["TOKEN"]}),
        ),
        ("system", "run_code", json!({"language": "bash", "code": "exec $TOKEN", "secrets": ["TOKEN"]})),
        ("system", "start_process", json!({"command": "printf $TOKEN; printf $TOKEN", "secrets": ["TOKEN"]})),
        ("backend", "memory_save", json!({"key": "TOKEN", "value": "v"})),
    ];
    workspace.write("/a", "text").await;
    for (toolset, tool, args) in &calls {
        answers.push(workspace.call_of(toolset, tool, args).await.text);
    }
    for path in [
        "/calls?limit=100",
        "/calls?state=running",
        "/commits",
        "/approvals",
        "/secrets",
        "/rules",
        "/members",
        "/trash",
    ] {
        answers.push(workspace.get(path).await.text);
    }
    answers.push(
        workspace
            .post("/policy/check", &json!({"toolset": "backend", "tool": "executeShellCommand", "args": calls[0].2}))
            .await
            .text,
    );
    let processes = SYSTEM.ok(&workspace, "list_processes", json!({})).await;
    answers.push(processes.to_string());
    answers.push(server.output());
    for answer in &answers {
        assert!(!answer.contains(VALUE) && !answer.contains("s3cr3t-Xy"), "{answer}");
    }
    assert!(answers[0].contains("[secret TOKEN]"), "{}", answers[0]);
}

/// Makes a random call, often of a program that gets the secret and prints it in some way. Returns its toolset, tool and
/// arguments.
fn random_call(random: &mut Random) -> (&'static str, &'static str, Value) {
    let path = *random.of(&["a.txt", "b/c.txt", "missing", "TOKEN", "."]);
    let shell = *random.of(&[
        "echo $TOKEN",
        "printf '%s' \"$TOKEN\" >&2; exit 3",
        "env | sort",
        "cat /proc/self/environ",
        "exec $TOKEN",
        "cd \"$TOKEN\"",
        "$TOKEN",
        "echo \"a\\\"$TOKEN\\\"b\"",
        "printf '%s' \"${TOKEN}${TOKEN}${TOKEN}\"",
        "ls \"/$TOKEN\"; test -n \"$TOKEN\" && false",
        "declare -p TOKEN",
        "set -x; true \"$TOKEN\"",
        "for n in 1 2 3 4 5 6 7 8 9; do printf '%s' \"${TOKEN:0:n}\"; printf '%s\\n' \"${TOKEN:n}\"; done",
        "kill -9 $$",
    ]);
    let python = *random.of(&[
        "print(T)",
        "raise ValueError(T)",
        "import sys; sys.stderr.write(T)",
        "import sys; sys.exit(T)",
        "open(T)",
        "print({'a': [T]}, repr(T))",
        "import json; print(json.dumps({T: T}))",
        "import os; os.execvp(T, [T])",
        "import subprocess; subprocess.run(['printf', '%s', T], check=True)",
        "import os; [os.write(1, bytes([byte])) for byte in T.encode()]",
    ]);
    let python = format!("import os\nT = os.environ['TOKEN']\n{python}");
    let names = json!(random.of(&[&["TOKEN"][..], &["TOKEN", "GITHUB_TOKEN"], &["TOKEN", "NONE"]]));
    let arg = *random.of(&["x", "TOKEN", "$TOKEN"]);
    match random.below(22) {
        0..=5 => ("backend", "executeShellCommand", json!({"command": shell, "timeout": 5, "secrets": names})),
        6 | 7 => ("system", "run_code", json!({"language": "bash", "code": shell, "timeout": 5000, "secrets": names})),
        8..=11 => ("system", "run_code", json!({"language": "python", "code": python, "secrets": names})),
        12 => ("system", "start_process", json!({"command": shell, "secrets": names})),
        13 => ("system", "list_processes", json!({})),
        14 => {
            ("backend", "data_analyze", json!({"input_file_path": path, "analysis_script": python, "secrets": names}))
        }
        15 => ("backend", "github_get_pr_details", json!({"pr_url": pull_request("octo/demo", 1)})),
        16 => ("backend", "github_create_repo", json!({"name": arg})),
        17 => ("backend", "memory_save", json!({"key": arg, "value": arg})),
        18 => ("backend", "memory_search", json!({"query": arg})),
        19 => ("system", "read_file", json!({"path": path})),
        20 => ("file", "file.search", json!({"pattern": "s3cr3t", "path": "."})),
        _ => ("coding", "write", json!({"filePath": path, "content": arg})),
    }
}

async fn a_planted_secret_appears_nowhere_in_random_calls(on: On) {
    const CALLS: usize = 200;
    let server = on.options().env("TOOLREST__LOG__LEVEL", "trace").env("TOOLREST__POLICY__APPROVALS", "spec").start();
    let workspace = workspace_at(&server).await;
    for name in ["TOKEN", "GITHUB_TOKEN"] {
        set(&workspace, name, VALUE).await;
    }
    workspace.write("/a.txt", "text").await;
    let agent = crate::approvals::key(&workspace).await;
    let mut random = Random(16);
    let (mut answers, mut redacted) = (Vec::new(), 0);
    for n in 0..CALLS {
        let (toolset, tool, args) = random_call(&mut random);
        let caller = if n % 3 == 0 { &agent } else { &workspace };
        let reply = if n % 5 == 0 {
            workspace.post("/policy/check", &json!({"toolset": toolset, "tool": tool, "args": args})).await
        } else {
            let path = format!("/api/v1/workspaces/{}/toolsets/{toolset}", workspace.id);
            let mut body = json!({"tool": tool, "args": args});
            if toolset == "backend" {
                body["correlationId"] = json!("random");
            }
            let request = Request::new("POST", &path).bearer(&caller.account.access_token);
            workspace.account.client.send(request.header("Prefer", "wait=0").json(&body)).await
        };
        assert_ne!(reply.status, 500, "{reply}");
        redacted += usize::from(reply.text.contains("[secret TOKEN]"));
        answers.push(reply);
    }
    for path in ["/calls?limit=1000", "/calls?state=running", "/commits", "/approvals?limit=1000", "/secrets", "/trash"]
    {
        answers.push(workspace.get(path).await);
    }
    let processes = SYSTEM.ok(&workspace, "list_processes", json!({})).await;
    for process in list_at(&processes, "/processes") {
        let args = json!({"id": process["id"]});
        SYSTEM.ok(&workspace, "wait_process", args.clone()).await;
        answers.push(workspace.call_of("system", "read_output", &args).await);
    }
    for answer in &answers {
        assert!(!answer.text.contains("s3cr3t-Xy"), "{answer}");
    }
    assert!(redacted > 20, "it was printed {redacted} times");
    assert!(!server.output().contains("s3cr3t-Xy"), "the log contains it");
    assert_holds_no(&server, VALUE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_encrypted_with_a_private_key_that_can_be_rotated() {
    let server = On::Sqlite.options().start();
    let workspace = workspace_at(&server).await;
    set(&workspace, "TOKEN", VALUE).await;
    let file = server.data_folder().join("secrets.key");
    let key = std::fs::read_to_string(&file).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_holds_no(&server, VALUE);

    let data = server.data_folder().to_str().unwrap();
    let rotated = toolrest(server.data_folder(), &["secrets", "rotate-key", "--data-dir", data]).output().unwrap();
    assert!(rotated.status.success(), "{rotated:?}");
    assert!(String::from_utf8_lossy(&rotated.stderr).contains("Encrypted 1 secrets"), "{rotated:?}");
    let fresh = std::fs::read_to_string(&file).unwrap();
    assert!(fresh != key && fresh.lines().count() == 1, "the old key is gone");
    let command = json!({"command": "printf %s ${#TOKEN}", "secrets": ["TOKEN"]});
    let ran = BACKEND.ok(&workspace, "executeShellCommand", command.clone()).await;
    assert_eq!(ran["stdout"], VALUE.len().to_string(), "the running server reads the new key");

    // With another key the secret cannot be read, and the call says why.
    std::fs::write(&file, "ab".repeat(32) + "\n").unwrap();
    let message = BACKEND.refused(&workspace, 501, "NOT_CONFIGURED", "executeShellCommand", command).await;
    assert!(message.contains("secrets.key"), "{message}");
}

/// Checks that no file of the data folder contains a text.
fn assert_holds_no(server: &Server, text: &str) {
    for entry in std::fs::read_dir(server.data_folder()).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_file() {
            let bytes = std::fs::read(&entry).unwrap();
            assert!(!bytes.windows(text.len()).any(|part| part == text.as_bytes()), "{}", entry.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_has_a_limited_number_of_secrets() {
    let workspace = On::Sqlite.workspace().await;
    for n in 0..100 {
        set(&workspace, &format!("S{n}"), VALUE).await;
    }
    let one_more = workspace.send("PUT", "/secrets/ONE_MORE", Some(&json!({"value": VALUE}))).await;
    one_more.refused(429, "QUOTA_EXCEEDED");
    set(&workspace, "S7", "replaced value").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_about_a_secret_names_it_alone() {
    let server = On::Sqlite.options().start();
    let workspace = workspace_at(&server).await;
    set(&workspace, "TOKEN", VALUE).await;
    let calls = eventually("the change is recorded", Duration::from_secs(10), async || {
        let calls = workspace.get("/calls?tool=set_secret").await.success();
        (!list_at(&calls, "/calls").is_empty()).then_some(calls)
    })
    .await;
    assert!(calls.to_string().contains("TOKEN") && !calls.to_string().contains(VALUE), "{calls}");
    let stranger = Account::register(&server.client(), &unique_email("stranger")).await;
    workspace.for_user(&stranger).get("/secrets").await.refused(403, "FORBIDDEN");
}
