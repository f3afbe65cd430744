use super::*;

#[test]
fn a_killed_cluster_keeps_its_data() {
    let mut postgres = Postgres::start();
    let url = postgres.create_database();
    postgres.execute(&url, "CREATE TABLE kept AS SELECT 1 AS one");
    postgres.kill();
    assert!(!has_process_titled(&postgres.cluster));
    postgres.restart();
    postgres.execute(&url, "INSERT INTO kept SELECT one FROM kept");
    let folder = postgres.folder.path().to_owned();
    drop(postgres);
    assert!(!folder.exists(), "the folder is removed with the cluster");
}

#[test]
fn each_caller_gets_a_separate_database() {
    let postgres = Postgres::shared();
    let (one, other) = (postgres.create_database(), postgres.create_database());
    assert_ne!(one, other);
    postgres.execute(&one, "CREATE TABLE only_here (id int)");
    postgres.execute(&other, "CREATE TABLE only_here (id int)");
}
