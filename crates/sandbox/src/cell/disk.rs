//! Measures the growth of a job's writable folders.
//!
//! File systems do not count this. Free space is cheap to query, but others use the disk too. So the folders are walked
//! when free space shrinks, and at intervals.

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
    certainty::{Certainty, UncertaintyTracker},
    deleted_files::{DeletedFiles, DeletedUsage},
    processes::{Inspection, Processes, entries, is_gone},
};
use crate::{Limit, Limits, sys};

/// How many walks in a row may be aborted while the job is stopped. Others may change the folder too.
const MAX_ABORTED_WALKS: u32 = 20;

/// The interval between walks is at least this many times the duration of a walk.
const WALK_COST_FACTOR: u32 = 20;

/// Minimum interval between walks, if free space does not shrink.
const WALK_INTERVAL: Duration = Duration::from_secs(1);

/// Number of files after which the walk checks whether the program has ended.
const INTERRUPT_CHECK_FILES: u64 = 256;

pub(super) struct DiskMonitor {
    folders: Vec<OwnedFd>,
    deleted_files: DeletedFiles,
    limit: Usage,
    started: i128,
    /// The usage before the job.
    before: Option<Usage>,
    free: Vec<Usage>,
    /// The peak of free space per file system.
    free_peak: Vec<Usage>,
    next_walk: Instant,
    uncertainty: UncertaintyTracker,
    aborted_walks: u32,
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

impl AddAssign for FolderUsage {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.old += other.old;
        self.has_unreadable_folder |= other.has_unreadable_folder;
        self.is_uncertain |= other.is_uncertain;
        self.is_aborted |= other.is_aborted;
    }
}

/// The result of a walk: all usage, and the part that is older than the job.
#[derive(Debug, Clone, Copy, Default)]
struct FolderUsage {
    all: Usage,
    old: Usage,
    /// Whether there is a folder that the job can enter but PID 1 cannot read.
    has_unreadable_folder: bool,
    /// Whether something was moved or changed during the walk, so that files may have been missed.
    is_uncertain: bool,
    /// Whether the walk was aborted, because the current folder was moved away.
    is_aborted: bool,
}

/// The usage of the folders and of deleted files.
struct Measurement {
    count: FolderUsage,
    deleted: DeletedUsage,
}

impl Measurement {
    fn is_uncertain(&self) -> bool {
        self.count.is_uncertain || self.deleted.is_uncertain
    }

    /// Whether there may be files that PID 1 cannot see.
    fn may_hide_more(&self) -> bool {
        self.count.has_unreadable_folder || self.deleted.may_hold_more
    }
}

impl DiskMonitor {
    pub(super) fn new(limits: &Limits, folders: Vec<OwnedFd>, processes: Rc<Processes>) -> Result<Self> {
        let limit = Usage { bytes: limits.disk_bytes, files: limits.new_files };
        Ok(Self {
            folders,
            deleted_files: DeletedFiles::new(processes)?,
            limit,
            started: 0,
            before: None,
            free: Vec::new(),
            free_peak: Vec::new(),
            next_walk: Instant::now(),
            uncertainty: UncertaintyTracker::default(),
            aborted_walks: 0,
        })
    }

    /// Sets the start of the job. Files created before it do not count.
    pub(super) fn begin(&mut self, since: Duration) -> Result<()> {
        self.started = i128::try_from(since.as_nanos()).unwrap_or(i128::MAX);
        self.before = None;
        self.free = self.free_now()?;
        self.free_peak = self.free.clone();
        self.uncertainty = UncertaintyTracker::default();
        self.next_walk = Instant::now() + WALK_INTERVAL;
        Ok(())
    }

    pub(super) fn check(&mut self, interrupted: &dyn Fn() -> bool) -> Result<Option<Limit>> {
        if !self.has_lost_space()? && Instant::now() < self.next_walk {
            return Ok(None);
        }
        let walk_start = Instant::now();
        let Some(measurement) = self.measure(interrupted)? else { return Ok(None) };
        self.free = self.free_now()?;
        self.next_walk = Instant::now() + WALK_INTERVAL.max(walk_start.elapsed() * WALK_COST_FACTOR);
        let lost_space = self.lost_space();
        let limit = self.exceeded_limit(&measurement, lost_space);
        let has_lost_space = lost_space.bytes > self.limit.bytes || lost_space.files > self.limit.files;
        self.uncertainty.record(match (measurement.is_uncertain(), has_lost_space) {
            (false, _) => Certainty::Certain,
            (true, false) => Certainty::Uncertain,
            (true, true) => Certainty::Suspicious,
        });
        Ok(limit)
    }

    /// Whether the next measurement needs stopped processes.
    pub(super) fn needs_pause(&self) -> bool {
        self.uncertainty.needs_pause()
    }

    /// Measures while all processes are stopped.
    pub(super) fn check_paused(&mut self, interrupted: &dyn Fn() -> bool) -> Result<Option<Limit>> {
        let Some(measurement) = self.measure(interrupted)? else { return Ok(None) };
        self.free = self.free_now()?;
        let lost_space = self.lost_space();
        self.aborted_walks = if measurement.count.is_aborted { self.aborted_walks + 1 } else { 0 };
        if self.aborted_walks > MAX_ABORTED_WALKS {
            return Ok(Some(Limit::Disk));
        }
        if !measurement.may_hide_more() && !measurement.count.is_aborted {
            // All files of the job are accounted for, so others used the missing space.
            self.free_peak = self.free.clone();
        }
        self.uncertainty.record(Certainty::Certain);
        Ok(self.exceeded_limit(&measurement, lost_space))
    }

