//! Files that have no name any more, and take up room as long as a process holds them.

use std::{collections::HashMap, rc::Rc};

use rustix::{
    fs::{AtFlags, FileType},
    io::Result,
};

use super::processes::{Processes, Seen, entries, field, is_gone};

/// Where the processes of the job are seen, and file systems that are memory and count as such.
pub(super) struct Hidden {
    processes: Rc<Processes>,
    memory: Vec<u64>,
}

/// What the processes of a job hold of files without a name.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Sizes by inode.
    files: HashMap<u64, u64>,
    /// Whether there can be more than is to be seen: a file that is mapped but not open is known by the length of the
    /// mapping only, one on its way through a socket not at all, and neither is what a process holds that the kernel
    /// does not let PID 1 look into.
    pub(super) more: bool,
    /// Whether a file can have passed from one process to another while they were looked at.
    pub(super) is_uncertain: bool,
}

impl Held {
    pub(super) fn bytes(&self) -> u64 {
        self.files.values().sum()
    }
}

impl Hidden {
    pub(super) fn new(processes: Rc<Processes>) -> Result<Self> {
        let device = |path: &str| rustix::fs::stat(path).map(|stat| stat.st_dev);
        Ok(Self { processes, memory: vec![device("/tmp")?, device("/dev/shm")?] })
    }

    pub(super) fn look(&self) -> Result<Held> {
        let mut held = Held::default();
        let last_made = self.processes.last_made()?;
        let processes = self.processes.all()?;
        for pid in &processes {
            let tables = self.processes.descriptor_tables(*pid)?;
            held.is_uncertain |= tables.is_empty();
            for thread in tables {
                self.open(&thread, &mut held)?;
            }
        }
        for pid in processes {
            self.mapped(&self.maps(pid, &mut held)?, &mut held);
        }
        held.is_uncertain |= self.processes.last_made()? != last_made;
        Ok(held)
    }

    fn open(&self, thread: &str, held: &mut Held) -> Result<()> {
        let folder = match self.processes.descriptors(thread)? {
            Seen::There(folder) => folder,
            Seen::Gone => {
                held.is_uncertain |= !self.processes.is_dead(thread)?;
                return Ok(());
            }
            Seen::Closed => {
                held.more = true;
                return Ok(());
            }
        };
        for entry in entries(&folder)? {
            let entry = entry?;
            let stat = match rustix::fs::statat(&folder, entry.file_name(), AtFlags::empty()) {
                Ok(stat) => stat,
                Err(errno) if is_gone(errno) => {
                    held.is_uncertain = true;
                    continue;
                }
                Err(errno) => return Err(errno),
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile if stat.st_nlink == 0 && !self.memory.contains(&stat.st_dev) => {
                    held.files.insert(stat.st_ino, stat.st_blocks.unsigned_abs() * 512);
                }
                FileType::Socket if !held.more => {
                    let path = format!("{thread}/fdinfo/{}", entry.file_name().to_string_lossy());
                    held.more = match self.processes.read(&path)? {
                        Seen::There(info) => field(&info, "scm_fds:").is_some_and(|count| count > 0),
                        Seen::Gone => false,
                        Seen::Closed => true,
                    };
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The mappings of a process, by the first of its threads that still has any.
    fn maps(&self, pid: u32, held: &mut Held) -> Result<String> {
        for thread in self.processes.threads(pid)? {
            match self.processes.maps(&thread)? {
                Seen::There(maps) if !maps.is_empty() => return Ok(maps),
                Seen::There(_) | Seen::Gone => {}
                Seen::Closed => held.more = true,
            }
        }
        Ok(String::new())
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
