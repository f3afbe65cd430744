//! Runs one program under namespaces, Landlock, seccomp and limits. It knows nothing of tools.
//!
//! [`Sandbox::start`] re-executes the server as a small, single-threaded **launcher** and talks to it over a socket.
//! The launcher makes **cells**: a process that is PID 1 of namespaces of its own, has built a file system of its own
//! and waits for an order. An order turns the cell into a job: PID 1 starts the program, reaps what it leaves behind
//! and watches its limits. The server never forks; it only passes descriptors.
//!
//! ```text
//!  server ── control socket ──► launcher ── cell socket ──► PID 1 ──► program
//!     ├───── one socket per job ───┘                                    │
//!     └──────────────────── stdin, stdout, stderr ──────────────────────┘
//! ```
//!
//! Every layer is a requirement. Where one is missing the job is refused with [`Error::Unavailable`], which names it
//! and the remedy; [`Sandbox::probe`] proves the layers by a job that tries to get out.
//!
//! Everything dies with its parent: a dropped [`Running`] kills its job, a dead server its launcher, a dead launcher
//! all of its cells.

mod canary;
mod cell;
mod error;
mod job;
mod launcher;
mod limits;
mod output;
mod pool;
mod probe;
mod report;
mod running;
mod sandbox;
mod source;
mod step;
mod sys;
mod wire;

pub use error::{Error, Result};
pub use job::{Access, Job, Mount, Network, Place, Stdin};
pub use launcher::launcher_main;
pub use limits::{Enforced, Enforcer, Limit, Limits};
pub use output::Captured;
pub use pool::{Interpreter, Language, Pool, PoolOptions, Script};
pub use probe::{Finding, Layer, Probe, State};
pub use report::{Exit, Report};
pub use running::{After, Chunk, Input, Running, Stream};
pub use sandbox::{Options, Sandbox};
pub use source::Source;
pub use step::{Failure, Step};
