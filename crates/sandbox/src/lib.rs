//! Runs one program under namespaces, Landlock, seccomp and limits. It knows nothing of tools.
//!
//! [`Sandbox::start`] re-executes the server as a small, single-threaded **launcher** and talks to it over a socket.
//! The launcher creates **cells**: processes that are PID 1 of their own namespaces, have built their own file system
//! and wait for a request. A request turns the cell into a job: PID 1 starts the program, reaps its orphans and
//! enforces its limits. The server never forks; it only passes descriptors.
//!
//! ```text
//!  server ── control socket ──► launcher ── cell socket ──► PID 1 ──► program
//!     ├───── one socket per job ───┘                                    │
//!     └──────────────────── stdin, stdout, stderr ──────────────────────┘
//! ```
//!
//! Every layer is required. If one is missing, the job is refused with [`Error::Unavailable`], which names the layer
//! and the remedy. [`Sandbox::probe`] checks the layers with a job that tries to break them.
//!
//! Everything ends with its parent: dropping [`RunningJob`] kills the job; the death of the server ends the launcher;
//! the death of the launcher kills all cells.

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
pub use job::{Access, CellSpec, Job, Link, Mount, Network, Stdin};
pub use launcher::launcher_main;
pub use limits::{Enforcer, Limit, LimitEnforcers, Limits};
pub use output::CapturedOutput;
pub use pool::{Interpreter, Language, Pool, PoolOptions, Script};
pub use probe::{Layer, LayerResult, ProbeReport, State};
pub use report::{Exit, Report};
pub use running::{Chunk, Input, PoolRefill, RunningJob, Stream};
pub use sandbox::{Options, Sandbox};
pub use source::Source;
pub use step::{Failure, Step};
