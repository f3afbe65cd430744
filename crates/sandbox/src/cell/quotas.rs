//! Quotas of the namespaces of a cell.
//!
//! The kernel also charges inotify to the creator of the user namespace, with one limit for all of its namespaces. So
//! each job gets a small part.

use rustix::{
    fs::{Mode, OFlags},
    io::{Errno, Result},
};

/// Maximum buffer size per direction of a TCP connection. Buffers grow up to it automatically, from the host's TCP
/// memory.
pub(super) const TCP_BUFFER_BYTES: u64 = 65_536;

/// Settings below `/proc/sys`. Each applies to the namespaces of the writing process.
const QUOTAS: [(&str, &str); 6] = [
    ("user/max_user_namespaces", "0"),
    ("user/max_inotify_instances", "8"),
    ("user/max_inotify_watches", "16384"),
    ("user/max_fanotify_groups", "0"),
    ("user/max_fanotify_marks", "0"),
    // Connections in `TIME_WAIT`, which do not count as sockets.
    ("net/ipv4/tcp_max_tw_buckets", "4096"),
];

/// Writes the quotas through the `/proc` of the new root.
pub(super) fn set() -> Result<()> {
    for (name, value) in QUOTAS {
        match write(name, value) {
            // The kernel lacks the feature, so it needs no quota.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    write("net/ipv4/tcp_wmem", &format!("4096 16384 {TCP_BUFFER_BYTES}"))?;
    write("net/ipv4/tcp_rmem", &format!("4096 {TCP_BUFFER_BYTES} {TCP_BUFFER_BYTES}"))
}

fn write(name: &str, value: &str) -> Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(format!("proc/sys/{name}"), flags, Mode::empty())?;
    rustix::io::write(file, value.as_bytes()).map(drop)
}
