//! The canary: what runs in the place of a program to prove that a job cannot get out.
//!
//! It needs no interpreter: it is this very code, in the process that would have executed the program, with every
//! layer in place.

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

/// The file that it leaves in its working folder.
pub(crate) const FEATHER: &str = "feather";

/// What the canary tries to reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bait {
    /// A file of the host that the server can read.
    pub(crate) outside: String,
    /// A port of the host's loopback interface that the server listens on.
    pub(crate) port: u16,
    /// The namespaces of the server.
    pub(crate) namespaces: BTreeMap<String, String>,
    /// Whether Landlock may be missing.
    pub(crate) without_landlock: bool,
}

/// What came of one attempt.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) layer: Layer,
    /// What was got that should not have been; nothing where the layer holds.
    pub(crate) leak: Option<String>,
}

/// Tries to get out, and writes the notes to the standard output.
pub(crate) fn sing(bait: &Bait) -> ! {
    let notes: Vec<Note> = [
        (Layer::Namespaces, namespaces(bait)),
        (Layer::PrivateRoot, private_root(bait)),
        (Layer::PrivateProcesses, private_processes()),
        (Layer::PrivateNetwork, private_network(bait)),
        (Layer::NoCapabilities, status(&["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"], "0000000000000000")),
        (Layer::NoNewPrivileges, status(&["NoNewPrivs"], "1")),
        (Layer::Seccomp, status(&["Seccomp"], "2").or_else(refused_calls)),
        (Layer::Landlock, if bait.without_landlock { None } else { landlock() }),
        (Layer::ResourceLimits, resource_limits()),
    ]
    .map(|(layer, leak)| Note { layer, leak })
    .into();
    // Whether this worked, the server sees by itself.
    let _ = fs::write(FEATHER, "");
    let song = postcard::to_allocvec(&notes).unwrap_or_default();
    let written = rustix::io::write(rustix::stdio::stdout(), &song);
    sys::exit(i32::from(written != Ok(song.len())))
}

pub(crate) fn own_namespaces() -> BTreeMap<String, String> {
    let link = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).ok();
    let named = NAMESPACES.iter().filter_map(|name| Some(((*name).to_owned(), link(name)?.display().to_string())));
    named.collect()
}

fn namespaces(bait: &Bait) -> Option<String> {
    let own = own_namespaces();
    let shared: Vec<&str> = NAMESPACES
        .into_iter()
        .filter(|name| own.get(*name).is_none_or(|space| bait.namespaces.get(*name) == Some(space)))
        .collect();
    (!shared.is_empty()).then(|| format!("the host's namespaces are shared: {}", shared.join(", ")))
}

fn private_root(bait: &Bait) -> Option<String> {
    if fs::read(&bait.outside).is_ok() {
        return Some(format!("{} of the host can be read", bait.outside));
    }
    let writable = ["/", "/usr", "/etc"].into_iter().find(|folder| fs::write(format!("{folder}/canary"), "").is_ok());
    writable.map(|folder| format!("{folder} can be written to"))
}

fn private_processes() -> Option<String> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids: Vec<u32> = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    (pids != [std::process::id()]).then(|| format!("other processes can be seen: {pids:?}"))
}

fn private_network(bait: &Bait) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, bait.port));
    let reached = TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok();
    reached.then(|| format!("port {} of the host can be reached", bait.port))
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
    let open = calls.into_iter().find(|(_, number, first)| sys::attempt(*number, [*first, 0, 0]) != Err(Errno::PERM));
    open.map(|(name, ..)| format!("the system call {name} is not refused"))
}

/// A file that its owner may write to, as far as everything but Landlock is concerned.
fn landlock() -> Option<String> {
    let opened = rustix::fs::open("/proc/self/comm", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    (opened.err() != Some(Errno::ACCESS)).then(|| "a file outside its folders can be written to".to_owned())
}

fn resource_limits() -> Option<String> {
    let limits = [("core", Resource::Core), ("processes", Resource::Nproc), ("data", Resource::Data)];
    let free = limits.into_iter().find(|(_, resource)| rustix::process::getrlimit(*resource).maximum.is_none());
    free.map(|(name, _)| format!("{name} has no limit"))
}
