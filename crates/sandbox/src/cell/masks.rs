//! Files of `/proc` that tell of the host, and that no program needs.

use std::path::Path;

use rustix::{
    fs::{self, FileType},
    io::{Errno, Result},
    mount,
};

/// How the kernel was started, its devices, modules and keys, and what other processes have locked.
const HIDDEN: [&str; 15] = [
    "acpi",
    "bootconfig",
    "bus",
    "cmdline",
    "diskstats",
    "driver",
    "fs",
    "interrupts",
    "irq",
    "keys",
    "locks",
    "modules",
    "partitions",
    "scsi",
    "swaps",
];

/// Mounts something empty over each of them, beneath the working folder. `empty` is a folder that stays empty.
pub(super) fn hide(empty: &str) -> Result<()> {
    for name in HIDDEN {
        let path = Path::new("proc").join(name);
        let kind = match fs::stat(&path) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(errno),
        };
        mount::mount_bind(if kind == FileType::Directory { empty } else { "dev/null" }, &path)?;
    }
    Ok(())
}
