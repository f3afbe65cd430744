//! Failures of commands, with the exit code of each.

use std::io;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Anything that has no exit code of its own.
    #[error("{0}")]
    Failed(String),
    /// The arguments are wrong.
    #[error("{0}")]
    Usage(String),
    /// The call waits for a person.
    #[error("{0}")]
    Waits(String),
    /// A rule, a person or missing rights refuse it.
    #[error("{0}")]
    Refused(String),
    /// There is no valid sign-in.
    #[error("{0}")]
    NotSignedIn(String),
    /// The server cannot be reached, or is too busy.
    #[error("{0}")]
    Unreachable(String),
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// Somebody changed or decided something else meanwhile.
    #[error("{0}")]
    Conflict(String),
}

/// The exit codes, for the reference.
pub(crate) const EXIT_CODES: [(u8, &str); 9] = [
    (0, "done"),
    (1, "failed; the message on standard error says why"),
    (2, "wrong arguments; nothing was done"),
    (3, "the call waits for a person to approve it, or asks again because the files have changed"),
    (4, "refused: by a rule, by a person, or because the rights are missing"),
    (5, "not signed in, or the sign-in has ended"),
    (6, "the server cannot be reached, or is too busy"),
    (7, "not found"),
    (8, "conflict: somebody changed or decided something else meanwhile"),
];

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Waits(_) => 3,
            Self::Refused(_) => 4,
            Self::NotSignedIn(_) => 5,
            Self::Unreachable(_) => 6,
            Self::NotFound(_) => 7,
            Self::Conflict(_) => 8,
        }
    }

    /// Returns the failure for an answer of the server with this status.
    pub(crate) fn of_status(status: u16, message: String) -> Self {
        match status {
            202 => Self::Waits(message),
            401 => Self::NotSignedIn(format!("{message}; sign in with `toolrest login`")),
            403 => Self::Refused(message),
            404 | 410 => Self::NotFound(message),
            409 | 412 => Self::Conflict(message),
            429 | 502..=504 => Self::Unreachable(message),
            _ => Self::Failed(message),
        }
    }

    /// Creates the failure of reading or writing something.
    pub(crate) fn io(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Failed(format!("{what}: {error}"))
    }
}

/// Ends of commands.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;
