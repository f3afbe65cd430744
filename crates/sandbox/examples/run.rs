//! Runs a command in a folder, in the sandbox, and prints its result. Without a command, prints which layers hold.
//!
//! `cargo run -p toolrest-sandbox --example run -- /some/folder bash -c 'ls -la'`

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use toolrest_sandbox::{CellSpec, Job, Options, Sandbox, Source, Stream};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    if env::args().nth(1).as_deref() == Some("__launcher") {
        return Ok(toolrest_sandbox::launcher_main());
    }
    let mut arguments = env::args_os().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    let command: Vec<_> = arguments.collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let sandbox = Sandbox::start(Options::default())?;
        if command.is_empty() {
            print!("{}", sandbox.probe().await?);
            return Ok(ExitCode::SUCCESS);
        }
        let spec = CellSpec::new(Source::open(folder)?, "/workspace");
        let mut running = sandbox.spawn(Job::new(spec, command)).await?;
        while let Some(chunk) = running.next().await {
            match chunk.stream {
                Stream::Stdout => io::stdout().write_all(&chunk.bytes)?,
                Stream::Stderr => io::stderr().write_all(&chunk.bytes)?,
            }
        }
        let report = running.wait().await?;
        let limit = report.limit_hit.map_or_else(String::new, |limit| format!(", ended by its limit on {limit}"));
        let by = report.enforced_by;
        eprintln!("{:?} after {:?}{limit}; memory is limited by the {}", report.exit, report.duration, by.memory);
        Ok(ExitCode::from(u8::try_from(report.exit.code()).unwrap_or(u8::MAX)))
    })
}
