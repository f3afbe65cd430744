//! Networks that a job must not reach.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::PermissionsExt,
            net::{SocketAddr, UnixListener},
        },
    },
    thread,
};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toolrest_sandbox::{Job, Network};

use crate::fixture::{Fixture, PYTHON, source};

#[tokio::test]
async fn the_hosts_loopback_is_not_reachable() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let code = format!(
        "print(attempt(lambda: socket.create_connection(('127.0.0.1', {}), 1)))\n\
         socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {}))",
        listener.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port()
    );
    assert_eq!(Fixture::new().python_output(&code).await, "ECONNREFUSED");
    assert!(udp.recv(&mut [0]).is_err());
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
}

#[tokio::test]
async fn no_external_network_is_reachable() {
    let code = "print(attempt(lambda: socket.create_connection(('1.1.1.1', 80), 1)), \
                attempt(lambda: socket.create_connection(('2606:4700:4700::1111', 80), 1)), \
                attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', 53))))\n\
                try: socket.getaddrinfo('example.com', 80); print('resolved')\n\
                except socket.gaierror: print('unresolved')";
    assert_eq!(Fixture::new().python_output(code).await, "ENETUNREACH ENETUNREACH ENETUNREACH\nunresolved");
}

#[tokio::test]
async fn a_job_has_its_own_loopback() {
    let code = "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n\
                socket.create_connection(s.getsockname(), 1); print('connected')\n\
                a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))";
    assert_eq!(Fixture::new().python_output(code).await, "connected\nb'x'");
}

#[tokio::test]
async fn abstract_sockets_of_the_host_are_not_reachable() {
    let name = format!("toolrest-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let code = format!("print(attempt(lambda: socket.socket(socket.AF_UNIX).connect('\\0{name}')))");
    assert_eq!(Fixture::new().python_output(&code).await, "ECONNREFUSED");
}

#[tokio::test]
async fn only_unix_and_internet_sockets_are_allowed() {
    let code = "print(*[call(41, family, kind, 0) for family, kind in \
                ((16, 3), (17, 3), (40, 1), (38, 5), (31, 3), (44, 3), (29, 3), (15, 3), (21, 5), (30, 1))])\n\
                print(call(41, 2, 3, 255), call(41, 10, 3, 58))";
    let output = Fixture::new().python_output(code).await;
    assert_eq!(output, format!("{}\nEPERM EPERM", ["EPERM"; 10].join(" ")));
}

#[tokio::test]
async fn only_tcp_and_udp_are_allowed() {
    // Multipath TCP, UDP-Lite, SCTP, DCCP, ICMP, L2TP; and socket types other than stream and datagram.
    let code = "print(*[call(41, family, kind | 0o2004000, protocol) for family in (2, 10) for kind, protocol in \
                ((1, 262), (2, 136), (1, 132), (5, 132), (2, 33), (6, 33), (2, 1), (2, 58), (2, 115), (3, 6), (0, 0), (4, 17), (10, 0))])\n\
                print(*[call(41, family, kind | 0o2004000, protocol) for family, kind, protocol in \
                ((1, 1, 0), (1, 2, 0), (1, 5, 0), (2, 1, 0), (2, 1, 6), (2, 2, 0), (2, 2, 17), (10, 1, 6), (10, 2, 17))])";
    let output = Fixture::new().python_output(code).await;
    assert_eq!(output, format!("{}\n{}", ["EPERM"; 26].join(" "), ["ok"; 9].join(" ")));
}

#[tokio::test]
async fn socket_buffers_cannot_be_resized() {
    let code = "s = socket.socket(); before = s.getsockopt(1, 7), s.getsockopt(1, 8)\n\
                s.setsockopt(1, 7, 4 << 20); s.setsockopt(1, 8, 4 << 20); s.setsockopt(1, 2, 1)\n\
                print(before == (s.getsockopt(1, 7), s.getsockopt(1, 8)), s.getsockopt(1, 2))";
    assert_eq!(Fixture::new().python_output(code).await, "True 1");
}

#[tokio::test]
async fn only_the_proxy_socket_is_reachable() {
    let fixture = Fixture::new();
    let path = fixture.home.path().join("proxy.sock");
    let listener = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let proxy = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 5];
        stream.read_exact(&mut asked).unwrap();
        stream.write_all(b"proxied").unwrap();
        asked
    });
    let mut spec = fixture.spec();
    spec.network = Network::Proxy { socket: source(path), target: "/run/proxy.sock".into() };
    let code = "s = socket.socket(socket.AF_UNIX); s.connect('/run/proxy.sock'); s.sendall(b'hello'); print(s.recv(9))\n\
                print(attempt(lambda: socket.create_connection(('1.1.1.1', 80), 1)), os.listdir('/run'))";
    let report = fixture.python_in(spec, code).await;
    assert_eq!(report.stdout.text(), "b'proxied'\nENETUNREACH ['proxy.sock']\n", "{}", report.stderr.text());
    assert_eq!(&proxy.join().unwrap(), b"hello");
}

#[tokio::test]
async fn the_server_listens_in_the_network_of_the_job() {
    let fixture = Fixture::new();
    let mut spec = fixture.spec();
    spec.network = Network::Listener { port: 3128 };
    let code = "import socket; s = socket.create_connection(('127.0.0.1', 3128)); s.sendall(b'hello'); print(s.recv(9))\n\
                try: socket.create_connection(('1.1.1.1', 80), 1)\nexcept OSError as error: print(error.errno)";
    let mut running = fixture.sandbox.spawn(Job::new(spec, [PYTHON, "-c", code])).await.unwrap();
    let listener = running.listener().await.unwrap();
    let (mut stream, from) = listener.accept().await.unwrap();
    assert!(from.ip().is_loopback());
    let mut asked = [0; 5];
    stream.read_exact(&mut asked).await.unwrap();
    stream.write_all(b"listened").await.unwrap();
    let report = running.wait().await.unwrap();
    assert_eq!(report.stdout.text(), "b'listened'\n101\n", "{}", report.stderr.text());
    // The port is not open on the host.
    assert!(std::net::TcpStream::connect("127.0.0.1:3128").is_err());
}
