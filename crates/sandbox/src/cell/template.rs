//! The properties that all cells have in common, detected once by the launcher.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{quotas::TCP_BUFFER_BYTES, seccomp::Filters};

/// Entries of the host's root that make up the system.
const SYSTEM: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Entries of `/etc` that programs need and that contain no secrets: certificates, but not the keys that may be stored
/// next to them. Other files of `/etc` are generated.
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

/// Default buffer size of a new socket in the kernel.
const SOCKET_BUFFER_BYTES: u64 = 212_992;

/// The properties that all cells have in common.
pub(crate) struct CellTemplate {
    /// Whether the launcher is root, so that jobs run as users of their own.
    pub(crate) privileged: bool,
    pub(crate) without_landlock: bool,
    /// The capacity of one socket's buffers: both directions of a connection, or one message per end.
    pub(super) socket_bytes: u64,
    /// Paths without the leading slash.
    pub(super) system: Vec<(PathBuf, Kind)>,
    pub(super) filters: Filters,
}

/// The type of a system entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    Link(PathBuf),
}

impl CellTemplate {
    pub(crate) fn detect(privileged: bool, without_landlock: bool) -> Result<Self, seccompiler::BackendError> {
        let mut names: Vec<PathBuf> = SYSTEM.map(PathBuf::from).into();
        names.extend(ETC.map(|name| Path::new("etc").join(name)));
        // Debian's Java needs its configuration, whose folder name contains the version.
        let java = fs::read_dir("/etc").into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.extend(
            java.filter(|name| name.as_encoded_bytes().starts_with(b"java-")).map(|n| Path::new("etc").join(n)),
        );
        let system = names.into_iter().filter_map(|name| kind(&name).map(|kind| (name, kind))).collect();
        let socket_bytes = 2 * buffer_bytes("wmem_default").max(buffer_bytes("rmem_default")).max(TCP_BUFFER_BYTES);
        Ok(Self { privileged, without_landlock, socket_bytes, system, filters: Filters::compile()? })
    }
}

/// Returns the buffer size of a new socket, or the kernel's default if it is unknown.
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
