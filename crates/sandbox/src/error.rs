//! Errors of the sandbox.

use std::io;

use crate::{Failure, Layer, Step};

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a job did not run, or did not run to its end. A job that ran and failed is a [`Report`](crate::Report).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A layer is not available on this machine. The job is refused, because no job runs with fewer layers.
    #[error("the sandbox lacks {layer} ({failure}). {}", layer.remedy())]
    Unavailable { layer: Layer, failure: Failure },
    /// The layers were set up, but the canary got through.
    #[error("the sandbox does not isolate: {}", missing.join("; "))]
    IsolationFailed { missing: Vec<String> },
    #[error("the program {program:?} does not exist in the sandbox")]
    NoSuchProgram { program: String },
    #[error("the program {program:?} cannot be executed: {reason}")]
    NotExecutable { program: String, reason: String },
    /// The job could not be set up, for example because a folder is missing.
    #[error("the job could not be set up: {0}")]
    SetUp(Failure),
    /// Something that the job needs was moved, removed or replaced by a link while the job was set up.
    #[error("the job could not be set up, because a file or folder that it needs was moved; try again ({0})")]
    Moved(Failure),
    /// The job was ended, because its watchdog could no longer measure what it used.
    #[error("the job was ended because its limits could not be watched: {0}")]
    Unwatched(Failure),
    #[error("the job is not valid: {0}")]
    Invalid(&'static str),
    #[error("no {0} interpreter was found beneath /usr or in PATH")]
    NoInterpreter(&'static str),
    #[error("the sandbox's launcher ended; its jobs ended with it")]
    LauncherGone,
    #[error("the sandbox's launcher cannot be started: {0}")]
    Launcher(#[source] io::Error),
    #[error("the server could not start the job: {0}")]
    Io(#[from] io::Error),
}

impl Error {
    /// Whether no job at all can run on this machine. A retry is pointless until an operator changes the machine.
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::IsolationFailed { .. } | Self::Launcher(_))
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Io(errno.into())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        if let Some(layer) = failure.step.layer() {
            return Self::Unavailable { layer, failure };
        }
        match failure.step {
            Step::Program => {}
            Step::Watch => return Self::Unwatched(failure),
            Step::Mount if failure.errno == rustix::io::Errno::STALE.raw_os_error() => return Self::Moved(failure),
            _ => return Self::SetUp(failure),
        }
        let program = failure.subject.clone();
        match rustix::io::Errno::from_raw_os_error(failure.errno) {
            rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR => Self::NoSuchProgram { program },
            errno => Self::NotExecutable { program, reason: errno.to_string() },
        }
    }
}
