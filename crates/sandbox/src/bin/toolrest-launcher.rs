//! The launcher as a separate program, for tests and for programs that cannot start themselves as the launcher.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolrest_sandbox::launcher_main()
}
