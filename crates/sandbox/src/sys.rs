//! System calls that rustix lacks, and some that only a single-threaded process may make.

#![allow(unsafe_code, reason = "raw system calls live here and nowhere else")]

use std::{
    ffi::{CStr, CString},
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    ptr,
    time::Duration,
};

use rustix::{
    io::{Errno, Result},
    process::{Pid, Signal},
};
use tokio::io::unix::AsyncFd;

/// All namespaces of a cell.
pub(crate) const ALL_NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;
pub(crate) const USER_NAMESPACE: i32 = libc::CLONE_NEWUSER;
/// Used instead of namespaces: the child shares root, working folder and umask with its parent, until one of them
/// unshares.
pub(crate) const SHARED_ROOT: i32 = libc::CLONE_FS;

/// The result of a fork.
pub(crate) enum ForkResult {
    Child,
    Parent { pid: Pid, pidfd: OwnedFd },
}

fn last_error() -> Errno {
    // SAFETY: it gives the address of this thread's errno, which is always valid.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}

fn check(result: libc::c_long) -> Result<libc::c_long> {
    if result < 0 { Err(last_error()) } else { Ok(result) }
}

/// Forks into new namespaces, or shares what the flags say. The caller must be single-threaded.
#[allow(clippy::cast_sign_loss, reason = "flags and signal numbers are positive")]
pub(crate) fn clone(flags: i32) -> Result<ForkResult> {
    let mut pidfd: RawFd = -1;
    // SAFETY: all fields are integers, for which zero is valid.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = (flags | libc::CLONE_PIDFD) as u64;
    args.pidfd = ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: without CLONE_VM the child has a copy of this memory and goes on from here; as there is one thread, no
    // lock is held by another one.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone3, ptr::from_ref(&args), size_of::<libc::clone_args>()) })?;
    match i32::try_from(pid).ok().and_then(Pid::from_raw) {
        None => Ok(ForkResult::Child),
        // SAFETY: the kernel has put a new descriptor there, which nobody else owns.
        Some(pid) => Ok(ForkResult::Parent { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } }),
    }
}

/// Unshares root, working folder and umask.
pub(crate) fn stop_sharing_root() -> Result<()> {
    // SAFETY: it changes nothing but what the process shares with others.
    check(unsafe { libc::unshare(libc::CLONE_FS) }.into()).map(drop)
}

/// Forks into new namespaces that belong to another user. Needs root, and keeps its capabilities for the creation of
/// the namespaces.
pub(crate) fn clone_as(owner: u32, namespaces: i32) -> Result<ForkResult> {
    use rustix::{fs::Uid, thread};
    let before = thread::capabilities(None)?;
    thread::set_thread_res_uid(Uid::ROOT, Uid::from_raw(owner), Uid::ROOT)?;
    let forked = thread::set_capabilities(None, before).and_then(|()| clone(namespaces));
    if matches!(forked, Ok(ForkResult::Child)) {
        return forked;
    }
    if thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_err() {
        // A launcher that has lost root cannot continue.
        exit(1);
    }
    forked
}

/// Replaces this process by a program. Returns only if that fails.
pub(crate) fn execute(program: &CStr, argv: &[CString], env: &[CString]) -> Errno {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both are arrays of strings, ended by a null, that outlive the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    last_error()
}

/// Ends the process immediately, without exit handlers.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: it has no conditions.
    unsafe { libc::_exit(code) }
}

/// Attributes to set on a mount, and the user namespace that maps its owners.
#[derive(Clone, Copy, Default)]
pub(crate) struct MountAttributes<'a> {
    pub(crate) set: u64,
    pub(crate) id_map: Option<BorrowedFd<'a>>,
}

impl MountAttributes<'_> {
    pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
    pub(crate) const NO_SET_USER: u64 = libc::MOUNT_ATTR_NOSUID;
    pub(crate) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    One,
    All,
}