    /// Measures folders and deleted files. Returns `None` if the program has ended meanwhile.
    fn measure(&self, interrupted: &dyn Fn() -> bool) -> Result<Option<Measurement>> {
        let mut count = FolderUsage::default();
        for folder in &self.folders {
            let Some(found) = walk(folder, self.started, interrupted)? else { return Ok(None) };
            count += found;
        }
        let deleted = self.deleted_files.measure()?;
        count.all.bytes += deleted.bytes();
        Ok(Some(Measurement { count, deleted }))
    }

    /// Returns the limit if the job exceeds it. `lost_space` is the free space that the file systems have lost.
    fn exceeded_limit(&mut self, measurement: &Measurement, lost_space: Usage) -> Option<Limit> {
        let FolderUsage { all, old, is_aborted, .. } = measurement.count;
        if !is_aborted {
            self.before.get_or_insert(old);
        }
        let before = self.before.unwrap_or(old);
        // Others use the file system too. But if the job has files that cannot be measured, all lost space is charged
        // to it.
        let grown = all.bytes.saturating_sub(before.bytes) > self.limit.bytes
            || measurement.may_hide_more() && lost_space.bytes > self.limit.bytes
            || all.files.saturating_sub(before.files) > self.limit.files;
        grown.then_some(Limit::Disk)
    }

    /// Returns the free space lost since the peak, for the file system that lost most.
    fn lost_space(&mut self) -> Usage {
        let mut lost_space = Usage::default();
        for (most, now) in self.free_peak.iter_mut().zip(&self.free) {
            *most = Usage { bytes: most.bytes.max(now.bytes), files: most.files.max(now.files) };
            lost_space.bytes = lost_space.bytes.max(most.bytes - now.bytes);
            lost_space.files = lost_space.files.max(most.files - now.files);
        }
        lost_space
    }

    /// Whether a file system has lost enough free space that the job may be near its limit.
    fn has_lost_space(&self) -> Result<bool> {
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

/// Measures everything below a folder. Returns `None` if the program has ended meanwhile. Only one folder is open at a
/// time, so that no tree is too deep. The way back up is verified, because the job can move folders during the walk.
fn walk(top: &OwnedFd, started: i128, interrupted: &dyn Fn() -> bool) -> Result<Option<FolderUsage>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let walk_start = i128::try_from(sys::file_clock_now().as_nanos()).unwrap_or(i128::MAX);
    let mut counter =
        Counter { count: FolderUsage::default(), linked: HashSet::new(), started, walk_start, interrupted };
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
                    // The folder belongs to somebody else. The job's rights are those of PID 1 without its
                    // capabilities.
                    let enter = rustix::fs::accessat(&current, &name, Access::EXEC_OK, AtFlags::empty());
                    counter.count.has_unreadable_folder |= enter.is_ok();
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
                    (counter.count.is_uncertain, counter.count.is_aborted) = (true, true);
                    break;
                }
            }
        }
    }
    Ok(Some(counter.count))
}

/// A folder on the path from the top to the current folder.
struct Level {
    identity: (u64, u64),
    /// Subfolders still to be walked.
    pending: Vec<CString>,
}

struct Counter<'a> {
    count: FolderUsage,
    /// Files with several hard links that are counted already.
    linked: HashSet<(u32, u32, u64)>,
    started: i128,
    /// The start of the walk, by the file clock.
    walk_start: i128,
    interrupted: &'a dyn Fn() -> bool,
}

impl Counter<'_> {
    /// Measures the entries of one folder. Returns `None` if the program has ended meanwhile.
    fn read(&mut self, folder: &OwnedFd) -> Result<Option<Level>> {
        let mut level = Level { identity: identity(folder)?, pending: Vec::new() };
        for entry in entries(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let found = match stat_entry(folder, name)? {
                Inspection::Found(found) => found,
                Inspection::Gone => {
                    self.count.is_uncertain = true;
                    continue;
                }
                Inspection::Denied => continue,
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
            if self.count.all.files.is_multiple_of(INTERRUPT_CHECK_FILES) && (self.interrupted)() {
                return Ok(None);
            }
        }
        // Entries moved out of this folder during the walk may now be in a part already read.
        self.count.is_uncertain |= changed(folder)? >= self.walk_start;
        Ok(Some(level))
    }
}

/// Returns when names in a folder last changed (ctime). Programs cannot set it.
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

struct EntryUsage {
    bytes: u64,
    links: u32,
    identity: (u32, u32, u64),
    is_folder: bool,
    born: i128,
}

/// Returns the usage of one entry. What is denied to PID 1 is denied to the job too.
fn stat_entry(folder: &OwnedFd, name: &CStr) -> Result<Inspection<EntryUsage>> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let stat = match rustix::fs::statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, wanted) {
        Ok(stat) => stat,
        Err(errno) if is_gone(errno) => return Ok(Inspection::Gone),
        Err(Errno::ACCESS) => return Ok(Inspection::Denied),
        Err(errno) => return Err(errno),
    };
    // Without a birth time the ctime is used. Then old files that the job touches count as new.
    let has_birth = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    let born = if has_birth { stat.stx_btime } else { stat.stx_ctime };
    Ok(Inspection::Found(EntryUsage {
        bytes: stat.stx_blocks * 512,
        links: stat.stx_nlink,
        identity: (stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino),
        is_folder: FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory,
        born: nanoseconds(born),
    }))
}
