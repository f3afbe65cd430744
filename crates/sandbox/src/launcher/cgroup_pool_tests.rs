use std::{fs, path::PathBuf};

use super::{CgroupPool, LauncherGroup, v1, v2};
use crate::Limits;

const MOUNTS: &str = "\
30 24 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
31 24 0:27 /docker/abc /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
32 24 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
const OWN: &str = "\
5:pids,rdma:/docker/abc/server
4:memory:/system.slice/toolrest.service
0::/system.slice/toolrest.service
";

#[test]
fn the_group_of_a_controller_is_found_below_its_mount() {
    let memory = PathBuf::from("/sys/fs/cgroup/memory/system.slice/toolrest.service");
    assert_eq!(v1(MOUNTS, OWN, "memory"), Some(memory));
    assert_eq!(v1(MOUNTS, OWN, "cpu"), None);
}

#[test]
fn a_group_is_found_below_a_partial_mount() {
    assert_eq!(v1(MOUNTS, OWN, "pids"), Some(PathBuf::from("/sys/fs/cgroup/pids/server")));
}

#[test]
fn the_group_of_version_two_is_found() {
    let own = PathBuf::from("/sys/fs/cgroup/unified/system.slice/toolrest.service");
    assert_eq!(v2(MOUNTS, OWN).first(), Some(&own));
}

#[test]
fn a_reused_group_has_no_limits_before_its_next_job() {
    // Without permission to create groups there is nothing to test.
    let Some(mut groups) = CgroupPool::find(None) else { return };
    let limits = |folders: &[PathBuf]| {
        let files = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "pids.max"];
        let paths = folders.iter().flat_map(|folder| files.map(|file| folder.join(file)));
        paths.filter_map(|path| fs::read_to_string(path).ok()).collect::<Vec<_>>()
    };
    let mut group = groups.take().unwrap();
    let hits_before = limits(&group.folders);
    group.limit(&Limits { memory_bytes: Limits::MIN_MEMORY_BYTES, ..Limits::default() }).unwrap();
    assert_ne!(limits(&group.folders), hits_before);
    let folders = group.folders.clone();
    groups.release(group);
    let again = groups.take().unwrap();
    assert_eq!((&again.folders, limits(&again.folders)), (&folders, hits_before));
    groups.release(again);
}

#[test]
fn folders_of_dead_launchers_are_removed_and_those_of_live_ones_kept() {
    let parent = tempfile::tempdir().unwrap();
    let [dead, strange, short] = ["toolrest-1-0", "toolrest-a-b", "toolrest-1"].map(|name| parent.path().join(name));
    for folder in [&dead, &strange, &short] {
        fs::create_dir_all(folder.join("job-1")).unwrap();
    }
    let living = LauncherGroup::create(parent.path()).unwrap();
    assert!(!dead.exists() && strange.exists() && short.exists());
    // The lock is held by this process, through another descriptor.
    let other = LauncherGroup::create(parent.path()).unwrap();
    assert!(living.path.exists() && other.path != living.path);
    let path = living.path.clone();
    drop(living);
    assert!(!path.exists());
}
