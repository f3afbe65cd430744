use super::*;

#[tokio::test]
async fn a_cluster_is_durable_bytewise_and_gone_afterwards() {
    let cluster = Cluster::start();
    let address = cluster.create_database("try");
    let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    for (setting, value) in
        [("fsync", "on"), ("synchronous_commit", "on"), ("shared_buffers", "256MB"), ("server_encoding", "UTF8")]
    {
        let row = client.query_one("SELECT current_setting($1)", &[&setting]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), value, "{setting}");
    }
    let row = client
        .query_one(
            "SELECT datcollate::text, current_setting('data_directory') FROM pg_database WHERE datname = 'try'",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(row.get::<_, String>(0), "C.UTF-8");
    let data: String = row.get(1);
    assert!(cluster.cpu() > Duration::ZERO);

    drop(client);
    connection.await.unwrap().unwrap();
    let pid = cluster.postmaster.pid();
    drop(cluster);
    assert!(!Path::new(&data).exists());
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}
