//! The system calls that a program may make.
//!
//! Several filters, of which the kernel takes the strictest answer. The first one looks at the call only: it knows those
//! that programs need and answers `ENOSYS` to those it does not know, so that programs fall back to an older call. The
//! others look at the arguments of those few that are refused with some; there is one for each answer.

mod arguments;
mod calls;
mod tree;

use rustix::io::Errno;
use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use calls::{ALLOWED, ALLOWED_HERE, REFUSED};
use tree::Answer;

/// The compiled filters.
pub(super) struct Filters(Vec<BpfProgram>);

impl Filters {
    pub(super) fn compile() -> Result<Self, BackendError> {
        let allowed = ALLOWED.iter().chain(ALLOWED_HERE).map(|call| (*call, Answer::Allow));
        let refused = REFUSED.iter().map(|call| (*call, Answer::Fail(Errno::PERM)));
        let mut filters = vec![tree::compile(allowed.chain(refused), Answer::Fail(Errno::NOSYS))];
        for (errno, rules) in arguments::refusals()? {
            let arch = TargetArch::try_from(std::env::consts::ARCH)?;
            let answer = SeccompAction::Errno(errno.unsigned_abs());
            filters.push(SeccompFilter::new(rules, SeccompAction::Allow, answer, arch)?.try_into()?);
        }
        Ok(Self(filters))
    }

    pub(super) fn install(&self) -> Result<(), Errno> {
        for filter in &self.0 {
            seccompiler::apply_filter(filter).map_err(|_| Errno::OPNOTSUPP)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod filter_tests;
