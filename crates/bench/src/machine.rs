//! Description of the machine on which the figures were measured.

use std::path::Path;
use std::process::Command;
use std::{env, fs, thread};

use crate::report::Report;

pub fn describe(report: &mut Report) {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    report.describe_machine("date", command("date", &["-u", "+%F %H:%M UTC"]));
    report.describe_machine("CPU", cpu_model(&read("/proc/cpuinfo")));
    let cores = thread::available_parallelism().map_or(0, usize::from);
    report.describe_machine("cores", cores.to_string());
    report.describe_machine("kernel", format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()));
    report.describe_machine("disk of the data", mount_of(&env::temp_dir(), &read("/proc/mounts")));
    let load = read("/proc/loadavg");
    report.describe_machine("load average before the run (1 minute)", load.split(' ').next().unwrap_or_default());
}

fn command(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn cpu_model(cpuinfo: &str) -> &str {
    cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown", |(_, name)| name)
}

/// Returns device and file system of a folder. On tmpfs nothing is durable, so figures of writes mean nothing.
fn mount_of(folder: &Path, mounts: &str) -> String {
    let found = mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ');
            let (device, point, kind) = (fields.next()?, fields.next()?, fields.next()?);
            folder.starts_with(point).then_some((point.len(), device, kind))
        })
        .max_by_key(|(depth, ..)| *depth);
    match found {
        Some((_, _, "tmpfs")) => {
            "tmpfs: **not a disk, writes are not durable**; set TMPDIR to a folder on a disk".to_owned()
        }
        Some((_, device, kind)) => format!("{device}, {kind}"),
        None => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "/dev/vda / ext4 rw 0 0\ntmpfs /mnt tmpfs rw 0 0\n/dev/vdb /mnt/disk xfs rw 0 0\n";

    #[test]
    fn the_deepest_mount_point_is_chosen() {
        assert_eq!(mount_of(Path::new("/mnt/disk/x"), MOUNTS), "/dev/vdb, xfs");
        assert_eq!(mount_of(Path::new("/srv"), MOUNTS), "/dev/vda, ext4");
        assert!(mount_of(Path::new("/mnt/other"), MOUNTS).contains("not a disk"));
    }
}
