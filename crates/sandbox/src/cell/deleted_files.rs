//! Deleted files that processes keep open or mapped. They use disk space without having a name.

use std::{collections::HashMap, rc::Rc};

use rustix::{
    fs::{AtFlags, FileType},
    io::Result,
};

use super::processes::{Inspection, Processes, entries, field, is_gone};

/// Measures deleted files. Files on `/tmp` and `/dev/shm` are left out: they count as memory.
pub(super) struct DeletedFiles {
    processes: Rc<Processes>,
    memory_devices: Vec<u64>,
}

/// The deleted files that the processes of a job keep.
#[derive(Debug, Default)]
pub(super) struct DeletedUsage {
    /// Sizes by inode.
    files: HashMap<u64, u64>,
    /// Whether there may be more than was measured. A file that is mapped but not open is known only by the length of
    /// the mapping. A descriptor in flight through a socket, or in a process that PID 1 may not inspect, is not known
    /// at all.
    pub(super) may_hold_more: bool,
    /// Whether a file may have passed from one process to another during the measurement.
    pub(super) is_uncertain: bool,
}

impl DeletedUsage {
    pub(super) fn bytes(&self) -> u64 {
        self.files.values().sum()
    }
}

impl DeletedFiles {
    pub(super) fn new(processes: Rc<Processes>) -> Result<Self> {
        let device = |path: &str| rustix::fs::stat(path).map(|stat| stat.st_dev);
        Ok(Self { processes, memory_devices: vec![device("/tmp")?, device("/dev/shm")?] })
    }

    pub(super) fn measure(&self) -> Result<DeletedUsage> {
        let mut usage = DeletedUsage::default();
        let last_pid = self.processes.last_pid()?;
        let processes = self.processes.all()?;
        for pid in &processes {
            let tables = self.processes.descriptor_tables(*pid)?;
            usage.is_uncertain |= tables.is_empty();
            for thread in tables {
                self.add_open_files(&thread, &mut usage)?;
            }
        }
        for pid in processes {
            self.add_mapped_files(&self.maps(pid, &mut usage)?, &mut usage);
        }
        usage.is_uncertain |= self.processes.last_pid()? != last_pid;
        Ok(usage)
    }

    fn add_open_files(&self, thread: &str, usage: &mut DeletedUsage) -> Result<()> {
        let folder = match self.processes.descriptors(thread)? {
            Inspection::Found(folder) => folder,
            Inspection::Gone => {
                usage.is_uncertain |= !self.processes.is_dead(thread)?;
                return Ok(());
            }
            Inspection::Denied => {
                usage.may_hold_more = true;
                return Ok(());
            }
        };
        for entry in entries(&folder)? {
            let entry = entry?;
            let stat = match rustix::fs::statat(&folder, entry.file_name(), AtFlags::empty()) {
                Ok(stat) => stat,
                Err(errno) if is_gone(errno) => {
                    usage.is_uncertain = true;
                    continue;
                }
                Err(errno) => return Err(errno),
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile if stat.st_nlink == 0 && !self.memory_devices.contains(&stat.st_dev) => {
                    usage.files.insert(stat.st_ino, stat.st_blocks.unsigned_abs() * 512);
                }
                FileType::Socket if !usage.may_hold_more => {
                    let path = format!("{thread}/fdinfo/{}", entry.file_name().to_string_lossy());
                    usage.may_hold_more = match self.processes.read(&path)? {
                        Inspection::Found(info) => field(&info, "scm_fds:").is_some_and(|count| count > 0),
                        Inspection::Gone => false,
                        Inspection::Denied => true,
                    };
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the mappings of a process, read from the first of its threads that has any.
    fn maps(&self, pid: u32, usage: &mut DeletedUsage) -> Result<String> {
        for thread in self.processes.threads(pid)? {
            match self.processes.maps(&thread)? {
                Inspection::Found(maps) if !maps.is_empty() => return Ok(maps),
                Inspection::Found(_) | Inspection::Gone => {}
                Inspection::Denied => usage.may_hold_more = true,
            }
        }
        Ok(String::new())
    }

    fn add_mapped_files(&self, maps: &str, usage: &mut DeletedUsage) {
        let mut lengths: HashMap<u64, u64> = HashMap::new();
        for (inode, length) in maps.lines().filter_map(|line| self.parse_deleted_mapping(line)) {
            *lengths.entry(inode).or_default() += length;
        }
        for (inode, length) in lengths {
            usage.files.entry(inode).or_insert_with(|| {
                usage.may_hold_more = true;
                length
            });
        }
    }

    /// Parses inode and length of a mapping of a deleted file.
    fn parse_deleted_mapping(&self, line: &str) -> Option<(u64, u64)> {
        let line = line.strip_suffix(" (deleted)")?;
        let mut fields = line.splitn(6, ' ');
        let (from, to) = fields.next()?.split_once('-')?;
        let (major, minor) = fields.nth(2)?.split_once(':')?;
        let inode = fields.next()?.parse().ok()?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let number = |text| u32::from_str_radix(text, 16).ok();
        let device = rustix::fs::makedev(number(major)?, number(minor)?);
        // Anonymous shared memory appears as `/dev/zero`. It is not on a disk.
        let is_memory = major == "00" && fields.next()?.trim_start() == "/dev/zero";
        (!is_memory && !self.memory_devices.contains(&device)).then_some((inode, hex(to)? - hex(from)?))
    }
}
