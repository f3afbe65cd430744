//! By how much the writable folders of a job have grown.
//!
//! No file system counts this by itself. The free space of the file system is cheap to ask for, but others use it
//! too: when it shrinks, or now and then anyway, the folders are walked through.

use std::{
    collections::HashSet,
    ffi::{CStr, CString},
    ops::AddAssign,
    os::fd::OwnedFd,
    rc::Rc,
    time::{Duration, Instant},
};

use rustix::{
    fs::{Access, AtFlags, FileType, Mode, OFlags, StatxFlags},
    io::{Errno, Result},
};

use super::{
    hidden::Hidden,
    processes::{Processes, entries, is_gone},
};
use crate::{Limit, Limits};

/// How often in a row a walk may lose its way before the job is taken to move its folders about on purpose.
const LOST_LIMIT: u32 = 20;

/// How long the walks may take, as a part of all time.
const WALKING_SHARE: u32 = 20;

/// How long the folders go without being walked through.
const WALK_INTERVAL: Duration = Duration::from_secs(1);

/// After how many files it is asked whether the program has ended.
const PATIENCE: u64 = 256;

pub(super) struct Disk {
    folders: Vec<OwnedFd>,
    hidden: Hidden,
    limit: Usage,
    started: i128,
    /// What was there before the job.
    before: Option<Usage>,
    free: Vec<Usage>,
    /// The most that each file system has had free.
    free_most: Vec<u64>,
    next_walk: Instant,
    lost: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    bytes: u64,
    files: u64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.files += other.files;
    }
}

/// What a walk has found, and what of it is older than the job.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    all: Usage,
    old: Usage,
    /// Whether there is a folder that the job can get into, and PID 1 cannot read.
    closed: bool,
}

enum Walk {
    Done(Count),
    Interrupted,
    /// A folder was moved away while it was walked through.
    Lost,
}

impl Disk {
    pub(super) fn new(limits: &Limits, folders: Vec<OwnedFd>, processes: Rc<Processes>) -> Result<Self> {
        let limit = Usage { bytes: limits.disk_bytes, files: limits.new_files };
        Ok(Self {
            folders,
            hidden: Hidden::new(processes)?,
            limit,
            started: 0,
            before: None,
            free: Vec::new(),
            free_most: Vec::new(),
            next_walk: Instant::now(),
            lost: 0,
        })
    }

    /// Takes what was made before a time for what was there before the job.
    pub(super) fn begin(&mut self, since: Duration) -> Result<()> {
        self.started = i128::try_from(since.as_nanos()).unwrap_or(i128::MAX);
        self.before = None;
        self.free = self.free_now()?;
        self.free_most = self.free.iter().map(|free| free.bytes).collect();
        self.next_walk = Instant::now() + WALK_INTERVAL;
        Ok(())
    }

    pub(super) fn look(&mut self, interrupted: &dyn Fn() -> bool) -> Result<Option<Limit>> {
        if !self.has_shrunk()? && Instant::now() < self.next_walk {
            return Ok(None);
        }
        let begun = Instant::now();
        let mut count = Count::default();
        for folder in &self.folders {
            match walk(folder, self.started, interrupted)? {
                Walk::Done(found) => {
                    count.all += found.all;
                    count.old += found.old;
                    count.closed |= found.closed;
                }
                Walk::Interrupted => return Ok(None),
                Walk::Lost => {
                    self.lost += 1;
                    return Ok((self.lost > LOST_LIMIT).then_some(Limit::Disk));
                }
            }
        }
        self.lost = 0;
        let held = self.hidden.look()?;
        count.all.bytes += held.bytes();
        self.free = self.free_now()?;
        let lost = self.lost_bytes();
        self.next_walk = Instant::now() + WALK_INTERVAL.max(begun.elapsed() * WALKING_SHARE);
        let before = *self.before.get_or_insert(count.old);
        // Others use the file system too; but who holds what cannot be measured answers for all that is gone.
        let grown = count.all.bytes.saturating_sub(before.bytes) > self.limit.bytes
            || (held.more || count.closed) && lost > self.limit.bytes
            || count.all.files.saturating_sub(before.files) > self.limit.files;
        Ok(grown.then_some(Limit::Disk))
    }

    /// How much the file systems have lost of what was free.
    fn lost_bytes(&mut self) -> u64 {
        let mut lost = 0;
        for (most, now) in self.free_most.iter_mut().zip(&self.free) {
            *most = (*most).max(now.bytes);
            lost = lost.max(*most - now.bytes);
        }
        lost
    }

