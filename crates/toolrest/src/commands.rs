//! The operator's commands, one file each.
//!
//! Data goes to standard output, messages go to standard error. The exit code is 0 for success, 1 for a failure, and 2
//! for wrong arguments.

pub(crate) mod backup;
pub(crate) mod restore;
pub(crate) mod secrets;
pub(crate) mod user;

mod archive;
mod password;
