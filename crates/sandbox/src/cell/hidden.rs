//! Files that have no name any more, and take up room as long as a process holds them.

use std::{
    collections::HashMap,
    os::fd::{AsFd, OwnedFd},
};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

/// Where the processes of the job are seen, and file systems that are memory and count as such.
pub(super) struct Hidden {
    processes: OwnedFd,
    memory: Vec<u64>,
}

impl Hidden {
    pub(super) fn new() -> rustix::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let processes = rustix::fs::open("/proc", flags, Mode::empty())?;
        let device = |path: &str| rustix::fs::stat(path).map(|stat| stat.st_dev);
        Ok(Self { processes, memory: vec![device("/tmp")?, device("/dev/shm")?] })
    }

    /// Size of all such files, as far as a process has them open or in its memory.
    pub(super) fn bytes(&self) -> u64 {
        let mut files = HashMap::new();
        let Ok(entries) = Dir::read_from(&self.processes) else { return 0 };
        for entry in entries.flatten() {
            if let Some(pid) = entry.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()) {
                self.open(pid, &mut files);
                self.mapped(pid, &mut files);
            }
        }
        files.values().sum()
    }

    fn open(&self, pid: u32, files: &mut HashMap<u64, u64>) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(folder) = rustix::fs::openat(&self.processes, format!("{pid}/fd"), flags, Mode::empty()) else { return };
        let Ok(entries) = Dir::read_from(&folder) else { return };
        for entry in entries.flatten() {
            let Ok(stat) = rustix::fs::statat(folder.as_fd(), entry.file_name(), AtFlags::empty()) else { continue };
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            if is_file && stat.st_nlink == 0 && !self.memory.contains(&stat.st_dev) {
                files.insert(stat.st_ino, stat.st_blocks.unsigned_abs() * 512);
            }
        }
    }

    /// What is mapped but not open is known by the length of the mapping only.
    fn mapped(&self, pid: u32, files: &mut HashMap<u64, u64>) {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(&self.processes, format!("{pid}/maps"), flags, Mode::empty()) else { return };
        let Ok(maps) = std::io::read_to_string(std::fs::File::from(file)) else { return };
        let mut lengths: HashMap<u64, u64> = HashMap::new();
        for (inode, length) in maps.lines().filter_map(|line| self.deleted(line)) {
            *lengths.entry(inode).or_default() += length;
        }
        for (inode, length) in lengths {
            files.entry(inode).or_insert(length);
        }
    }

    /// Inode and length of a mapping of a file without a name.
    fn deleted(&self, line: &str) -> Option<(u64, u64)> {
        let line = line.strip_suffix(" (deleted)")?;
        let mut fields = line.splitn(6, ' ');
        let (from, to) = fields.next()?.split_once('-')?;
        let (major, minor) = fields.nth(2)?.split_once(':')?;
        let inode = fields.next()?.parse().ok()?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let number = |text| u32::from_str_radix(text, 16).ok();
        let device = rustix::fs::makedev(number(major)?, number(minor)?);
        // Memory that processes share has no file system that could be asked.
        let is_memory = major == "00" && fields.next()?.trim_start() == "/dev/zero";
        (!is_memory && !self.memory.contains(&device)).then_some((inode, hex(to)? - hex(from)?))
    }
}
