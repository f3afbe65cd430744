//! System calls that are refused only with certain arguments.

use std::collections::BTreeMap;

use libc::{c_int, c_long};
use seccompiler::{BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

/// Rules by system call. A call is refused if one of its rules matches.
pub(super) type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

type Result<T> = std::result::Result<T, BackendError>;

/// The PID of the watchdog. It runs as the same user as the program, so only this filter protects it.
const WATCHDOG: u64 = 1;

/// `O_CREAT`, and the bit that only `O_TMPFILE` has.
const CREATING: [u64; 2] = [libc::O_CREAT as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64];

const SET_ID_BITS: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];

/// Allowed personalities: the default, the query, and the one without address randomisation.
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

/// The bits of a socket type that are not flags.
const SOCKET_TYPE: u64 = 0xf;

/// `IOPRIO_WHO_PROCESS` and `IOPRIO_WHO_USER`.
const IOPRIO_PROCESS: u64 = 1;
const IOPRIO_USER: u64 = 3;

/// Maximum pipe buffer size: the default of every pipe.
const PIPE_BYTES: u64 = 64 << 10;

/// Returns the refused calls by errno. With errno 0 a call does nothing and returns success.
pub(super) fn refusals() -> Result<Vec<(c_int, Rules)>> {
    let mut forbidden = Rules::new();
    add_process_rules(&mut forbidden)?;
    add_socket_rules(&mut forbidden)?;
    add_file_rules(&mut forbidden)?;
    // Huge pages of the host's pool are counted neither as process memory nor in a control group.
    forbidden.insert(libc::SYS_mmap, any_bit(3, &[u64::from(libc::MAP_HUGETLB.unsigned_abs())])?);
    Ok(vec![(libc::EPERM, forbidden), (libc::EINVAL, unknown()?), (0, ignored()?)])
}

/// Refuses locks that belong to an open file. A descriptor in flight through a socket could hold any number of them
/// unnoticed.
fn unknown() -> Result<Rules> {
    let locks = [libc::F_OFD_SETLK, libc::F_OFD_SETLKW].map(|command| u64::from(command.unsigned_abs()));
    Ok(Rules::from([(libc::SYS_fcntl, one_of(1, &locks)?)]))
}

/// Returns calls that are ignored, because programs use them for good reasons and work without them.
fn ignored() -> Result<Rules> {
    // Socket buffers must keep their size, because not all of them are counted as memory of the job.
    let mut buffers = Vec::new();
    for option in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
        let conditions =
            vec![equals(1, libc::SOL_SOCKET.unsigned_abs().into())?, equals(2, option.unsigned_abs().into())?];
        buffers.push(rule(conditions)?);
    }
    // `sync` would write out all file systems of the host, and everybody would wait for it.
    let always = Vec::new;
    // The core limit of 1 byte keeps the kernel from starting a core dump program of the host.
    let core = equals(0, u64::from(libc::RLIMIT_CORE))?;
    let core_of = equals(1, u64::from(libc::RLIMIT_CORE))?;
    // PID 1 could not inspect a process that is not dumpable. Other processes may not inspect it anyway.
    let dumpable = one_of(0, &[libc::PR_SET_DUMPABLE.unsigned_abs().into()])?;
    Ok(Rules::from([
        (libc::SYS_setsockopt, buffers),
        (libc::SYS_prctl, dumpable),
        (libc::SYS_sync, always()),
        (libc::SYS_syncfs, always()),
        (libc::SYS_setrlimit, vec![rule(vec![core])?]),
        (libc::SYS_prlimit64, vec![rule(vec![core_of, is_given(2)?])?]),
    ]))
}

fn add_process_rules(rules: &mut Rules) -> Result<()> {
    let namespaces: Vec<u64> = NAMESPACES.iter().map(|flag| u64::from(flag.unsigned_abs())).collect();
    rules.insert(libc::SYS_clone, any_bit(0, &namespaces)?);
    rules.insert(libc::SYS_personality, vec![none_of(0, &PERSONALITIES)?]);
    // The limits of other processes can be read but not set. The third argument points to the new limits.
    rules.insert(libc::SYS_prlimit64, vec![rule(vec![differs(0, 0)?, is_given(2)?])?]);
    // Programs pass the ids of their own threads to these calls, so only the PID of the watchdog is refused.
    for call in
        [libc::SYS_sched_setaffinity, libc::SYS_sched_setattr, libc::SYS_sched_setparam, libc::SYS_sched_setscheduler]
    {
        rules.insert(call, vec![rule(vec![equals(0, WATCHDOG)?])?]);
    }
    // `PRIO_USER` would include the watchdog.
    let (process, user) = (u64::from(libc::PRIO_PROCESS), u64::from(libc::PRIO_USER));
    rules.insert(libc::SYS_setpriority, priority(process, user)?);
    rules.insert(libc::SYS_ioprio_set, priority(IOPRIO_PROCESS, IOPRIO_USER)?);
    Ok(())
}

