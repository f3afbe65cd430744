//! Commands of an operator, one file each.
//!
//! Data goes to standard output, words to standard error. The exit code is 0 when the command did what it was asked, 1
//! when it could not, and 2 when the arguments are wrong.

pub(crate) mod backup;
pub(crate) mod restore;
pub(crate) mod user;

mod archive;
mod password;
