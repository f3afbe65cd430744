//! What to run, and where.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{Limits, Source};

/// A program and what it is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The program and its arguments. A program without a slash is looked for in the `PATH` of the place.
    pub argv: Vec<OsString>,
    pub place: Place,
    #[serde(skip)]
    pub stdin: Stdin,
}

impl Job {
    pub fn new(place: Place, argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), place, stdin: Stdin::Empty }
    }

    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }
}

/// Where a program runs: what it sees and what it may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Mounted in this order. Beside them there is only the system, read-only, and an empty `/tmp`.
    pub mounts: Vec<Mount>,
    /// The working folder, as the program sees it.
    #[serde(with = "bytes")]
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    pub network: Network,
    pub limits: Limits,
}

impl Place {
    /// A place with one writable folder, in which the program starts.
    pub fn new(folder: Source, target: impl Into<PathBuf>) -> Self {
        let target = target.into();
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TMPDIR", "/tmp")];
        let mut env: Vec<(OsString, OsString)> = env.map(|(name, value)| (name.into(), value.into())).into();
        env.push(("HOME".into(), target.clone().into()));
        Self {
            mounts: vec![Mount::Folder {
                source: folder,
                target: target.clone(),
                access: Access::ReadWrite,
                frozen: Vec::new(),
            }],
            cwd: target,
            env,
            network: Network::None,
            limits: Limits::default(),
        }
    }

    /// Sets a variable, in the place of an earlier one of the name.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.env.retain(|(other, _)| *other != name);
        self.env.push((name, value.into()));
        self
    }

    #[must_use]
    pub fn mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What is mounted from the host, in the order in which it is handed to a cell.
    pub(crate) fn sources(&self) -> Vec<(&Source, Access)> {
        let mut sources = Vec::new();
        for mount in &self.mounts {
            match mount {
                Mount::Folder { source, access, .. } => sources.push((source, *access)),
                Mount::Overlay { lower, private, .. } => {
                    sources.extend(lower.iter().map(|source| (source, Access::ReadOnly)));
                    sources.push((private, Access::ReadWrite));
                }
            }
        }
        if let Network::Proxy { socket, .. } = &self.network {
            sources.push((socket, Access::ReadWrite));
        }
        sources
    }

    pub(crate) fn has_overlay(&self) -> bool {
        self.mounts.iter().any(|mount| matches!(mount, Mount::Overlay { .. }))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

/// A folder of the host in the file system of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mount {
    Folder {
        source: Source,
        #[serde(with = "bytes")]
        target: PathBuf,
        access: Access,
        /// Paths below the folder that stay as they are, whatever else is written to. All must exist when the job begins;
        /// none may be a link or lead through one.
        frozen: Vec<OsString>,
    },
    /// Folders that stay as they are beneath one that takes what the job changes.
    Overlay {
        /// From the uppermost down.
        lower: Vec<Source>,
        /// A folder of the caller's own with two folders in it, both on one file system: `upper`, where the changes
        /// end up, and `work`, which is the kernel's. What it leaves in `work` is a folder without any permission,
        /// which its owner has to give one before it can be removed.
        private: Source,
        #[serde(with = "bytes")]
        target: PathBuf,
    },
}

impl Mount {
    pub(crate) fn target(&self) -> &Path {
        match self {
            Self::Folder { target, .. } | Self::Overlay { target, .. } => target,
        }
    }

    pub(crate) fn frozen(&self) -> &[OsString] {
        match self {
            Self::Folder { frozen, .. } => frozen,
            Self::Overlay { .. } => &[],
        }
    }

    pub(crate) const fn access(&self) -> Access {
        match self {
            Self::Folder { access, .. } => *access,
            Self::Overlay { .. } => Access::ReadWrite,
        }
    }
}

/// What a job can reach beyond its own loopback interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    None,
    /// The UNIX socket of a proxy, at a path in the file system of the job. The proxy decides what is reached; the
    /// job has no other way out.
    Proxy {
        socket: Source,
        #[serde(with = "bytes")]
        target: PathBuf,
    },
    /// A port of the job's own loopback interface on which the server listens, for programs that know proxies only by
    /// address; see [`Running::listener`](crate::Running::listener). The job has no other way out.
    Listener {
        port: u16,
    },
}

/// What the program reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Stdin {
    /// Ended from the start.
    #[default]
    Empty,
    Bytes(Vec<u8>),
    /// Stays open; see [`Running::take_input`](crate::Running::take_input).
    Open,
}

/// Paths on the wire: bytes, since they need not be UTF-8.
pub(crate) mod bytes {
    use std::{
        ffi::OsString,
        os::unix::ffi::OsStringExt,
        path::{Path, PathBuf},
    };

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().as_encoded_bytes().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Vec::deserialize(deserializer).map(|bytes| OsString::from_vec(bytes).into())
    }
}
