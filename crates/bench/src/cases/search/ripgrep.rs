//! ripgrep on the same files: the fastest way it has, stopped where our answer stops.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::LIMIT;
use super::patterns::{Case, Pattern, Syntax};

/// What can make it faster, or slower, by pattern.
pub const MODES: [&str; 4] = ["--mmap", "--no-mmap", "--mmap --threads=1", "--no-mmap --threads=1"];

pub fn version() -> String {
    let output =
        Command::new("rg").arg("--version").output().expect("rg is installed (Debian: apt-get install ripgrep)");
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
}

pub struct Answer {
    pub elapsed: Duration,
    /// Lines found, at most [`LIMIT`].
    pub lines: usize,
}

/// Searches, until it has ended or enough is found.
pub fn search(folder: &Path, pattern: &Pattern, mode: &str) -> Answer {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--no-ignore", "--hidden", "--line-number", "--no-heading", "--color=never"]);
    command.args(mode.split(' '));
    if pattern.case == Case::Ignored {
        command.arg("--ignore-case");
    }
    if pattern.syntax == Syntax::Literal {
        command.arg("--fixed-strings");
    }
    command.args(["--", pattern.text, "."]).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());

    let start = Instant::now();
    let mut child = command.spawn().expect("rg starts");
    let mut output = child.stdout.take().expect("stdout is piped");
    let mut buffer = vec![0; 64 * 1024];
    let mut lines = 0;
    while lines < LIMIT {
        match output.read(&mut buffer).expect("rg's output can be read") {
            0 => break,
            count => lines += buffer[..count].split(|byte| *byte == b'\n').count() - 1,
        }
    }
    if lines < LIMIT {
        let status = child.wait().expect("rg ends");
        assert!(matches!(status.code(), Some(0 | 1)), "rg failed on {}: {status}", pattern.text);
        return Answer { elapsed: start.elapsed(), lines };
    }
    let elapsed = start.elapsed();
    child.kill().and_then(|()| child.wait()).expect("rg can be stopped");
    Answer { elapsed, lines: LIMIT }
}
