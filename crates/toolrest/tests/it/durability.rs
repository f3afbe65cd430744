//! Acknowledged writes survive `kill -9` of the server.

use toolrest_testkit::Port;

use crate::on::On;
use crate::storm::{OnFailure, Storm};

const WRITERS: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_kills_amid_a_write_storm_lose_nothing_on_sqlite() {
    survive_kills(On::Sqlite, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_kills_amid_a_write_storm_lose_nothing_on_postgres() {
    survive_kills(On::Postgres, 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifteen_kills_amid_a_write_storm_lose_nothing_in_a_folder() {
    survive_kills(On::Folder, 15).await;
}

async fn survive_kills(on: On, rounds: usize) {
    let mut server = on.options().start();
    let mut workspace = on.workspace_at(&server).await;
    let mut accounts = Vec::new();
    for round in 0..rounds {
        let folder = format!("/round-{round}");
        let mut storm = Storm::begin(&workspace, &folder, WRITERS, OnFailure::End);
        // Another moment in each round.
        let target = 20 + round * 37 % 120;
        storm.wait_until(|progress| progress.acknowledged >= target).await;
        server.kill9();
        let account = storm.end().await;
        server.restart(Port::New);
        workspace = workspace.through(&server.client());
        account.check(&workspace).await;
        accounts.push(account);
    }
    // Later rounds must not have harmed earlier ones.
    for account in accounts.iter().step_by(10) {
        account.check(&workspace).await;
    }
}
