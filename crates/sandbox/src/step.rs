//! The steps of setting up a job. A failure names its step.

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::Layer;

/// A step between the request and the program's first instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    Request,
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
    /// Measuring a running job. Not part of the set-up.
    Watch,
}

impl Step {
    /// Returns the isolation layer that is unavailable if this step fails, or `None` if the step belongs to no layer.
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
            Self::Request
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

    const fn description(self) -> &'static str {
        match self {
            Self::Request => "reading the job request",
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

/// A failed step with its error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub step: Step,
    /// The object of the step, such as a path. Empty if the step needs none.
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
        f.write_str(self.step.description())?;
        if !self.subject.is_empty() {
            write!(f, " {}", self.subject)?;
        }
        write!(f, ": {}", Errno::from_raw_os_error(self.errno))
    }
}

/// Attaches a step to the error of a system call.
pub(crate) trait StepContext<T> {
    fn at(self, step: Step) -> Result<T, Failure>;
    /// Also names the object of the step.
    fn on(self, step: Step, subject: impl AsRef<std::path::Path>) -> Result<T, Failure>;
}

impl<T> StepContext<T> for rustix::io::Result<T> {
    fn at(self, step: Step) -> Result<T, Failure> {
        self.map_err(|errno| Failure::new(step, errno))
    }

    fn on(self, step: Step, subject: impl AsRef<std::path::Path>) -> Result<T, Failure> {
        let subject = subject.as_ref().to_string_lossy();
        self.map_err(|errno| Failure { subject: subject.into_owned(), ..Failure::new(step, errno) })
    }
}