/// Refuses to change the priority of the watchdog, by PID or by user.
fn priority(process: u64, user: u64) -> Result<Vec<SeccompRule>> {
    Ok(vec![rule(vec![equals(0, process)?, equals(1, WATCHDOG)?])?, rule(vec![equals(0, user)?])?])
}

/// Allows UNIX sockets, TCP and UDP.
fn add_socket_rules(rules: &mut Rules) -> Result<()> {
    let [unix, v4, v6] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6].map(|family| u64::from(family.unsigned_abs()));
    let mut refused = vec![none_of(0, &[unix, v4, v6])?];
    for (kind, protocol) in [(libc::SOCK_STREAM, libc::IPPROTO_TCP), (libc::SOCK_DGRAM, libc::IPPROTO_UDP)] {
        let of_kind = masked(1, SOCKET_TYPE, kind.unsigned_abs().into())?;
        let other = [differs(2, 0)?, differs(2, protocol.unsigned_abs().into())?];
        refused.push(rule([differs(0, unix)?, of_kind].into_iter().chain(other).collect())?);
    }
    // Types other than 1 and 2, by their bits.
    for (mask, value) in [(0b1000, 0b1000), (0b100, 0b100), (0b11, 0b11), (0b11, 0)] {
        refused.push(rule(vec![differs(0, unix)?, masked(1, mask, value)?])?);
    }
    rules.insert(libc::SYS_socket, refused);
    rules.insert(libc::SYS_socketpair, vec![none_of(0, &[unix])?]);
    Ok(())
}

fn add_file_rules(rules: &mut Rules) -> Result<()> {
    rules.insert(libc::SYS_ioctl, one_of(1, &[libc::TIOCSTI, libc::TIOCLINUX])?);
    // A lease on a file blocks everybody else who opens it, including the server.
    let lease = rule(vec![equals(1, libc::F_SETLEASE.unsigned_abs().into())?])?;
    let too_large = SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::Gt, PIPE_BYTES)?;
    let pipe = rule(vec![equals(1, libc::F_SETPIPE_SZ.unsigned_abs().into())?, too_large])?;
    rules.insert(libc::SYS_fcntl, vec![lease, pipe]);
    for (call, mode) in MODES.iter().chain(MODES_HERE) {
        rules.insert(*call, any_bit(*mode, &SET_ID_BITS)?);
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
    Ok(())
}

fn any_bit(argument: u8, bits: &[u64]) -> Result<Vec<SeccompRule>> {
    bits.iter().map(|bit| rule(vec![has(argument, *bit)?])).collect()
}

fn one_of(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>> {
    values.iter().map(|value| rule(vec![equals(argument, *value)?])).collect()
}

fn none_of(argument: u8, values: &[u64]) -> Result<SeccompRule> {
    rule(values.iter().map(|value| differs(argument, *value)).collect::<Result<_>>()?)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule> {
    SeccompRule::new(conditions)
}

fn has(argument: u8, bit: u64) -> Result<SeccompCondition> {
    masked(argument, bit, bit)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}

fn equals(argument: u8, value: u64) -> Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

/// Matches a pointer that is not null.
fn is_given(argument: u8) -> Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)
}

fn differs(argument: u8, value: u64) -> Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// Calls that set a mode, with the index of the argument.
pub(super) const MODES: &[(c_long, u8)] =
    &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2), (libc::SYS_mknodat, 2)];

#[cfg(target_arch = "x86_64")]
pub(super) const MODES_HERE: &[(c_long, u8)] = &[(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const MODES_HERE: &[(c_long, u8)] = &[];

/// Calls that open files, with the indexes of the flags and the mode.
#[cfg(target_arch = "x86_64")]
pub(super) const OPENS: &[(c_long, u8, u8)] = &[(libc::SYS_open, 1, 2), (libc::SYS_openat, 2, 3)];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OPENS: &[(c_long, u8, u8)] = &[(libc::SYS_openat, 2, 3)];
