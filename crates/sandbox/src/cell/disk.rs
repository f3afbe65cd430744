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
    fs::{Access, AtFlags, FileType, Mode, OFlags, StatxFlags, StatxTimestamp},
    io::{Errno, Result},
};

use super::{
    certainty::{Certainty, Uncertainty},
    hidden::{Held, Hidden},
    processes::{Processes, Seen, entries, is_gone},
};
use crate::{Limit, Limits, sys};

/// How often in a row a walk may lose its way while the job is stopped: others use the folder too.
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
    free_most: Vec<Usage>,
    next_walk: Instant,
    uncertainty: Uncertainty,
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

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.old += other.old;
        self.closed |= other.closed;
        self.is_uncertain |= other.is_uncertain;
        self.is_lost |= other.is_lost;
    }
}

/// What a walk has found, and what of it is older than the job.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    all: Usage,
    old: Usage,
    /// Whether there is a folder that the job can get into, and PID 1 cannot read.
    closed: bool,
    /// Whether something was moved or changed during the walk, so that there may be more.
    is_uncertain: bool,
    /// Whether a folder was moved away while it was walked through, which ended the walk.
    is_lost: bool,
}

/// What was found in the folders and in the hands of processes.
struct Scan {
    count: Count,
    held: Held,
}

impl Scan {
    fn is_uncertain(&self) -> bool {
        self.count.is_uncertain || self.held.is_uncertain
    }

