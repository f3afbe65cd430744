//! The system calls that a program may make.
//!
//! Two filters, of which the kernel takes the stricter answer. The first one looks at the call only: it knows those
//! that programs need and answers `ENOSYS` to those it does not know, so that programs fall back to an older call. The
//! second one looks at the arguments of those few that are refused with some.

mod calls;
mod tree;

use std::collections::BTreeMap;

use libc::c_long;
use rustix::io::Errno;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use calls::{ALLOWED, ALLOWED_HERE, REFUSED};
use tree::Answer;

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// `O_CREAT`, and the bit of `O_TMPFILE` that is its own.
const CREATING: [u64; 2] = [libc::O_CREAT as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64];

const SET_ID_BITS: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];

/// Personalities a program may ask for: the usual one, which one it has, and one without random addresses.
const PERSONALITIES: [u64; 3] = [0, 0xffff_ffff, libc::ADDR_NO_RANDOMIZE as u64];

const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// The compiled filters.
pub(super) struct Filters {
    calls: BpfProgram,
    arguments: BpfProgram,
}

impl Filters {
    pub(super) fn compile() -> Result<Self, BackendError> {
        let allowed = ALLOWED.iter().chain(ALLOWED_HERE).map(|call| (*call, Answer::Allow));
        let refused = REFUSED.iter().map(|call| (*call, Answer::Fail(Errno::PERM)));
        let calls = tree::compile(allowed.chain(refused), Answer::Fail(Errno::NOSYS));
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        let eperm = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let arguments = SeccompFilter::new(refusals()?, SeccompAction::Allow, eperm, arch)?.try_into()?;
        Ok(Self { calls, arguments })
    }

    pub(super) fn install(&self) -> Result<(), Errno> {
        for filter in [&self.calls, &self.arguments] {
            seccompiler::apply_filter(filter).map_err(|_| Errno::OPNOTSUPP)?;
        }
        Ok(())
    }
}

fn refusals() -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    let any_of = |argument, bits: &[u64]| {
        bits.iter().map(|bit| rule(vec![has(argument, *bit)?])).collect::<Result<Vec<_>, BackendError>>()
    };
    let none_of = |argument, values: &[u64]| {
        let conditions = values.iter().map(|value| differs(argument, *value)).collect::<Result<_, _>>()?;
        rule(conditions).map(|rule| vec![rule])
    };
    let namespaces: Vec<u64> = NAMESPACES.iter().map(|flag| u64::from(flag.unsigned_abs())).collect();
    rules.insert(libc::SYS_clone, any_of(0, &namespaces)?);
    let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6].map(|family| u64::from(family.unsigned_abs()));
    rules.insert(libc::SYS_socket, none_of(0, &families)?);
    rules.insert(libc::SYS_socketpair, none_of(0, &families[..1])?);
    rules.insert(libc::SYS_personality, none_of(0, &PERSONALITIES)?);
    let input = [libc::TIOCSTI, libc::TIOCLINUX];
    let input = input.iter().map(|request| rule(vec![equals(1, *request)?])).collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, input);
    // Who holds a lease on a file keeps everybody else who opens it waiting, the server too.
    rules.insert(libc::SYS_fcntl, vec![rule(vec![equals(1, libc::F_SETLEASE.unsigned_abs().into())?])?]);
    for (call, mode) in MODES.iter().chain(MODES_HERE) {
        rules.insert(*call, any_of(*mode, &SET_ID_BITS)?);
    }
    for (call, flags, mode) in OPENS {
        let mut both = Vec::new();
        for creating in CREATING {
            for bit in SET_ID_BITS {
                both.push(rule(vec![has(*flags, creating)?, has(*mode, bit)?])?);
            }
        }
        rules.insert(*call, both);
    }
    Ok(rules)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions)
}

fn has(argument: u8, bit: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bit), bit)
}

fn equals(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn differs(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// Calls that set a mode, and which argument it is.
const MODES: &[(c_long, u8)] =
    &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2), (libc::SYS_mknodat, 2)];

#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[(c_long, u8)] = &[(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(c_long, u8)] = &[];

/// Calls that open, and which arguments are the flags and the mode.
#[cfg(target_arch = "x86_64")]
const OPENS: &[(c_long, u8, u8)] = &[(libc::SYS_open, 1, 2), (libc::SYS_openat, 2, 3)];
#[cfg(not(target_arch = "x86_64"))]
const OPENS: &[(c_long, u8, u8)] = &[(libc::SYS_openat, 2, 3)];

#[cfg(test)]
#[path = "filter_tests.rs"]
mod filter_tests;
