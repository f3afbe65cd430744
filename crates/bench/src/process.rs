//! CPU time and memory of processes, from `/proc`, and the speed of the disk.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Fields of `/proc/PID/stat`.
struct Stat {
    parent: u32,
    own_cpu: Duration,
    ended_children_cpu: Duration,
}

impl Stat {
    /// Reads the fields of a process; returns `None` if it has ended.
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field, the program's name in parentheses, may contain anything, so fields are counted from its end.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        // A tick is 10 ms on every Linux system, whatever the kernel's own clock is.
        let ticks = |field: usize| Some(Duration::from_millis(10 * fields.get(field)?.parse::<u64>().ok()?));
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            own_cpu: ticks(11)? + ticks(12)?,
            ended_children_cpu: ticks(13)? + ticks(14)?,
        })
    }
}

/// Returns the CPU time (user and system) of all threads of a process.
pub fn cpu(pid: u32) -> Duration {
    Stat::of(pid).expect("the measured process runs").own_cpu
}

/// Returns the CPU time of a process and of its children, including those that have ended.
pub fn cpu_with_children(pid: u32) -> Duration {
    let parent = Stat::of(pid).expect("the measured process runs");
    let children = fs::read_dir("/proc")
        .expect("/proc can be listed")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Stat::of)
        .filter(|stat| stat.parent == pid)
        .map(|stat| stat.own_cpu)
        .sum::<Duration>();
    parent.own_cpu + parent.ended_children_cpu + children
}

/// Resident memory of a process in megabytes (10^6 bytes).
#[derive(Clone, Copy)]
pub struct ResidentMemory {
    pub total_mb: f64,
    /// Without the pages of mapped files, which the kernel can reclaim at any time.
    pub anonymous_mb: f64,
}

pub fn resident_memory(pid: u32) -> ResidentMemory {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the measured process runs");
    let megabytes = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok())
            .map_or(0.0, |kibibytes: f64| kibibytes * 1024.0 / 1e6)
    };
    ResidentMemory { total_mb: megabytes("VmRSS:"), anonymous_mb: megabytes("RssAnon:") }
}

/// Measures how many 4 KB writes with `fdatasync` the disk of a folder completes per second, one after the other.
pub fn fdatasync_per_second(folder: &Path, duration: Duration) -> f64 {
    use std::os::unix::fs::FileExt;
    const PAGE: usize = 4096;
    const PAGES: u64 = 256;
    let file = tempfile::tempfile_in(folder).expect("a file in the data folder");
    let page = [7; PAGE];
    for index in 0..PAGES {
        file.write_all_at(&page, index * PAGE as u64).expect("a page is written");
    }
    file.sync_all().expect("the file is synced");
    let start = Instant::now();
    let mut done = 0;
    while start.elapsed() < duration {
        file.write_all_at(&page, done % PAGES * PAGE as u64).expect("a page is written");
        file.sync_data().expect("the file is synced");
        done += 1;
    }
    done as f64 / start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn cpu_with_children_includes_ended_children() {
        let count = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let mut parent = Command::new("sh")
            .args(["-c", &format!("sh -c '{count}'; echo done; read -r end")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = parent.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        let (own, all) = (cpu(parent.id()), cpu_with_children(parent.id()));
        assert!(all >= own + Duration::from_millis(50), "own {own:?}, with children {all:?}");
        drop(parent.stdin.take());
        parent.wait().unwrap();
    }

    #[test]
    fn resident_memory_of_this_process_is_known() {
        let resident = resident_memory(std::process::id());
        assert!(resident.total_mb > resident.anonymous_mb);
        assert!(resident.anonymous_mb > 0.1);
    }
}
