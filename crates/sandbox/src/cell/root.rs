//! The file system of a cell: an empty root, the system read-only, and standard files and devices.

use std::{ffi::CString, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{self, CWD, Mode, OFlags},
    mount::{self, MountFlags, MountPropagationFlags, OpenTreeFlags, UnmountFlags},
    process,
};

use super::{
    INSIDE_ID, masked_paths, quotas,
    template::{CellTemplate, Kind},
};
use crate::{
    step::{Failure, Step, StepContext},
    sys::{self, Depth, MountAttributes},
};

/// Where the new root is mounted until it is entered. No source of a mount is below it.
const STAGE: &str = "/sys";

const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// The configuration of git with the least weight: a commit needs a name, and files of workspaces have other owners.
const GIT_CONFIG: &[u8] = b"[user]\n\tname = Toolrest\n\temail = toolrest@localhost\n[safe]\n\tdirectory = *\n";

/// Maximum number of files in a temporary folder.
const TEMPORARY_FILES: u64 = 50_000;

/// Builds everything that does not depend on the request. Afterwards the working folder is the new root.
pub(super) fn build(template: &CellTemplate) -> Result<(), Failure> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount::mount_change("/", private).at(Step::PrivateMounts)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount::mount("tmpfs", STAGE, "tmpfs", flags, c"size=4m,nr_inodes=4k,mode=755").at(Step::Root)?;
    process::chdir(STAGE).at(Step::Root)?;
    for folder in ["etc", "dev", "dev/shm", "proc", "tmp"] {
        make_folder(Path::new(folder)).on(Step::Root, folder)?;
    }
    for (name, kind) in &template.system {
        place_system(name, kind).on(Step::System, name)?;
    }
    write_etc().at(Step::Root)?;
    make_devices()?;
    let flags = flags | MountFlags::NOEXEC;
    mount::mount("proc", "proc", "proc", flags, c"hidepid=2").at(Step::Processes)?;
    quotas::set().at(Step::NestedNamespaces)?;
    // The folder itself stays empty: a job mounts a tmpfs over it.
    masked_paths::hide("dev/shm").at(Step::Processes)?;
    sys::bring_up_loopback().at(Step::Loopback)?;
    rustix::system::sethostname(b"sandbox").at(Step::Root)
}

fn place_system(name: &Path, kind: &Kind) -> rustix::io::Result<()> {
    if let Some(parent) = name.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_folder(parent)?;
    }
    match kind {
        Kind::Link(target) => return fs::symlink(target, name),
        Kind::Folder => make_folder(name)?,
        Kind::File => make_file(name)?,
    }
    mount::mount_bind_recursive(Path::new("/").join(name), name)?;
    let set = MountAttributes::READ_ONLY | MountAttributes::NO_SET_USER | MountAttributes::NO_DEVICES;
    let name = CString::new(name.as_os_str().as_encoded_bytes()).map_err(|_| rustix::io::Errno::INVAL)?;
    sys::set_mount(CWD, &name, Depth::All, MountAttributes { set, id_map: None })
}

fn write_etc() -> rustix::io::Result<()> {
    let passwd = format!("root:x:0:0::/:/usr/sbin/nologin\nsandbox:x:{INSIDE_ID}:{INSIDE_ID}::/tmp:/bin/bash\n");
    write("etc/passwd", passwd.as_bytes())?;
    write("etc/group", format!("root:x:0:\nsandbox:x:{INSIDE_ID}:\n").as_bytes())?;
    write("etc/hosts", b"127.0.0.1 localhost sandbox\n::1 localhost\n")?;
    write("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files\n")?;
    write("etc/gitconfig", GIT_CONFIG)
}

fn make_devices() -> Result<(), Failure> {
    for device in DEVICES {
        let target = Path::new("dev").join(device);
        make_file(&target).on(Step::Devices, &target)?;
        mount::mount_bind(Path::new("/").join(&target), &target).on(Step::Devices, &target)?;
    }
    let links = [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")];
    for (name, target) in links {
        fs::symlink(target, Path::new("dev").join(name)).on(Step::Devices, name)?;
    }
    Ok(())
}

/// Mounts the temporary folders.
pub(super) fn make_temporary(size_bytes: u64) -> Result<(), Failure> {
    let options = format!("size={size_bytes},nr_inodes={TEMPORARY_FILES},mode=1777");
    let options = CString::new(options).unwrap_or_default();
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount::mount("tmpfs", "tmp", "tmpfs", flags, options.as_c_str()).at(Step::TemporaryFolders)?;
    let flags = flags | MountFlags::NOEXEC;
    mount::mount("tmpfs", "dev/shm", "tmpfs", flags, options.as_c_str()).at(Step::TemporaryFolders)
}

/// Enters the new root and detaches the host's file system.
pub(super) fn enter() -> Result<(), Failure> {
    process::pivot_root(".", ".").at(Step::Pivot)?;
    mount::unmount(".", UnmountFlags::DETACH).at(Step::Pivot)?;
    process::chdir("/").at(Step::Pivot)?;
    let attributes = MountAttributes { set: MountAttributes::READ_ONLY, id_map: None };
    sys::set_mount(CWD, c"/", Depth::One, attributes).at(Step::Pivot)
}

/// Moves this process, and those that share its root, to a copy of the root that is in no mount namespace.
///
/// `/proc` lists the mounts of a process's namespace with their paths on the host, but only those reachable from its
/// root: now none. The originals must stay mounted, because the kernel protects mount points from being renamed or
/// removed only while they are in the namespace. The copy exists as long as its descriptor is open.
pub(super) fn hide_mounts() -> Result<OwnedFd, Failure> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let copy = mount::open_tree(CWD, "/", flags).at(Step::Pivot)?;
    process::fchdir(&copy).at(Step::Pivot)?;
    process::chroot(".").at(Step::Pivot)?;
    Ok(copy)
}

/// Creates a folder and its parents.
pub(super) fn make_folder(path: &Path) -> rustix::io::Result<()> {
    match fs::mkdir(path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(rustix::io::Errno::NOENT) => {
            make_folder(path.parent().ok_or(rustix::io::Errno::NOENT)?)?;
            fs::mkdir(path, Mode::from_raw_mode(0o755))
        }
        Err(errno) => Err(errno),
    }
}

/// Creates an empty file as a mount point.
pub(super) fn make_file(path: &Path) -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::open(path, flags, Mode::from_raw_mode(0o644)).map(drop)
}

fn write(path: &str, bytes: &[u8]) -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let file = fs::open(path, flags, Mode::from_raw_mode(0o644))?;
    rustix::io::write(file, bytes).map(drop)
}
