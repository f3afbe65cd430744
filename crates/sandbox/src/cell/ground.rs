//! What all cells have in common, found out once by the launcher.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{filter::Filters, quotas::TCP_BUFFER_BYTES};

/// Entries of the root that make up the system, as far as a program needs it.
const SYSTEM: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Entries of `/etc` that programs need and that hold nothing of the host's own: certificates, but not the keys that
/// may lie beside them. What is not here is made up.
const ETC: [&str; 8] = [
    "alternatives",
    "fonts",
    "ld.so.cache",
    "localtime",
    "pki/ca-trust",
    "pki/tls/certs",
    "ssl/certs",
    "ssl/openssl.cnf",
];

/// The buffers of a new socket on an unchanged system.
const SOCKET_BUFFER_BYTES: u64 = 212_992;

/// What all cells have in common.
pub(crate) struct ExecutionRoot {
    /// Whether the launcher is root, so that jobs run as a user of their own.
    pub(crate) privileged: bool,
    pub(crate) without_landlock: bool,
    /// What the buffers of one socket can take: both directions of a connection, or a message for each end.
    pub(super) socket_bytes: u64,
    /// Paths without the leading slash.
    pub(super) system: Vec<(PathBuf, Kind)>,
    pub(super) filters: Filters,
}

/// What an entry of the system is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    Link(PathBuf),
}

impl ExecutionRoot {
    pub(crate) fn survey(privileged: bool, without_landlock: bool) -> Result<Self, seccompiler::BackendError> {
        let mut names: Vec<PathBuf> = SYSTEM.map(PathBuf::from).into();
        names.extend(ETC.map(|name| Path::new("etc").join(name)));
        // Debian's Java cannot start without its configuration, whose folder has the version in its name.
        let java = fs::read_dir("/etc").into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.extend(
            java.filter(|name| name.as_encoded_bytes().starts_with(b"java-")).map(|n| Path::new("etc").join(n)),
        );
        let system = names.into_iter().filter_map(|name| kind(&name).map(|kind| (name, kind))).collect();
        let socket_bytes = 2 * buffer_bytes("wmem_default").max(buffer_bytes("rmem_default")).max(TCP_BUFFER_BYTES);
        Ok(Self { privileged, without_landlock, socket_bytes, system, filters: Filters::compile()? })
    }
}

/// The size of the buffers of a new socket; that of an unchanged system where it is not told.
fn buffer_bytes(name: &str) -> u64 {
    let text = fs::read_to_string(Path::new("/proc/sys/net/core").join(name)).unwrap_or_default();
    text.trim().parse().unwrap_or(SOCKET_BUFFER_BYTES)
}

fn kind(name: &Path) -> Option<Kind> {
    let path = Path::new("/").join(name);
    let metadata = fs::symlink_metadata(&path).ok()?;
    if metadata.is_symlink() {
        return fs::read_link(path).ok().map(Kind::Link);
    }
    Some(if metadata.is_dir() { Kind::Folder } else { Kind::File })
}
