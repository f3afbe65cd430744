//! The system calls that are refused with certain arguments.

use std::collections::BTreeMap;

use libc::{c_int, c_long};
use seccompiler::{BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

/// Conditions on the arguments by call. A call is refused where one of its rules matches.
pub(super) type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

type Result<T> = std::result::Result<T, BackendError>;

/// PID 1 of the job, which watches its limits. It runs as the same user, so that only this filter protects it.
const WATCHDOG: u64 = 1;

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

/// The bits of the type of a socket that are not flags.
const SOCKET_TYPE: u64 = 0xf;

/// `IOPRIO_WHO_PROCESS` and `IOPRIO_WHO_USER`.
const IOPRIO_PROCESS: u64 = 1;
const IOPRIO_USER: u64 = 3;

/// The largest buffer that a program may ask for a pipe: what every pipe has at first.
const PIPE_BYTES: u64 = 64 << 10;

/// The refused calls by the error that they fail with. Where that is nought, they do nothing and seem to succeed.
pub(super) fn refusals() -> Result<Vec<(c_int, Rules)>> {
    let mut forbidden = Rules::new();
    add_process_rules(&mut forbidden)?;
    add_socket_rules(&mut forbidden)?;
    add_file_rules(&mut forbidden)?;
    // Huge pages of the host's pool are counted neither as memory of a process nor of a control group.
    forbidden.insert(libc::SYS_mmap, any_bit(3, &[u64::from(libc::MAP_HUGETLB.unsigned_abs())])?);
    Ok(vec![(libc::EPERM, forbidden), (libc::EINVAL, unknown()?), (0, ignored()?)])
}

/// Locks that belong to an open file: one that is on its way through a socket can hold any number of them unseen.
fn unknown() -> Result<Rules> {
    let locks = [libc::F_OFD_SETLK, libc::F_OFD_SETLKW].map(|command| u64::from(command.unsigned_abs()));
    Ok(Rules::from([(libc::SYS_fcntl, one_of(1, &locks)?)]))
}

/// Requests that programs make for good reasons, and can do without.
fn ignored() -> Result<Rules> {
    // The buffers of sockets are not all counted as memory of the job, so that they keep the size they have.
    let mut buffers = Vec::new();
    for option in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
        let conditions =
            vec![equals(1, libc::SOL_SOCKET.unsigned_abs().into())?, equals(2, option.unsigned_abs().into())?];
        buffers.push(rule(conditions)?);
    }
    // All file systems of the host would be written to the disk, for which everybody would wait.
    let always = Vec::new;
    // A limit of 1 byte is the one that keeps the kernel from starting a program of the host for a core dump.
    let core = equals(0, u64::from(libc::RLIMIT_CORE))?;
    let core_of = equals(1, u64::from(libc::RLIMIT_CORE))?;
    // PID 1 could not look into a process that is not dumpable. No other process may do so anyway.
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
    // The limits of another process can be read, but not set. The third argument points to the new limits.
    rules.insert(libc::SYS_prlimit64, vec![rule(vec![differs(0, 0)?, is_given(2)?])?]);
    // Programs name their own threads in these calls, so that no other number than that of PID 1 can be refused.
    for call in
        [libc::SYS_sched_setaffinity, libc::SYS_sched_setattr, libc::SYS_sched_setparam, libc::SYS_sched_setscheduler]
    {
        rules.insert(call, vec![rule(vec![equals(0, WATCHDOG)?])?]);
    }
    // All processes of a user include PID 1.
    let (process, user) = (u64::from(libc::PRIO_PROCESS), u64::from(libc::PRIO_USER));
    rules.insert(libc::SYS_setpriority, priority(process, user)?);
    rules.insert(libc::SYS_ioprio_set, priority(IOPRIO_PROCESS, IOPRIO_USER)?);
    Ok(())
}

/// Refuses to set a priority of PID 1, by its number or by its user.
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
    // The types that are neither 1 nor 2, by their bits.
    for (mask, value) in [(0b1000, 0b1000), (0b100, 0b100), (0b11, 0b11), (0b11, 0)] {
        refused.push(rule(vec![differs(0, unix)?, masked(1, mask, value)?])?);
    }
    rules.insert(libc::SYS_socket, refused);
    rules.insert(libc::SYS_socketpair, vec![none_of(0, &[unix])?]);
    Ok(())
}

fn add_file_rules(rules: &mut Rules) -> Result<()> {
    rules.insert(libc::SYS_ioctl, one_of(1, &[libc::TIOCSTI, libc::TIOCLINUX])?);
    // Who holds a lease on a file keeps everybody else who opens it waiting, the server too.
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

/// Whether a pointer is not null.
fn is_given(argument: u8) -> Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)
}

fn differs(argument: u8, value: u64) -> Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// Calls that set a mode, and which argument it is.
pub(super) const MODES: &[(c_long, u8)] =
    &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2), (libc::SYS_mknodat, 2)];

#[cfg(target_arch = "x86_64")]
pub(super) const MODES_HERE: &[(c_long, u8)] = &[(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const MODES_HERE: &[(c_long, u8)] = &[];

/// Calls that open, and which arguments are the flags and the mode.
#[cfg(target_arch = "x86_64")]
pub(super) const OPENS: &[(c_long, u8, u8)] = &[(libc::SYS_open, 1, 2), (libc::SYS_openat, 2, 3)];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OPENS: &[(c_long, u8, u8)] = &[(libc::SYS_openat, 2, 3)];
