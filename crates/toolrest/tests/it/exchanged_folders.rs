//! A folder that a program exchanges for a link while others use it as a workspace.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolrest_testkit::{Reply, Workspace};

use crate::on::{On, text_at};
use crate::processes::{read_until, start, stop};
use crate::toolset::SYSTEM;

on!(folder, Folder: programs_never_get_a_folder_that_a_link_leads_to, programs_cannot_write_into_a_repository_through_a_link);
on!(folder_of_user, FolderOfUser: programs_never_get_a_folder_that_a_link_leads_to, programs_cannot_write_into_a_repository_through_a_link);
on!(folder_on_postgres, FolderOnPostgres: programs_never_get_a_folder_that_a_link_leads_to, programs_cannot_write_into_a_repository_through_a_link);

/// How long the attack goes on. Folders that were opened by path gave way within two seconds.
const ATTACK: Duration = Duration::from_secs(8);

const SECRET: &str = "a secret of somebody else";

/// Exchanges `sub` for a link to a folder, again and again.
async fn exchange_for_ever(workspace: &Workspace, foreign: &Path) -> String {
    let code = format!(
        "import ctypes, os, time\nlibc = ctypes.CDLL(None)\nos.symlink('{}', 'link')\nprint('begun', flush=True)\n\
         while True:\n    libc.syscall(316, -100, b'sub', -100, b'link', 2)\n    time.sleep(0.0003)\n",
        foreign.display()
    );
    SYSTEM.ok(workspace, "write_file", json!({"path": "attack.py", "content": code})).await;
    let id = start(workspace, "python3 attack.py").await;
    read_until(workspace, &id, "begun").await;
    id
}

/// An answer that holds nothing of the foreign folder; whether the call succeeded.
fn harmless(reply: &Reply) -> bool {
    assert!(!reply.to_string().contains(SECRET), "{reply}");
    assert_ne!(reply.status, 500, "{reply}");
    reply.status == 200
}

async fn programs_never_get_a_folder_that_a_link_leads_to(on: On) {
    let foreign = tempfile::tempdir().unwrap();
    fs::write(foreign.path().join("file"), SECRET).unwrap();
    let (account, outer) = (on.account().await, on.shared().new_folder());
    fs::create_dir(outer.join("sub")).unwrap();
    fs::write(outer.join("sub/file"), "its own").unwrap();
    on.shared().hand_over(&outer);
    let around = account.folder_workspace("Around", &outer).await;
    let within = account.folder_workspace("Within", &outer.join("sub")).await;
    let attacker = exchange_for_ever(&around, foreign.path()).await;

    let mut succeeded = 0;
    let until = Instant::now() + ATTACK;
    while Instant::now() < until {
        let args = json!({"language": "bash", "code": "cat file; echo stolen > stolen"});
        let reply = within.call_of("system", "run_code", &args).await;
        if harmless(&reply) && text_at(&reply.json(), "/value/stdout") == "its own" {
            succeeded += 1;
        }
        let reply =
            within.call_of("system", "start_process", &json!({"command": "cat file; echo stolen > stolen"})).await;
        if harmless(&reply) {
            let id: Value = reply.json()["value"]["id"].clone();
            let args = json!({"id": id, "timeout": 20});
            harmless(&within.call_of("system", "wait_process", &args).await);
            harmless(&within.call_of("system", "read_output", &json!({"id": id})).await);
        }
        assert!(!foreign.path().join("stolen").exists(), "a program has written to a foreign folder");
    }
    assert!(succeeded > 0, "no program ran on its own folder");
    stop(&around, &attacker).await;
}

/// Makes links into the repository and removes them, again and again.
const LINKS: &str = "import os\nprint('begun', flush=True)\n\
                     while True:\n    for target, link in (('.git/hooks/pre-commit', 'x'), ('.git/hooks', 'd')):\n        \
                     try: os.symlink(target, link)\n        except FileExistsError: pass\n        \
                     try: os.remove(link)\n        except OSError: pass\n";

async fn programs_cannot_write_into_a_repository_through_a_link(on: On) {
    let folder = on.shared().new_folder();
    fs::create_dir_all(folder.join(".git/hooks")).unwrap();
    on.shared().hand_over(&folder);
    let workspace = on.account().await.folder_workspace("Attacked", &folder).await;
    SYSTEM.ok(&workspace, "write_file", json!({"path": "links.py", "content": LINKS})).await;
    let attacker = start(&workspace, "python3 links.py").await;
    read_until(&workspace, &attacker, "begun").await;
    let hook = "printf '#!/bin/sh\\ntouch pwned\\n'";
    let code = format!(
        "rm -rf x d pre-commit*; {hook} > x; chmod +x x; mkdir d; {hook} > d/pre-commit; chmod +x d/pre-commit; true"
    );
    let until = Instant::now() + ATTACK;
    while Instant::now() < until {
        harmless(&workspace.call_of("system", "run_code", &json!({"language": "bash", "code": code})).await);
        let planted: Vec<_> = fs::read_dir(folder.join(".git/hooks")).unwrap().collect();
        assert!(planted.is_empty(), "a program has planted a hook: {planted:?}");
    }
    stop(&workspace, &attacker).await;
}
