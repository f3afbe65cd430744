//! Encrypted connections to PostgreSQL.

use std::fs;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use toolrest_testkit::{Backend, Postgres, Server, temp_folder};

use crate::on::{options_on, workspace_at};

/// Starts a server on a database, or returns what it printed when it did not start.
fn start(url: String) -> Result<Server, String> {
    options_on(Backend::Postgres(url)).try_start().map_err(|failure| failure.output)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_verified_as_its_url_says() {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let database = Postgres::start_encrypted(&certificate.pem(), &key.serialize_pem());
    let folder = temp_folder("roots");
    let roots = folder.path().join("ca.pem");
    fs::write(&roots, authority.pem()).unwrap();
    let url =
        |host: &str, parameters: &str| format!("postgres://postgres@{host}:{}/postgres?{parameters}", database.port());
    let roots = roots.display();

    let refused = start(url("localhost", "sslmode=disable")).err().unwrap();
    assert!(refused.contains("no encryption"), "{refused}");
    let unknown = start(url("localhost", "sslmode=verify-full")).err().unwrap();
    assert!(unknown.contains("certificate") && unknown.contains("UnknownIssuer"), "{unknown}");
    let other_name = start(url("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={roots}"))).err().unwrap();
    assert!(other_name.contains("not valid for name"), "{other_name}");

    let server = start(url("127.0.0.1", "sslmode=require")).unwrap_or_else(|output| panic!("{output}"));
    workspace_at(&server).await.write("/a.txt", "required").await;
    let verified = url("localhost", &format!("sslmode=verify-full&sslrootcert={roots}"));
    let server = start(verified).unwrap_or_else(|output| panic!("{output}"));
    let workspace = workspace_at(&server).await;
    workspace.write("/a.txt", "verified").await;
    assert_eq!(workspace.text("/a.txt").await, "verified");
}
