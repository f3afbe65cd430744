//! The seccomp filters of a program.
//!
//! There are several filters; the kernel applies the strictest result. The first one checks only the number of the
//! call: it allows what programs need and answers `ENOSYS` to unknown calls, so that programs fall back to older ones.
//! The others check arguments; there is one filter per errno.

mod arguments;
mod calls;
mod tree;

use libc::c_long;
use rustix::io::Errno;
use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use calls::{ALLOWED, ALLOWED_ON_THIS_ARCHITECTURE, REFUSED};
use tree::Answer;

/// The compiled filters.
pub(super) struct Filters {
    first: Vec<BpfProgram>,
    last: BpfProgram,
}

/// System calls that only the set-up of a job uses. A Landlock rule keeps a deleted file alive without any process
/// showing it, so a program could hide files of any size.
const SET_UP: [c_long; 3] =
    [libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self];

impl Filters {
    pub(super) fn compile() -> Result<Self, BackendError> {
        let allowed = ALLOWED.iter().chain(ALLOWED_ON_THIS_ARCHITECTURE).map(|call| (*call, Answer::Allow));
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

    /// Installs all filters except the one that would block the rest of the set-up.
    pub(super) fn install(&self) -> Result<(), Errno> {
        self.first.iter().try_for_each(install)
    }

    /// Installs the filter that blocks the calls of the set-up.
    pub(super) fn install_last(&self) -> Result<(), Errno> {
        install(&self.last)
    }
}

fn install(filter: &BpfProgram) -> Result<(), Errno> {
    seccompiler::apply_filter(filter).map_err(|_| Errno::OPNOTSUPP)
}

#[cfg(test)]
#[path = "seccomp_tests.rs"]
mod seccomp_tests;
