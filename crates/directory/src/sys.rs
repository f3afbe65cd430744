//! The system calls of this crate. Each one passes a fault point.
//!
//! The fault point does nothing, except in unit tests: there it makes the n-th call fail, or all calls from the n-th
//! on, as if the process had died.

use std::{
    ffi::OsStr,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    sync::OnceLock,
    time::{Duration, Instant},
};

use rustix::{
    fs::{self, Access, AtFlags, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, SeekFrom, Stat, XattrFlags},
    io::{self, Errno, Result},
};

#[cfg(test)]
#[path = "sys/faults.rs"]
pub(crate) mod faults;

#[cfg(test)]
use faults::fault_point;

#[cfg(not(test))]
#[inline]
#[allow(clippy::unnecessary_wraps, reason = "the one of the tests fails")]
const fn fault_point() -> Result<()> {
    Ok(())
}

/// How often an open is repeated when a concurrent rename interrupts the path resolution.
const RENAME_RACES: usize = 1000;

/// Maximum number of bytes copied by one system call.
const COPIED_AT_ONCE_BYTES: usize = 1 << 30;
const COPIED_IN_MEMORY_BYTES: usize = 1 << 20;

/// Opens a path beneath a folder. The kernel refuses paths that lead out of it.
pub(crate) fn open_beneath(folder: impl AsFd, path: &Path, flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd> {
    fault_point()?;
    let resolve = resolve | ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut result = Err(Errno::AGAIN);
    // With `CACHED`, `EAGAIN` means that the path is not cached.
    let tries = if resolve.contains(ResolveFlags::CACHED) { 1 } else { RENAME_RACES };
    for _ in 0..tries {
        result = fs::openat2(&folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
        if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    result
}

/// Opens the parent of a folder, wherever it is now.
pub(crate) fn open_above(folder: impl AsFd) -> Result<OwnedFd> {
    fault_point()?;
    fs::openat(folder, "..", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Creates a file that must not exist yet.
pub(crate) fn create(folder: impl AsFd, name: &OsStr, mode: Mode) -> Result<OwnedFd> {
    fault_point()?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(folder, name, flags, mode)
}

/// Opens a file that belongs to this crate, and creates it if it is missing.
pub(crate) fn open_or_create(path: &Path) -> Result<OwnedFd> {
    fault_point()?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::open(path, flags, Mode::RUSR | Mode::WUSR)
}

/// Opens a folder that belongs to this crate.
pub(crate) fn open_folder(path: &Path) -> Result<OwnedFd> {
    fault_point()?;
    fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

pub(crate) fn stat(file: impl AsFd) -> Result<Stat> {
    fault_point()?;
    fs::fstat(file)
}

/// Returns the metadata of a name. Symbolic links are not followed.
pub(crate) fn stat_name(folder: impl AsFd, name: &OsStr) -> Result<Stat> {
    fault_point()?;
    fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Checks that the process may write to a file or folder.
pub(crate) fn check_writable(folder: impl AsFd, name: &OsStr) -> Result<()> {
    fault_point()?;
    fs::accessat(folder, name, Access::WRITE_OK, AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW)
}

/// Returns the effective user of the process.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

pub(crate) fn read_link(folder: impl AsFd, name: &OsStr) -> Result<Vec<u8>> {
    fault_point()?;
    fs::readlinkat(folder, name, Vec::new()).map(std::ffi::CString::into_bytes)
}

/// Reads cached bytes from the start of a file. Fails with `EAGAIN` if the disk would have to be read.
pub(crate) fn read_cached(file: impl AsFd, buffer: &mut [u8]) -> Result<usize> {
    fault_point()?;
    let parts = &mut [std::io::IoSliceMut::new(buffer)];
    io::preadv2(file, parts, 0, io::ReadWriteFlags::NOWAIT)
}

/// Reads until the buffer is full or the file ends.
pub(crate) fn read_at(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    fault_point()?;
    let mut filled = 0;
    while filled < buffer.len() {
        match io::pread(&file, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(filled)
}

pub(crate) fn write_at(file: impl AsFd, bytes: &[u8], offset: u64) -> Result<()> {
    fault_point()?;
    let mut written = 0;
    while written < bytes.len() {
        match io::pwrite(&file, &bytes[written..], offset + written as u64) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

pub(crate) fn truncate(file: impl AsFd, size_bytes: u64) -> Result<()> {
    fault_point()?;
    fs::ftruncate(file, size_bytes)
}

pub(crate) fn sync(file: impl AsFd) -> Result<()> {
    fault_point()?;
    fs::fsync(file)
}

/// Makes the whole file system of a file durable.
pub(crate) fn sync_all(file: impl AsFd) -> Result<()> {
    fault_point()?;
    fs::syncfs(file)
}

/// Makes the content durable, and the metadata only as far as needed to read it.
pub(crate) fn sync_data(file: impl AsFd) -> Result<()> {
    fault_point()?;
    fs::fdatasync(file)
}

/// Returns the id of the current boot.
pub(crate) fn boot_id() -> Result<&'static [u8]> {
    static BOOT_ID: OnceLock<Vec<u8>> = OnceLock::new();
    fault_point()?;
    if let Some(name) = BOOT_ID.get() {
        return Ok(name);
    }
    let mut name = vec![0; 64];
    let file = fs::open("/proc/sys/kernel/random/boot_id", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let length = io::read(file, &mut name)?;
    name.truncate(length);
    Ok(BOOT_ID.get_or_init(|| name))
}

/// Waits for the exclusive lock of a file. Closing the descriptor releases it.
pub(crate) fn lock(file: impl AsFd) -> Result<()> {
    fault_point()?;
    io::retry_on_intr(|| fs::flock(&file, FlockOperation::LockExclusive))
}

/// Maximum time to wait for a lock that programs can hold too.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// Locks a file that programs can also open, and might lock forever. Fails with `EAGAIN` after a timeout.
#[allow(clippy::disallowed_methods, reason = "the kernel waits for a lock for ever, or not at all")]
pub(crate) fn lock_with_timeout(file: impl AsFd) -> Result<()> {
    fault_point()?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match io::retry_on_intr(|| fs::flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Err(Errno::AGAIN) if Instant::now() < deadline => std::thread::sleep(LOCK_INTERVAL),
            locked => return locked,
        }
    }
}

pub(crate) fn make_folder(folder: impl AsFd, name: &OsStr, mode: u32) -> Result<()> {
    fault_point()?;
    fs::mkdirat(folder, name, Mode::from_raw_mode(mode))
}

pub(crate) fn remove_folder(folder: impl AsFd, name: &OsStr) -> Result<()> {
    fault_point()?;
    fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
}

pub(crate) fn unlink(folder: impl AsFd, name: &OsStr) -> Result<()> {
    fault_point()?;
    fs::unlinkat(folder, name, AtFlags::empty())
}

/// Creates a hard link. The new name must be free.
pub(crate) fn link(from: (impl AsFd, &OsStr), to: (impl AsFd, &OsStr)) -> Result<()> {
    fault_point()?;
    fs::linkat(from.0, from.1, to.0, to.1, AtFlags::empty())
}

pub(crate) fn rename(from: (impl AsFd, &OsStr), to: (impl AsFd, &OsStr)) -> Result<()> {
    fault_point()?;
    fs::renameat(from.0, from.1, to.0, to.1)
}

/// Renames to a name that must be free.
pub(crate) fn rename_to_free(from: (impl AsFd, &OsStr), to: (impl AsFd, &OsStr)) -> Result<()> {
    fault_point()?;
    fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE)
}

/// Swaps two names atomically.
pub(crate) fn exchange(one: (impl AsFd, &OsStr), other: (impl AsFd, &OsStr)) -> Result<()> {
    fault_point()?;
    fs::renameat_with(one.0, one.1, other.0, other.1, RenameFlags::EXCHANGE)
}

/// Sets both timestamps to now. Uses the path of the descriptor, because it may be an `O_PATH` descriptor.
pub(crate) fn touch(file: impl AsFd) -> Result<()> {
    fault_point()?;
    let now = fs::Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW };
    let times = fs::Timestamps { last_access: now, last_modification: now };
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    fs::utimensat(fs::CWD, path, &times, AtFlags::empty())
}

pub(crate) fn change_mode(file: impl AsFd, mode: u32) -> Result<()> {
    fault_point()?;
    fs::fchmod(file, Mode::from_raw_mode(mode))
}

/// Changes the mode of a file or folder by name. Links are refused.
pub(crate) fn change_mode_of(folder: impl AsFd, name: &OsStr, mode: u32) -> Result<()> {
    let file = path_of_name(folder, name)?;
    fault_point()?;
    fs::chmod(file.1, Mode::from_raw_mode(mode))
}

/// Changes the owner of a file or folder by name. Links are refused.
pub(crate) fn change_owner_of(folder: impl AsFd, name: &OsStr, owner: u32, group: u32) -> Result<()> {
    let file = path_of_name(folder, name)?;
    fault_point()?;
    fs::chown(file.1, Some(fs::Uid::from_raw(owner)), Some(fs::Gid::from_raw(group)))
}

/// Returns a path that leads to exactly the named file while the descriptor is open. Links are refused, because they
/// would be followed.
fn path_of_name(folder: impl AsFd, name: &OsStr) -> Result<(OwnedFd, String)> {
    fault_point()?;
    let file = fs::openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if fs::FileType::from_raw_mode(fs::fstat(&file)?.st_mode) == fs::FileType::Symlink {
        return Err(Errno::LOOP);
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok((file, path))
}

/// Creates a symbolic link.
pub(crate) fn make_link(target: &[u8], folder: impl AsFd, name: &OsStr) -> Result<()> {
    fault_point()?;
    fs::symlinkat(target, folder, name)
}

/// Copies the content of a file and keeps its holes.
pub(crate) fn copy(from: impl AsFd, to: impl AsFd) -> Result<()> {
    fault_point()?;
    let size = u64::try_from(fs::fstat(&from)?.st_size).unwrap_or(0);
    let mut offset = 0;
    while offset < size {
        let begin = match fs::seek(&from, SeekFrom::Data(offset)) {
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL) => offset,
            begin => begin?,
        };
        let end = match fs::seek(&from, SeekFrom::Hole(begin)) {
            Err(Errno::INVAL) => size,
            end => end?,
        };
        copy_range(&from, &to, begin, end)?;
        offset = end;
    }
    fs::ftruncate(to, size)
}

fn copy_range(from: impl AsFd, to: impl AsFd, begin: u64, end: u64) -> Result<()> {
    let (mut read, mut written) = (begin, begin);
    while read < end {
        let rest = usize::try_from(end - read).unwrap_or(usize::MAX).min(COPIED_AT_ONCE_BYTES);
        match fs::copy_file_range(&from, Some(&mut read), &to, Some(&mut written), rest) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            // The file systems do not support it.
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                let mut buffer = vec![0; rest.min(COPIED_IN_MEMORY_BYTES)];
                let count = read_at(&from, &mut buffer, read)?;
                if count == 0 {
                    break;
                }
                write_at(&to, &buffer[..count], read)?;
                read += count as u64;
                written = read;
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Removes all extended attributes of a name, as far as permitted.
pub(crate) fn strip_attributes(folder: impl AsFd, name: &OsStr) -> Result<()> {
    fault_point()?;
    let path = format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd());
    let path = Path::new(&path).join(name);
    let mut names = [0; 1024];
    let length = match fs::llistxattr(&path, &mut names) {
        Ok(0) | Err(Errno::NOTSUP) => return Ok(()),
        Err(Errno::RANGE) => return Err(Errno::RANGE),
        length => length?,
    };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        match fs::lremovexattr(&path, OsStr::from_bytes(name)) {
            // Attributes of the system stay.
            Ok(()) | Err(Errno::PERM | Errno::NODATA | Errno::NOTSUP) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Changes the mode of an `O_PATH` descriptor. It must not be a symbolic link.
pub(crate) fn change_mode_of_path(file: impl AsFd, mode: u32) -> Result<()> {
    fault_point()?;
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    fs::chmodat(fs::CWD, path, Mode::from_raw_mode(mode), AtFlags::empty())
}

pub(crate) fn change_owner(file: impl AsFd, owner: u32, group: u32) -> Result<()> {
    fault_point()?;
    fs::fchown(file, Some(fs::Uid::from_raw(owner)), Some(fs::Gid::from_raw(group)))
}

/// Returns the names of a file's extended attributes, each terminated by NUL.
pub(crate) fn attribute_names(file: impl AsFd) -> Result<Vec<u8>> {
    fault_point()?;
    sized(|| fs::flistxattr_query(&file), |buffer| fs::flistxattr(&file, buffer))
}

pub(crate) fn attribute(file: impl AsFd, name: &OsStr) -> Result<Vec<u8>> {
    fault_point()?;
    sized(|| fs::fgetxattr_query(&file, name), |buffer| fs::fgetxattr(&file, name, buffer))
}

pub(crate) fn set_attribute(file: impl AsFd, name: &OsStr, value: &[u8]) -> Result<()> {
    fault_point()?;
    fs::fsetxattr(file, name, value, XattrFlags::empty())
}

/// Queries a size, then the bytes. Repeats if they grew in between.
fn sized(size: impl Fn() -> Result<usize>, fill: impl Fn(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    loop {
        let mut buffer = vec![0; size()?];
        if buffer.is_empty() {
            return Ok(buffer);
        }
        match fill(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) => {}
            Err(errno) => return Err(errno),
        }
    }
}
