//! Files of `/proc` that reveal information about the host and that programs do not need.

use std::path::Path;

use rustix::{
    fs::{self, FileType},
    io::{Errno, Result},
    mount,
};

/// The boot command line, devices, modules and keys of the kernel, and locks of other processes.
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

/// Mounts an empty file or folder over each of them, in the new root. The folder `empty` must stay empty.
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
