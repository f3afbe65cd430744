//! A job: the program to run, and the cell to run it in.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{Limits, Source};

/// A program, the cell it runs in, and its input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The program and its arguments. A program without a slash is searched for in the `PATH` of the cell.
    pub argv: Vec<OsString>,
    pub spec: CellSpec,
    #[serde(skip)]
    pub stdin: Stdin,
}

impl Job {
    pub fn new(spec: CellSpec, argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), spec, stdin: Stdin::Empty }
    }

    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }
}

/// The cell in which a program runs: its mounts, environment, network and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSpec {
    /// Mounts, in this order. Apart from them the cell has only the system, read-only, and an empty `/tmp`.
    pub mounts: Vec<Mount>,
    /// Symbolic links outside of the mounts.
    pub links: Vec<Link>,
    /// The working folder, as a path in the cell.
    #[serde(with = "bytes")]
    pub cwd: PathBuf,
    /// The complete environment; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    pub network: Network,
    pub limits: Limits,
}

impl CellSpec {
    /// Returns a cell with one writable folder, which is also the working folder.
    pub fn new(folder: Source, target: impl Into<PathBuf>) -> Self {
        let target = target.into();
        let mount =
            Mount::Folder { source: folder, target: target.clone(), access: Access::ReadWrite, frozen: Vec::new() };
        Self::on(mount)
    }

    /// Returns a cell whose working folder is a mount.
    pub fn on(mount: Mount) -> Self {
        let target = mount.target().to_owned();
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TMPDIR", "/tmp")];
        let mut env: Vec<(OsString, OsString)> = env.map(|(name, value)| (name.into(), value.into())).into();
        env.push(("HOME".into(), target.clone().into()));
        Self {
            mounts: vec![mount],
            links: Vec::new(),
            cwd: target,
            env,
            network: Network::None,
            limits: Limits::default(),
        }
    }

    /// Sets a variable and replaces an earlier value.
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

    /// Returns all mounted sources, in the order in which they are passed to a cell.
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

/// A symbolic link in the cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    #[serde(with = "bytes")]
    pub path: PathBuf,
    #[serde(with = "bytes")]
    pub target: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

/// A folder of the host that is mounted in the cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mount {
    Folder {
        source: Source,
        #[serde(with = "bytes")]
        target: PathBuf,
        access: Access,
        /// Paths below the folder that stay read-only even if the folder is writable. All must exist when the job
        /// starts; none may be a symbolic link or lead through one.
        frozen: Vec<OsString>,
    },
    /// Read-only folders, with a private folder that receives the job's changes.
    Overlay {
        /// Lower layers, the uppermost first.
        lower: Vec<Source>,
        /// A folder that belongs to the caller, with two folders on the same file system: `upper` receives the changes;
        /// `work` is used by the kernel. The kernel leaves a folder without permissions in `work`; its owner has to
        /// change the mode before it can be removed.
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

/// What a job can reach besides its own loopback interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    None,
    /// The UNIX socket of a proxy, mounted at a path in the cell. The proxy decides which hosts can be reached; the job
    /// has no other connection.
    Proxy {
        socket: Source,
        #[serde(with = "bytes")]
        target: PathBuf,
    },
    /// A port of the job's loopback interface on which the server listens, for programs that only support proxies by
    /// address; see [`RunningJob::listener`](crate::Running::listener). The job has no other connection.
    Listener {
        port: u16,
    },
}

/// The standard input of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Stdin {
    /// The input ends immediately.
    #[default]
    Empty,
    Bytes(Vec<u8>),
    /// The input stays open; see [`RunningJob::take_input`](crate::Running::take_input).
    Open,
}

/// Serialises paths as bytes, because they may not be UTF-8.
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
