//! The hosts that programs reach through the proxy.

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use toolrest_ops::outside::{AllowList, OutboundConnector, proxy};
use toolrest_sandbox::{CellSpec, Job, Network, Options, Sandbox, Source, Stdin};

use crate::command::BINARY;
use crate::on::{On, text_at};
use crate::toolset::SYSTEM;

const PORT: u16 = 3128;

const NOT_LISTED: &str = "is not on the list of hosts that programs of this workspace may reach; its owner can add it (settings.run.network)";

/// Runs Python in a job that may reach the hosts, loopback addresses of the machine among them.
async fn output_of(allowed: &[&str], code: &str) -> String {
    let sandbox = Sandbox::start(Options { program: BINARY.into(), ..Options::default() }).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut place = CellSpec::new(Source::open(home.path()).unwrap(), "/workspace");
    place.network = Network::Listener { port: PORT };
    for (name, value) in proxy::environment(PORT) {
        place = place.env(name, value);
    }
    let job = Job::new(place, ["/usr/bin/python3", "-"]).stdin(Stdin::Bytes(code.into()));
    let mut running = sandbox.spawn(job).await.unwrap();
    let outside =
        OutboundConnector { allow_private: vec!["127.0.0.0/8".parse().unwrap()], ..OutboundConnector::default() };
    let allow = AllowList::new(allowed.iter().copied()).unwrap();
    let listener = running.listener().await.unwrap();
    let _proxy = proxy::serve(listener, allow, outside, &proxy::ProxyLimits::default());
    let report = running.wait().await.unwrap();
    assert!(report.success(), "{}", report.stderr.text());
    report.stdout.text().trim_end().to_owned()
}

/// A host in the place of the web, not at the address that programs reach without their proxy.
async fn web() -> String {
    let web = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = web.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = web.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut request).await.unwrap();
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await.unwrap();
        }
    });
    address.to_string()
}

#[tokio::test]
async fn a_job_reaches_a_listed_host_and_only_by_the_proxy() {
    let web = web().await;
    let code = format!(
        "import errno, http.client, socket, urllib.request\n\
         print(urllib.request.urlopen('http://{web}/path').read())\n\
         tunnel = http.client.HTTPConnection('127.0.0.1', {PORT}); tunnel.set_tunnel('{web}')\n\
         tunnel.request('GET', '/'); print(tunnel.getresponse().read())\n\
         for host, port in (('127.0.0.2', int('{web}'.split(':')[1])), ('1.1.1.1', 443)):\n\
         \ttry: socket.create_connection((host, port), 1)\n\
         \texcept OSError as error: print(errno.errorcode[error.errno])"
    );
    assert_eq!(output_of(&[&web], &code).await, "b'hello'\nb'hello'\nECONNREFUSED\nENETUNREACH");
}

#[tokio::test]
async fn the_proxy_names_the_host_that_is_not_allowed() {
    let web = web().await;
    let code = format!(
        "import urllib.error, urllib.request\n\
         for url in 'http://{web}/', 'https://example.com/':\n\
         \ttry: urllib.request.urlopen(url)\n\
         \texcept urllib.error.URLError as error: print(error)"
    );
    let output = output_of(&["pypi.org"], &code).await;
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[0], format!("HTTP Error 403: {web} {NOT_LISTED}"));
    assert!(lines[1].contains(&format!("403 example.com:443 {NOT_LISTED}")), "{output}");
}

#[tokio::test]
async fn a_program_reaches_what_both_the_workspace_and_the_operator_allow() {
    let web = web().await;
    let server = On::Sqlite
        .options()
        .env("TOOLREST__RUN__NETWORK_HOSTS", &format!("{web},pypi.org"))
        .env("TOOLREST__RUN__NETWORK_PRIVATE", "127.0.0.0/8")
        .start();
    let workspace = On::Folder.workspace_at(&server).await;
    let fetch = async || {
        let code = format!("import urllib.request\nprint(urllib.request.urlopen('http://{web}/').read().decode())");
        SYSTEM.ok(&workspace, "run_code", json!({"language": "python", "code": code})).await
    };
    let alone = fetch().await;
    assert_ne!(alone["exitCode"], 0, "nothing is reached where the workspace does not say so: {alone}");
    let allow =
        async |hosts: serde_json::Value| workspace.patch("", &json!({"settings": {"run": {"network": hosts}}})).await;
    // What the operator does not list is refused when it is set.
    for beyond in ["example.com", "*", "*.org"] {
        let refusal = allow(json!([beyond])).await.refused(400, "VALIDATION_ERROR");
        assert!(text_at(&refusal, "/error").contains("pypi.org"), "it tells what is allowed: {refusal}");
    }
    allow(json!(["pypi.org"])).await.success();
    let other = fetch().await;
    assert!(text_at(&other, "/stderr").contains("is not on the list"), "{other}");
    assert!(text_at(&other, "/warnings/0").contains(&web), "the answer names the refused host: {other}");
    allow(json!([web])).await.success();
    assert_eq!(fetch().await["stdout"], "hello\n");
    allow(json!(["not a host"])).await.refused(400, "VALIDATION_ERROR");
}