/// Changes the attributes of a mount, or of all mounts below it too.
pub(crate) fn set_mount(mount: impl AsFd, path: &CStr, depth: Depth, attributes: MountAttributes<'_>) -> Result<()> {
    let mut set = libc::mount_attr {
        attr_set: attributes.set,
        attr_clr: 0,
        propagation: 0,
        userns_fd: attributes.id_map.map_or(0, |fd| u64::from(fd.as_raw_fd().unsigned_abs())),
    };
    if attributes.id_map.is_some() {
        set.attr_set |= libc::MOUNT_ATTR_IDMAP;
    }
    let mut flags = libc::AT_EMPTY_PATH;
    if depth == Depth::All {
        flags |= libc::AT_RECURSIVE;
    }
    // SAFETY: the path is a string and the attributes a structure of the given size; both outlive the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            path.as_ptr(),
            flags,
            ptr::from_ref(&set),
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

/// Blocks `SIGCHLD` and returns a signalfd for it.
pub(crate) fn child_signals() -> Result<OwnedFd> {
    // SAFETY: the set is initialised by the first call; the others only read it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()).into())?;
        let fd = check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK).into())?;
        #[allow(clippy::cast_possible_truncation, reason = "a descriptor")]
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// Ignores the termination signals.
pub(crate) fn ignore_requests_to_end() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: no handler is set.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Ends this process after some seconds, whatever it does.
pub(crate) fn end_after(seconds: u32) {
    // SAFETY: it only sets a timer, whose signal ends the process.
    unsafe { libc::alarm(seconds) };
}

/// Resets signal handlers and the signal mask.
pub(crate) fn reset_signals() {
    // SAFETY: handlers are only set to their default, and the set is initialised before it is read.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut());
    }
}

/// Closes all descriptors except the standard ones and `kept`. Nothing may own the others any more.
pub(crate) fn close_all_but(kept: BorrowedFd<'_>) -> Result<()> {
    let kept = kept.as_raw_fd().unsigned_abs();
    let range = |first: u32, last: u32| {
        if first > last {
            return Ok(());
        }
        // SAFETY: it closes descriptors, of which the caller says that nothing uses them.
        check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) }).map(drop)
    };
    range(3, kept.saturating_sub(1))?;
    range(kept.max(2) + 1, u32::MAX)
}

/// Sets close-on-exec on all descriptors from `first` on.
pub(crate) fn close_on_exec_from(first: u32) -> Result<()> {
    // SAFETY: it only sets a flag.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) }).map(drop)
}

/// Duplicates a descriptor to a given number, without close-on-exec.
pub(crate) fn put_descriptor(fd: impl AsFd, number: RawFd) -> Result<()> {
    // SAFETY: it is called by processes that own no descriptor of that number, between fork and exec.
    check(unsafe { libc::dup2(fd.as_fd().as_raw_fd(), number) }.into()).map(drop)
}

/// Takes ownership of an inherited descriptor.
pub(crate) fn inherited(number: RawFd) -> Result<OwnedFd> {
    // SAFETY: asking for flags is safe on any number, and fails where there is no descriptor.
    check(unsafe { libc::fcntl(number, libc::F_GETFD) }.into())?;
    // SAFETY: it is open; the caller is the start of a process, before anything else could own it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Sends a signal to every process that this one may signal. For PID 1, these are all others of its namespace.
pub(crate) fn signal_all(signal: Signal) -> Result<()> {
    // SAFETY: it has no conditions. Only PID 1 of a namespace calls it.
    check(unsafe { libc::kill(-1, signal.as_raw()) }.into()).map(drop)
}

/// Whether two threads share their descriptor table. Returns false if the kernel does not tell.
pub(crate) fn share_descriptors(one: u32, other: u32) -> bool {
    const KCMP_FILES: libc::c_int = 2;
    // SAFETY: it compares what two threads have, and takes numbers only.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_FILES, 0_u64, 0_u64) == 0 }
}

/// Returns the time of the clock that stamps files, since the epoch. It is some milliseconds behind other clocks.
pub(crate) fn file_clock_now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    Duration::try_from(now).unwrap_or_default()
}

/// Brings up the loopback interface of the network namespace.
#[allow(clippy::cast_possible_truncation, reason = "the flags of an interface are 16 bits")]
pub(crate) fn bring_up_loopback() -> Result<()> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    // SAFETY: zero is valid for all fields.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = (*from).cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    // SAFETY: the request is the structure that this ioctl reads.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, ptr::from_ref(&request)) }.into()).map(drop)
}

/// Returns the processor time of all children that were waited for, and of their children.
pub(crate) fn cpu_of_children() -> Duration {
    // SAFETY: the structure is filled by the call, and zero is valid for all fields.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.unsigned_abs()) + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Registers a descriptor with tokio.
pub(crate) fn to_async_fd(file: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is always the same one, and open until it is dropped.
    unsafe { AsyncFd::register(file) }.map_err(Into::into)
}

/// Makes a system call with three arguments, to test whether it is refused.
pub(crate) fn try_syscall(number: libc::c_long, arguments: [usize; 3]) -> Result<()> {
    // SAFETY: the canary calls it with numbers that are refused before any argument is read, or with flags only.
    check(unsafe { libc::syscall(number, arguments[0], arguments[1], arguments[2]) }).map(drop)
}
