//! The system calls that a program may make.
//!
//! Several filters, of which the kernel takes the strictest answer. The first one looks at the call only: it knows those
//! that programs need and answers `ENOSYS` to those it does not know, so that programs fall back to an older call. The
//! others look at the arguments of those few that are refused with some; there is one for each answer.

mod arguments;
mod calls;
mod tree;

use libc::c_long;
use rustix::io::Errno;
use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use calls::{ALLOWED, ALLOWED_HERE, REFUSED};
use tree::Answer;

/// The compiled filters.
pub(super) struct Filters {
    first: Vec<BpfProgram>,
    last: BpfProgram,
}

/// Calls that only the set-up of a job makes. A Landlock rule keeps a file from being freed that has no name any more,
/// and no process shows it: a program could hide files of any size.
const SET_UP: [c_long; 3] =
    [libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self];

impl Filters {
    pub(super) fn compile() -> Result<Self, BackendError> {
        let allowed = ALLOWED.iter().chain(ALLOWED_HERE).map(|call| (*call, Answer::Allow));
        let refused = REFUSED.iter().map(|call| (*call, Answer::Fail(Errno::PERM)));
        let mut first = vec![tree::compile(allowed.chain(refused), Answer::Fail(Errno::NOSYS))];
        for (errno, rules) in arguments::refusals()? {
            let arch = TargetArch::try_from(std::env::consts::ARCH)?;
            let answer = SeccompAction::Errno(errno.unsigned_abs());
            first.push(SeccompFilter::new(rules, SeccompAction::Allow, answer, arch)?.try_into()?);
        }
        let refused = SET_UP.iter().map(|call| (*call, Answer::Fail(Errno::NOSYS)));
        Ok(Self { first, last: tree::compile(refused, Answer::Allow) })
    }

    /// Filters everything but what the rest of the set-up needs.
    pub(super) fn install(&self) -> Result<(), Errno> {
        self.first.iter().try_for_each(install)
    }

    /// Filters what the set-up has needed, once it is done.
    pub(super) fn install_last(&self) -> Result<(), Errno> {
        install(&self.last)
    }
}

fn install(filter: &BpfProgram) -> Result<(), Errno> {
    seccompiler::apply_filter(filter).map_err(|_| Errno::OPNOTSUPP)
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod filter_tests;
