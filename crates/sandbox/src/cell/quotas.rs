//! Quotas of the namespaces of a cell.
//!
//! The kernel charges inotify to the user that made the user namespace too, with one limit for all of its namespaces.
//! Jobs therefore have a small part of it each.

use rustix::{
    fs::{Mode, OFlags},
    io::{Errno, Result},
};

/// The largest buffer of each direction of a TCP connection. Buffers grow to it by themselves, out of memory that the whole
/// host has for TCP.
pub(super) const TCP_BUFFER_BYTES: u64 = 65_536;

/// Settings beneath `/proc/sys`, all of which count for the namespaces of the one who writes them.
const QUOTAS: [(&str, &str); 6] = [
    ("user/max_user_namespaces", "0"),
    ("user/max_inotify_instances", "8"),
    ("user/max_inotify_watches", "16384"),
    ("user/max_fanotify_groups", "0"),
    ("user/max_fanotify_marks", "0"),
    // Connections that have been closed on both sides. They count as no sockets.
    ("net/ipv4/tcp_max_tw_buckets", "4096"),
];

/// Sets the quotas, by the `/proc` beneath the working folder.
pub(super) fn set() -> Result<()> {
    for (name, value) in QUOTAS {
        match write(name, value) {
            // A kernel without it needs no quota.
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