    /// Whether there can be more than PID 1 is able to see.
    fn hides_more(&self) -> bool {
        self.count.closed || self.held.more
    }
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
            uncertainty: Uncertainty::default(),
            lost: 0,
        })
    }

    /// Takes what was made before a time for what was there before the job.
    pub(super) fn begin(&mut self, since: Duration) -> Result<()> {
        self.started = i128::try_from(since.as_nanos()).unwrap_or(i128::MAX);
        self.before = None;
        self.free = self.free_now()?;
        self.free_most = self.free.clone();
        self.uncertainty = Uncertainty::default();
        self.next_walk = Instant::now() + WALK_INTERVAL;
        Ok(())
    }

    pub(super) fn look(&mut self, interrupted: &dyn Fn() -> bool) -> Result<Option<Limit>> {
        if !self.has_shrunk()? && Instant::now() < self.next_walk {
            return Ok(None);
        }
        let begun = Instant::now();
        let Some(scan) = self.scan(interrupted)? else { return Ok(None) };
        self.free = self.free_now()?;
        self.next_walk = Instant::now() + WALK_INTERVAL.max(begun.elapsed() * WALKING_SHARE);
        let shrunk = self.shrunk();
        let limit = self.judge(&scan, shrunk);
        let has_shrunk = shrunk.bytes > self.limit.bytes || shrunk.files > self.limit.files;
        self.uncertainty.note(match (scan.is_uncertain(), has_shrunk) {
            (false, _) => Certainty::Certain,
            (true, false) => Certainty::Uncertain,
            (true, true) => Certainty::Suspicious,
        });
        Ok(limit)
    }

    /// Whether the job has to be stopped for the next look.
    pub(super) fn is_uncertain(&self) -> bool {
        self.uncertainty.is_over()
    }

    /// Looks while the job is stopped.
    pub(super) fn look_at_rest(&mut self, interrupted: &dyn Fn() -> bool) -> Result<Option<Limit>> {
        let Some(scan) = self.scan(interrupted)? else { return Ok(None) };
        self.free = self.free_now()?;
        let shrunk = self.shrunk();
        self.lost = if scan.count.is_lost { self.lost + 1 } else { 0 };
        if self.lost > LOST_LIMIT {
            return Ok(Some(Limit::Disk));
        }
        if !scan.hides_more() && !scan.count.is_lost {
            // What is missing by now, others have taken.
            self.free_most = self.free.clone();
        }
        self.uncertainty.note(Certainty::Certain);
        Ok(self.judge(&scan, shrunk))
    }

    /// Counts what is in the folders and what processes hold; nothing where the program has ended meanwhile.
    fn scan(&self, interrupted: &dyn Fn() -> bool) -> Result<Option<Scan>> {
        let mut count = Count::default();
        for folder in &self.folders {
            let Some(found) = walk(folder, self.started, interrupted)? else { return Ok(None) };
            count += found;
        }
        let held = self.hidden.look()?;
        count.all.bytes += held.bytes();
        Ok(Some(Scan { count, held }))
    }

    /// Whether the job has more than it may have. `shrunk` is what the file systems have lost.
    fn judge(&mut self, scan: &Scan, shrunk: Usage) -> Option<Limit> {
        let Count { all, old, is_lost, .. } = scan.count;
        if !is_lost {
            self.before.get_or_insert(old);
        }
        let before = self.before.unwrap_or(old);
        // Others use the file system too; but who holds what cannot be measured answers for all that is gone.
        let grown = all.bytes.saturating_sub(before.bytes) > self.limit.bytes
            || scan.hides_more() && shrunk.bytes > self.limit.bytes
            || all.files.saturating_sub(before.files) > self.limit.files;
        grown.then_some(Limit::Disk)
    }

    /// How much the file systems have lost of what was free.
    fn shrunk(&mut self) -> Usage {
        let mut shrunk = Usage::default();
        for (most, now) in self.free_most.iter_mut().zip(&self.free) {
            *most = Usage { bytes: most.bytes.max(now.bytes), files: most.files.max(now.files) };
            shrunk.bytes = shrunk.bytes.max(most.bytes - now.bytes);
            shrunk.files = shrunk.files.max(most.files - now.files);
        }
        shrunk
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

/// Counts everything beneath a folder; nothing where the program has ended meanwhile. Only one folder is open at a time,
/// so that no tree is too deep; the way back up is checked, since the job can move what is walked through.
fn walk(top: &OwnedFd, started: i128, interrupted: &dyn Fn() -> bool) -> Result<Option<Count>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let begun = i128::try_from(sys::time_of_files().as_nanos()).unwrap_or(i128::MAX);
    let mut counter = Counter { count: Count::default(), linked: HashSet::new(), started, begun, interrupted };
    let mut current = rustix::fs::openat(top, c".", flags, Mode::empty())?;
    let Some(level) = counter.read(&current)? else { return Ok(None) };
    let mut levels = vec![level];
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.pending.pop() {
            let folder = match rustix::fs::openat(&current, &name, flags, Mode::empty()) {
                Ok(folder) => folder,
                Err(errno) if is_gone(errno) => {
                    counter.count.is_uncertain = true;
                    continue;
                }
                Err(Errno::ACCESS) => {
                    // Somebody else's. The job has no more rights to it than PID 1 without its capabilities.
                    let enter = rustix::fs::accessat(&current, &name, Access::EXEC_OK, AtFlags::empty());
                    counter.count.closed |= enter.is_ok();
                    continue;
                }
                Err(errno) => return Err(errno),
            };
            let Some(level) = counter.read(&folder)? else { return Ok(None) };
            current = folder;
            levels.push(level);
        } else {
            levels.pop();
            let Some(above) = levels.last() else { break };
            match rustix::fs::openat(&current, c"..", flags, Mode::empty()) {
                Ok(folder) if identity(&folder)? == above.identity => current = folder,
                Err(errno) if !is_gone(errno) && errno != Errno::ACCESS => return Err(errno),
                Ok(_) | Err(_) => {
                    (counter.count.is_uncertain, counter.count.is_lost) = (true, true);
                    break;
                }
            }
        }
    }
    Ok(Some(counter.count))
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
    /// When the walk began, by the clock of files.
    begun: i128,
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
            let found = match look_at(folder, name)? {
                Seen::There(found) => found,
                Seen::Gone => {
                    self.count.is_uncertain = true;
                    continue;
                }
                Seen::Closed => continue,
            };
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
        // Whatever was moved out of it since the walk began may be where the walk has been before.
        self.count.is_uncertain |= changed(folder)? >= self.begun;
        Ok(Some(level))
    }
}

/// When names in a folder last changed. No program can set that.
fn changed(folder: &OwnedFd) -> Result<i128> {
    let stat = rustix::fs::statx(folder, c"", AtFlags::EMPTY_PATH, StatxFlags::CTIME)?;
    Ok(nanoseconds(stat.stx_ctime))
}

fn nanoseconds(time: StatxTimestamp) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
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

/// What an entry of a folder takes up. One that is closed to PID 1 is so to the job too.
fn look_at(folder: &OwnedFd, name: &CStr) -> Result<Seen<Found>> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let stat = match rustix::fs::statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, wanted) {
        Ok(stat) => stat,
        Err(errno) if is_gone(errno) => return Ok(Seen::Gone),
        Err(Errno::ACCESS) => return Ok(Seen::Closed),
        Err(errno) => return Err(errno),
    };
    // Where birth is not recorded, the last change will do: only a file that is touched early counts as new then.
    let has_birth = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    let born = if has_birth { stat.stx_btime } else { stat.stx_ctime };
    Ok(Seen::There(Found {
        bytes: stat.stx_blocks * 512,
        links: stat.stx_nlink,
        identity: (stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino),
        is_folder: FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory,
        born: nanoseconds(born),
    }))
}
