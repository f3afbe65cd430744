//! The launcher as a program of its own, for tests and for whoever embeds the sandbox in a program that cannot lend
//! itself.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolrest_sandbox::launcher_main()
}
