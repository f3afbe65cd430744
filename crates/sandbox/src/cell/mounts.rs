//! Mounts the folders of a job in the file system of a cell.

use std::{
    ffi::{CString, OsStr},
    fmt::Write,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    vec,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags},
    io::Errno,
    mount::{self, MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags},
};

use super::root;
use crate::{
    Access, CellSpec, Mount, Network, Source,
    step::{Failure, Step, StepContext},
    sys::{self, Depth, MountAttributes},
};

/// Where the layers of an overlay are mounted while the overlay is created.
const LAYERS: &str = ".layers";

/// How often a folder that is moved repeatedly is searched for.
const RENAME_RACES: usize = 1000;

/// Mounts everything of the cell's specification below the new root, which is the working folder. Returns the folders
/// that can grow.
pub(super) fn attach(spec: &CellSpec, mounted: Vec<OwnedFd>, privileged: bool) -> Result<Vec<OwnedFd>, Failure> {
    let mut trees = Trees { passed: mounted.into_iter(), are_clones: privileged };
    let mut growing = Vec::new();
    for mount in &spec.mounts {
        match mount {
            Mount::Folder { source, target, access, frozen } => {
                let tree = trees.next(source, *access)?;
                let target = beneath(target)?;
                root::make_folder(&target).on(Step::Mount, &target)?;
                attach_tree(&tree, &target)?;
                if *access == Access::ReadWrite {
                    let folder = open_folder(&target)?;
                    for name in frozen {
                        freeze(&folder, name).on(Step::Mount, target.join(name))?;
                    }
                    growing.push(folder);
                }
            }
            Mount::Overlay { lower, private, target } => {
                growing.push(overlay(&mut trees, lower, private, &beneath(target)?)?);
            }
        }
    }
    for link in &spec.links {
        let path = beneath(&link.path)?;
        rustix::fs::symlink(&link.target, &path).on(Step::Mount, &path)?;
    }
    if let Network::Proxy { socket, target } = &spec.network {
        let tree = trees.next(socket, Access::ReadWrite)?;
        let target = beneath(target)?;
        root::make_folder(target.parent().unwrap_or(Path::new("."))).on(Step::Mount, &target)?;
        root::make_file(&target).on(Step::Mount, &target)?;
        attach_tree(&tree, &target)?;
    }
    Ok(growing)
}

/// The sources to mount, in the order of the mounts. A launcher that is root has cloned them; otherwise they are cloned
/// here.
struct Trees {
    passed: vec::IntoIter<OwnedFd>,
    are_clones: bool,
}

impl Trees {
    fn next(&mut self, source: &Source, access: Access) -> Result<OwnedFd, Failure> {
        let passed = self.passed.next().ok_or(Errno::BADMSG).on(Step::Request, source.label())?;
        if self.are_clones {
            return Ok(passed);
        }
        let tree = clone_held(&passed).on(Step::Mount, source.label())?;
        let attributes = MountAttributes { set: attributes(access), id_map: None };
        sys::set_mount(&tree, c"", Depth::All, attributes).on(Step::Mount, source.label())?;
        Ok(tree)
    }
}

/// Clones a source that the server has open.
///
/// The kernel refuses to clone the descriptor itself: it belongs to the server's mount namespace, and the cell has a
/// copy of that. So the path of the descriptor is opened here, without following links, and cloned only if both
/// descriptors are the same file or folder.
fn clone_held(held: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let identity = |file: &OwnedFd| rustix::fs::fstat(file).map(|stat| (stat.st_dev, stat.st_ino));
    let link = format!("proc/self/fd/{}", held.as_raw_fd());
    let opening = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolving = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..RENAME_RACES {
        let path = rustix::fs::readlink(&link, Vec::new())?;
        match rustix::fs::openat2(CWD, path, opening, Mode::empty(), resolving) {
            Ok(found) if identity(&found)? == identity(held)? => {
                let flags = OpenTreeFlags::OPEN_TREE_CLONE
                    | OpenTreeFlags::OPEN_TREE_CLOEXEC
                    | OpenTreeFlags::AT_EMPTY_PATH
                    | OpenTreeFlags::AT_RECURSIVE;
                return mount::open_tree(found, "", flags);
            }
            // It was moved after its path was read.
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::STALE)
}

/// Returns the attributes for all mounts except the system's.
pub(crate) const fn attributes(access: Access) -> u64 {
    let set = MountAttributes::NO_SET_USER | MountAttributes::NO_DEVICES;
    match access {
        Access::ReadOnly => set | MountAttributes::READ_ONLY,
        Access::ReadWrite => set,
    }
}

fn overlay(trees: &mut Trees, lower: &[Source], private: &Source, target: &Path) -> Result<OwnedFd, Failure> {
    let mut options = String::from("userxattr,lowerdir=");
    let mut layers = Vec::new();
    let mut lay = |tree: OwnedFd| {
        let layer = Path::new(LAYERS).join(layers.len().to_string());
        root::make_folder(&layer).on(Step::Overlay, &layer)?;
        attach_tree(&tree, &layer)?;
        layers.push(layer);
        Ok::<_, Failure>(layers.len() - 1)
    };
    for (index, source) in lower.iter().enumerate() {
        let layer = lay(trees.next(source, Access::ReadOnly)?)?;
        let colon = if index == 0 { "" } else { ":" };
        let _ = write!(options, "{colon}{LAYERS}/{layer}");
    }
    let layer = lay(trees.next(private, Access::ReadWrite)?)?;
    let _ = write!(options, ",upperdir={LAYERS}/{layer}/upper,workdir={LAYERS}/{layer}/work");
    let upper = open_folder(&Path::new(LAYERS).join(layer.to_string()).join("upper"))?;

    root::make_folder(target).on(Step::Mount, target)?;
    let options = CString::new(options).unwrap_or_default();
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount::mount("overlay", target, "overlay", flags, options.as_c_str()).on(Step::Overlay, target)?;
    for layer in layers {
        mount::unmount(&layer, UnmountFlags::DETACH).at(Step::Overlay)?;
    }
    Ok(upper)
}

/// Mounts an entry of a folder on itself, read-only, so that it can be neither written nor replaced. No link is
/// followed, because another job may have created it.
fn freeze(folder: &OwnedFd, path: &OsStr) -> rustix::io::Result<()> {
    let opening = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolving = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let entry = match rustix::fs::openat2(folder, path, opening, Mode::empty(), resolving) {
        // It existed when the job was requested. If it was moved, it could be moved back later.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(Errno::STALE),
        entry => entry?,
    };
    if FileType::from_raw_mode(rustix::fs::fstat(&entry)?.st_mode) == FileType::Symlink {
        return Err(Errno::STALE);
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = mount::open_tree(&entry, "", flags)?;
    let attributes = MountAttributes { set: attributes(Access::ReadOnly), id_map: None };
    sys::set_mount(&tree, c"", Depth::All, attributes)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    mount::move_mount(&tree, "", &entry, "", flags)
}

fn attach_tree(tree: &OwnedFd, target: &Path) -> Result<(), Failure> {
    mount::move_mount(tree, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).on(Step::Mount, target)
}

/// Returns the target relative to the new root, which is the working folder.
fn beneath(target: &Path) -> Result<PathBuf, Failure> {
    let relative = target.strip_prefix("/").map_err(|_| Errno::INVAL).on(Step::Mount, target)?;
    Ok(relative.to_path_buf())
}

fn open_folder(path: &Path) -> Result<OwnedFd, Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).on(Step::Mount, path)
}
