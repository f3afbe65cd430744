//! The canary: code that runs instead of a program and tries to break the isolation.
//!
//! It needs no interpreter. It runs in the process that would have executed the program, with every layer in place.

use std::{
    collections::BTreeMap,
    fs,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    process::Resource,
};
use serde::{Deserialize, Serialize};

use crate::{Layer, sys};

pub(crate) const NAMESPACES: [&str; 7] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];

/// The file that the canary creates in its working folder.
pub(crate) const MARKER_FILE: &str = "canary-was-here";

/// What the canary tries to reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CanaryTargets {
    /// A host file that the server can read.
    pub(crate) outside: String,
    /// A port on the host's loopback interface on which the server listens.
    pub(crate) port: u16,
    /// The namespaces of the server.
    pub(crate) namespaces: BTreeMap<String, String>,
    /// Whether Landlock may be missing.
    pub(crate) without_landlock: bool,
}

/// The result of one attempt.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CanaryResult {
    pub(crate) layer: Layer,
    /// What the canary could reach; `None` if the layer holds.
    pub(crate) leak: Option<String>,
}

/// Tries to break each layer, and writes the results to the standard output.
pub(crate) fn run(targets: &CanaryTargets) -> ! {
    let results: Vec<CanaryResult> = [
        (Layer::Namespaces, namespaces(targets)),
        (Layer::PrivateRoot, private_root(targets)),
        (Layer::PrivateProcesses, private_processes()),
        (Layer::PrivateNetwork, private_network(targets)),
        (Layer::NoCapabilities, status(&["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"], "0000000000000000")),
        (Layer::NoNewPrivileges, status(&["NoNewPrivs"], "1")),
        (Layer::Seccomp, status(&["Seccomp"], "2").or_else(refused_calls)),
        (Layer::Landlock, if targets.without_landlock { None } else { landlock() }),
        (Layer::ResourceLimits, resource_limits()),
    ]
    .map(|(layer, leak)| CanaryResult { layer, leak })
    .into();
    // The server checks the result of this write itself.
    let _ = fs::write(MARKER_FILE, "");
    let encoded = postcard::to_allocvec(&results).unwrap_or_default();
    let written = rustix::io::write(rustix::stdio::stdout(), &encoded);
    sys::exit(i32::from(written != Ok(encoded.len())))
}

pub(crate) fn own_namespaces() -> BTreeMap<String, String> {
    let link = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).ok();
    let named = NAMESPACES.iter().filter_map(|name| Some(((*name).to_owned(), link(name)?.display().to_string())));
    named.collect()
}

fn namespaces(targets: &CanaryTargets) -> Option<String> {
    let own = own_namespaces();
    let shared: Vec<&str> = NAMESPACES
        .into_iter()
        .filter(|name| own.get(*name).is_none_or(|space| targets.namespaces.get(*name) == Some(space)))
        .collect();
    (!shared.is_empty()).then(|| format!("the host's namespaces are shared: {}", shared.join(", ")))
}

fn private_root(targets: &CanaryTargets) -> Option<String> {
    if fs::read(&targets.outside).is_ok() {
        return Some(format!("{} of the host can be read", targets.outside));
    }
    let writable = ["/", "/usr", "/etc"].into_iter().find(|folder| fs::write(format!("{folder}/canary"), "").is_ok());
    writable.map(|folder| format!("{folder} can be written to"))
}

fn private_processes() -> Option<String> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids: Vec<u32> = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    (pids != [std::process::id()]).then(|| format!("other processes can be seen: {pids:?}"))
}

fn private_network(targets: &CanaryTargets) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, targets.port));
    let reached = TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok();
    reached.then(|| format!("port {} of the host can be reached", targets.port))
}

fn status(names: &[&str], wanted: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map_or("nothing", str::trim).to_owned()
    };
    names.iter().map(|name| (name, value(name))).find(|(_, value)| value != wanted).map(|(n, v)| format!("{n} is {v}"))
}

fn refused_calls() -> Option<String> {
    let calls = [
        ("unshare", libc::SYS_unshare, libc::CLONE_NEWUSER.unsigned_abs() as usize),
        ("ptrace", libc::SYS_ptrace, 0),
        ("keyctl", libc::SYS_keyctl, 0),
    ];
    let open =
        calls.into_iter().find(|(_, number, first)| sys::try_syscall(*number, [*first, 0, 0]) != Err(Errno::PERM));
    open.map(|(name, ..)| format!("the system call {name} is not refused"))
}

/// Tries to write to a file that only Landlock protects.
fn landlock() -> Option<String> {
    let opened = rustix::fs::open("/proc/self/comm", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    (opened.err() != Some(Errno::ACCESS)).then(|| "a file outside its folders can be written to".to_owned())
}

fn resource_limits() -> Option<String> {
    let limits = [("core", Resource::Core), ("processes", Resource::Nproc), ("data", Resource::Data)];
    let free = limits.into_iter().find(|(_, resource)| rustix::process::getrlimit(*resource).maximum.is_none());
    free.map(|(name, _)| format!("{name} has no limit"))
}