    /// Whether the file system has lost so much of its free space that the job could be near its limit.
    fn has_shrunk(&self) -> Result<bool> {
        let now = self.free_now()?;
        Ok(now.iter().zip(&self.free).any(|(now, before)| {
            before.bytes.saturating_sub(now.bytes) > self.limit.bytes / 8
                || before.files.saturating_sub(now.files) > self.limit.files / 8
        }))
    }

    fn free_now(&self) -> Result<Vec<Usage>> {
        self.folders.iter().map(free).collect()
    }
}

fn free(folder: &OwnedFd) -> Result<Usage> {
    let stat = rustix::fs::fstatvfs(folder)?;
    Ok(Usage { bytes: stat.f_bfree * stat.f_frsize, files: stat.f_ffree })
}

/// Counts everything beneath a folder. Only one folder is open at a time, so that no tree is too deep; the way back up
/// is checked, since the job can move what is walked through.
fn walk(top: &OwnedFd, started: i128, interrupted: &dyn Fn() -> bool) -> Result<Walk> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut counter = Counter { count: Count::default(), linked: HashSet::new(), started, interrupted };
    let mut current = rustix::fs::openat(top, c".", flags, Mode::empty())?;
    let Some(level) = counter.read(&current)? else { return Ok(Walk::Interrupted) };
    let mut levels = vec![level];
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.pending.pop() {
            let folder = match rustix::fs::openat(&current, &name, flags, Mode::empty()) {
                Ok(folder) => folder,
                Err(errno) if is_gone(errno) => continue,
                Err(Errno::ACCESS) => {
                    // Somebody else's. The job has no more rights to it than PID 1 without its capabilities.
                    let enter = rustix::fs::accessat(&current, &name, Access::EXEC_OK, AtFlags::empty());
                    counter.count.closed |= enter.is_ok();
                    continue;
                }
                Err(errno) => return Err(errno),
            };
            let Some(level) = counter.read(&folder)? else { return Ok(Walk::Interrupted) };
            current = folder;
            levels.push(level);
        } else {
            levels.pop();
            let Some(above) = levels.last() else { break };
            match rustix::fs::openat(&current, c"..", flags, Mode::empty()) {
                Ok(folder) if identity(&folder)? == above.identity => current = folder,
                Ok(_) | Err(Errno::ACCESS) => return Ok(Walk::Lost),
                Err(errno) if is_gone(errno) => return Ok(Walk::Lost),
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(Walk::Done(counter.count))
}

/// A folder on the way down.
struct Level {
    identity: (u64, u64),
    /// Folders in it that have not been walked through.
    pending: Vec<CString>,
}

struct Counter<'a> {
    count: Count,
    /// Files with several names that have been counted.
    linked: HashSet<(u32, u32, u64)>,
    started: i128,
    interrupted: &'a dyn Fn() -> bool,
}

impl Counter<'_> {
    /// Counts what is in one folder; nothing where the walk is to end.
    fn read(&mut self, folder: &OwnedFd) -> Result<Option<Level>> {
        let mut level = Level { identity: identity(folder)?, pending: Vec::new() };
        for entry in entries(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let Some(found) = look_at(folder, name)? else { continue };
            let counted = found.links < 2 || found.is_folder || self.linked.insert(found.identity);
            let usage = Usage { bytes: if counted { found.bytes } else { 0 }, files: 1 };
            self.count.all += usage;
            if found.born < self.started {
                self.count.old += usage;
            }
            if found.is_folder {
                level.pending.push(name.to_owned());
            }
            if self.count.all.files.is_multiple_of(PATIENCE) && (self.interrupted)() {
                return Ok(None);
            }
        }
        Ok(Some(level))
    }
}

fn identity(folder: &OwnedFd) -> Result<(u64, u64)> {
    rustix::fs::fstat(folder).map(|stat| (stat.st_dev, stat.st_ino))
}

struct Found {
    bytes: u64,
    links: u32,
    identity: (u32, u32, u64),
    is_folder: bool,
    born: i128,
}

/// What an entry of a folder takes up; nothing where it has been removed, or the job cannot get at it either.
fn look_at(folder: &OwnedFd, name: &CStr) -> Result<Option<Found>> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let stat = match rustix::fs::statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, wanted) {
        Ok(stat) => stat,
        Err(errno) if is_gone(errno) || errno == Errno::ACCESS => return Ok(None),
        Err(errno) => return Err(errno),
    };
    // Where birth is not recorded, the last change will do: only a file that is touched early counts as new then.
    let has_birth = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    let born = if has_birth { stat.stx_btime } else { stat.stx_ctime };
    Ok(Some(Found {
        bytes: stat.stx_blocks * 512,
        links: stat.stx_nlink,
        identity: (stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino),
        is_folder: FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory,
        born: i128::from(born.tv_sec) * 1_000_000_000 + i128::from(born.tv_nsec),
    }))
}
