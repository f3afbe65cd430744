//! The steps of setting a job up, so that a failure names the one that failed.

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::Layer;

/// One step between an order and the program's first instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    Order,
    Namespaces,
    Identity,
    Group,
    PrivateMounts,
    Root,
    System,
    Devices,
    TemporaryFolders,
    Processes,
    Loopback,
    Listener,
    Mount,
    IdMap,
    Overlay,
    Pivot,
    NestedNamespaces,
    Fork,
    Streams,
    WorkingFolder,
    Limits,
    Capabilities,
    NoNewPrivileges,
    Landlock,
    Seccomp,
    Program,
    /// Not a step of setting up: the watch over the limits of a job that runs.
    Watch,
}

impl Step {
    /// The layer that is missing where the step fails; nothing where the order itself is to blame.
    pub const fn layer(self) -> Option<Layer> {
        Some(match self {
            Self::Namespaces | Self::Identity | Self::NestedNamespaces => Layer::Namespaces,
            Self::PrivateMounts | Self::Root | Self::System | Self::Devices | Self::TemporaryFolders | Self::Pivot => {
                Layer::PrivateRoot
            }
            Self::Processes => Layer::PrivateProcesses,
            Self::Loopback => Layer::PrivateNetwork,
            Self::IdMap => Layer::IdMappedMounts,
            Self::Overlay => Layer::Overlay,
            Self::Limits => Layer::ResourceLimits,
            Self::Capabilities => Layer::NoCapabilities,
            Self::NoNewPrivileges => Layer::NoNewPrivileges,
            Self::Landlock => Layer::Landlock,
            Self::Seccomp => Layer::Seccomp,
            Self::Order
            | Self::Group
            | Self::Listener
            | Self::Mount
            | Self::Fork
            | Self::Streams
            | Self::WorkingFolder
            | Self::Program
            | Self::Watch => return None,
        })
    }

    const fn deed(self) -> &'static str {
        match self {
            Self::Order => "reading the order",
            Self::Namespaces => "making the namespaces",
            Self::Identity => "taking on the sandbox's user",
            Self::Group => "joining the control group",
            Self::PrivateMounts => "making the mounts private",
            Self::Root => "making the root",
            Self::System => "mounting the system read-only",
            Self::Devices => "mounting the devices",
            Self::TemporaryFolders => "mounting /tmp and /dev/shm",
            Self::Processes => "mounting /proc",
            Self::Loopback => "bringing up the loopback interface",
            Self::Listener => "listening on port",
            Self::Mount => "mounting",
            Self::IdMap => "mapping the owner of",
            Self::Overlay => "mounting the overlay",
            Self::Pivot => "entering the root",
            Self::NestedNamespaces => "setting the quotas of the namespaces",
            Self::Fork => "starting a process",
            Self::Streams => "connecting the streams",
            Self::WorkingFolder => "entering the working folder",
            Self::Limits => "setting the limits",
            Self::Capabilities => "dropping the capabilities",
            Self::NoNewPrivileges => "forbidding new privileges",
            Self::Landlock => "restricting files with Landlock",
            Self::Seccomp => "filtering system calls",
            Self::Program => "executing the program",
            Self::Watch => "reading the use of",
        }
    }
}

/// A step that failed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub step: Step,
    /// What it failed on: a path, an interface; empty where the step says it all.
    pub subject: String,
    pub errno: i32,
}

impl Failure {
    pub(crate) fn new(step: Step, errno: Errno) -> Self {
        Self { step, subject: String::new(), errno: errno.raw_os_error() }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.step.deed())?;
        if !self.subject.is_empty() {
            write!(f, " {}", self.subject)?;
        }
        write!(f, ": {}", Errno::from_raw_os_error(self.errno))
    }
}

/// Names the step that a system call belongs to.
pub(crate) trait At<T> {
    fn at(self, step: Step) -> Result<T, Failure>;
    fn on(self, step: Step, subject: impl AsRef<std::path::Path>) -> Result<T, Failure>;
}

impl<T> At<T> for rustix::io::Result<T> {
    fn at(self, step: Step) -> Result<T, Failure> {
        self.map_err(|errno| Failure::new(step, errno))
    }

    fn on(self, step: Step, subject: impl AsRef<std::path::Path>) -> Result<T, Failure> {
        let subject = subject.as_ref().to_string_lossy();
        self.map_err(|errno| Failure { subject: subject.into_owned(), ..Failure::new(step, errno) })
    }
}
