//! Workspace settings that the server cannot read, for instance those of a later version.

use serde_json::json;
use toolrest_testkit::{Backend, Postgres, Server, Workspace};

use crate::on::{On, options_on, text_at};
use crate::toolset::SYSTEM;

on_every_backend![unreadable_workspace_settings_refuse_programs_only];

/// A server with its backend, whose database a test can change.
fn start(on: On) -> (Server, Backend) {
    let backend = match on {
        On::Sqlite | On::Folder | On::FolderOfUser => Backend::Sqlite,
        On::Postgres | On::FolderOnPostgres => Backend::Postgres(Postgres::shared().create_database()),
    };
    (options_on(backend.clone()).start(), backend)
}

/// Puts settings into the database that no route would take.
fn set(server: &Server, backend: &Backend, workspace: &Workspace, settings: &str) {
    let id = &workspace.id;
    match backend {
        Backend::Sqlite => {
            let db = rusqlite::Connection::open(server.data_folder().join("toolrest.db")).unwrap();
            db.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
            let id = id.replace('-', "");
            let sql = format!("UPDATE workspaces SET settings = ?1 WHERE id = x'{id}'");
            assert_eq!(db.execute(&sql, [settings]).unwrap(), 1);
        }
        Backend::Postgres(url) => {
            let sql = format!("UPDATE workspaces SET settings = '{settings}' WHERE id = '{id}'");
            Postgres::shared().execute(url, &sql);
        }
    }
}

async fn unreadable_workspace_settings_refuse_programs_only(on: On) {
    let (server, backend) = start(on);
    let workspace = on.workspace_at(&server).await;
    let run = json!({"language": "bash", "code": "echo ran"});
    for unreadable in [r#"{"run": {"timeout_ms": 300, "cores": 1}}"#, r#"{"later": true}"#, "not JSON"] {
        set(&server, &backend, &workspace, unreadable);
        for (tool, args) in [("run_code", run.clone()), ("start_process", json!({"command": "sleep 9"}))] {
            let reply = workspace.call_of("system", tool, &args).await;
            assert_eq!(reply.status, 501, "{tool}: {reply}");
            let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.contains("settings cannot be read") && message.contains("PATCH"), "{message}");
        }
        workspace.write("/a.txt", "the rest works").await;
        assert_eq!(workspace.text("/a.txt").await, "the rest works");
        assert!(workspace.get("").await.success()["workspace"]["settings"].is_null());
        workspace.account.get("/workspaces").await.success();
        // Another name leaves them alone; new settings take their place.
        let renamed = workspace.patch("", &json!({"name": "Renamed"})).await.success();
        assert!(renamed["workspace"]["settings"].is_null(), "{renamed}");
        let settings = json!({"run": {"processes": 50}});
        let set = workspace.patch("", &json!({"settings": settings})).await.success();
        assert_eq!(set["workspace"]["settings"], settings);
        let ran = SYSTEM.ok(&workspace, "run_code", run.clone()).await;
        assert_eq!(text_at(&ran, "/stdout"), "ran\n");
    }
}
