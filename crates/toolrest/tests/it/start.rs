//! Starting and stopping the server.

use std::time::Duration;

use serde_json::json;
use toolrest_testkit::{Port, ServerOptions, StartFailure};

use crate::on::{On, workspace_at};

on_both_databases![
    a_short_secret_is_refused_at_the_start,
    an_unknown_setting_is_refused_at_the_start,
    a_setting_that_is_no_number_is_refused_at_the_start,
    a_stop_waits_for_running_calls_and_exits_with_success,
    a_restart_on_the_same_port_serves_the_same_data,
];

#[track_caller]
fn refusal(options: ServerOptions) -> StartFailure {
    let Err(refusal) = options.try_start() else {
        panic!("the server started");
    };
    let status = refusal.status.expect("it ends by itself");
    assert!(!status.success(), "{refusal:?}");
    assert!(!refusal.output.contains("panicked"), "{refusal:?}");
    refusal
}

async fn a_short_secret_is_refused_at_the_start(on: On) {
    let short = "0123456789012345678901234567890";
    let refusal = refusal(on.options().env("BUILDSCALE__JWT__SECRET", short));
    assert!(refusal.output.contains("32"), "{refusal:?}");
    assert!(!refusal.output.contains(short), "the secret is not printed");
}

async fn an_unknown_setting_is_refused_at_the_start(on: On) {
    let options = on.options().env("TOOLREST__DATABASE__POOL_SIZ", "10");
    let refusal = refusal(options);
    let output = refusal.output.to_lowercase();
    assert!(output.contains("pool_siz"), "{refusal:?}");
}

async fn a_setting_that_is_no_number_is_refused_at_the_start(on: On) {
    let options = on.options().env("TOOLREST__DATABASE__POOL_SIZE", "many");
    let refusal = refusal(options);
    let output = refusal.output.to_lowercase();
    assert!(output.contains("pool_size"), "{refusal:?}");
}

async fn a_stop_waits_for_running_calls_and_exits_with_success(on: On) {
    let mut server = on.options().start();
    let workspace = workspace_at(&server).await;
    let (acknowledged, mut counted) = tokio::sync::mpsc::unbounded_channel();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (workspace, acknowledged) = (workspace.clone(), acknowledged.clone());
            tokio::spawn(async move {
                for n in 0.. {
                    let path = format!("/{writer}-{n}.txt");
                    let args = json!({"path": path, "content": path});
                    match workspace.try_call("write", &args).await {
                        Ok(reply) if reply.status == 200 => acknowledged.send(path).unwrap(),
                        Ok(reply) => drop(reply.refused(503, "UNAVAILABLE")),
                        Err(_) => return,
                    }
                }
            })
        })
        .collect();
    drop(acknowledged);
    let mut paths = Vec::new();
    while paths.len() < 50 {
        paths.push(counted.recv().await.unwrap());
    }
    let status = server.stop();
    assert!(status.success(), "{status}: {}", server.output());
    let all = async {
        for writer in writers {
            writer.await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(10), all).await.expect("the writers see the end");
    while let Some(path) = counted.recv().await {
        paths.push(path);
    }
    server.restart(Port::New);
    let workspace = workspace.through(&server.client());
    for path in paths {
        assert_eq!(workspace.text(&path).await, path);
    }
}

async fn a_restart_on_the_same_port_serves_the_same_data(on: On) {
    let mut server = on.options().start();
    let workspace = workspace_at(&server).await;
    workspace.write("/a.txt", "text").await;
    let address = server.address().to_owned();
    server.kill9();
    server.restart(Port::Same);
    assert_eq!(server.address(), address);
    assert_eq!(workspace.text("/a.txt").await, "text");
}

#[test]
fn a_server_for_one_tenant_with_open_registration_warns() {
    let warns = |options: ServerOptions| options.start().output().contains("this server is for one tenant");
    // An ordinary user's programs run as that user.
    let ordinary = || On::Sqlite.options().as_ordinary_user();
    assert!(warns(ordinary()));
    assert!(!warns(ordinary().env("TOOLREST__AUTH__REGISTRATION_OPEN", "false")));
    assert!(!warns(ordinary().env("TOOLREST__RUN__ENABLED", "false")));
}
