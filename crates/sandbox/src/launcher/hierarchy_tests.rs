use std::path::PathBuf;

use super::{first, second};

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
fn the_group_of_a_controller_is_found_beneath_its_mount() {
    let memory = PathBuf::from("/sys/fs/cgroup/memory/system.slice/toolrest.service");
    assert_eq!(first(MOUNTS, OWN, "memory"), Some(memory));
    assert_eq!(first(MOUNTS, OWN, "cpu"), None);
}

#[test]
fn a_group_is_found_beneath_a_mount_that_shows_a_part_only() {
    assert_eq!(first(MOUNTS, OWN, "pids"), Some(PathBuf::from("/sys/fs/cgroup/pids/server")));
}

#[test]
fn the_group_of_version_two_is_found() {
    let own = PathBuf::from("/sys/fs/cgroup/unified/system.slice/toolrest.service");
    assert_eq!(second(MOUNTS, OWN).first(), Some(&own));
}
