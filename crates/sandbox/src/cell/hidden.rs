//! Files that have no name any more, and take up room as long as a process holds them.

use std::collections::HashMap;

use rustix::fs::{AtFlags, Dir, FileType};

use super::processes::{Processes, field};

/// Where the processes of the job are seen, and file systems that are memory and count as such.
pub(super) struct Hidden {
    processes: Processes,
    memory: Vec<u64>,
}

/// What the processes of a job hold of files without a name.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Sizes by inode.
    files: HashMap<u64, u64>,
    /// Whether there can be more than is to be seen: a file that is mapped but not open is known by the length of the
    /// mapping only, and one on its way through a socket not at all.
    pub(super) more: bool,
}

impl Held {
    pub(super) fn bytes(&self) -> u64 {
        self.files.values().sum()
    }
}

impl Hidden {
    pub(super) fn new() -> rustix::io::Result<Self> {
        let device = |path: &str| rustix::fs::stat(path).map(|stat| stat.st_dev);
        Ok(Self { processes: Processes::new()?, memory: vec![device("/tmp")?, device("/dev/shm")?] })
    }

    pub(super) fn look(&self) -> Held {
        let mut held = Held::default();
        // Descriptors can be a thread's own; memory is always that of the process.
        let processes = self.processes.all().into_iter().map(|pid| self.processes.threads(pid));
        let processes: Vec<Vec<String>> = processes.collect();
        for thread in processes.iter().flatten() {
            self.open(thread, &mut held);
        }
        for threads in processes {
            let mut maps = threads.iter().filter_map(|thread| self.processes.read(&format!("{thread}/maps")));
            self.mapped(&maps.find(|maps| !maps.is_empty()).unwrap_or_default(), &mut held);
        }
        held
    }

    fn open(&self, thread: &str, held: &mut Held) {
        let Some(folder) = self.processes.open_folder(&format!("{thread}/fd")) else { return };
        let Ok(entries) = Dir::read_from(&folder) else { return };
        for entry in entries.flatten() {
            let Ok(stat) = rustix::fs::statat(&folder, entry.file_name(), AtFlags::empty()) else { continue };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile if stat.st_nlink == 0 && !self.memory.contains(&stat.st_dev) => {
                    held.files.insert(stat.st_ino, stat.st_blocks.unsigned_abs() * 512);
                }
                FileType::Socket if !held.more => {
                    let path = format!("{thread}/fdinfo/{}", entry.file_name().to_string_lossy());
                    let info = self.processes.read(&path).unwrap_or_default();
                    held.more = field(&info, "scm_fds:").is_some_and(|count| count > 0);
                }
                _ => {}
            }
        }
    }

    fn mapped(&self, maps: &str, held: &mut Held) {
        let mut lengths: HashMap<u64, u64> = HashMap::new();
        for (inode, length) in maps.lines().filter_map(|line| self.deleted(line)) {
            *lengths.entry(inode).or_default() += length;
        }
        for (inode, length) in lengths {
            held.files.entry(inode).or_insert_with(|| {
                held.more = true;
                length
            });
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
