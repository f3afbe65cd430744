//! Reads passwords from a terminal or from standard input. They are never arguments, which all users of the machine see.

use std::io::{self, BufRead, IsTerminal, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Reads a password: twice from a terminal, without echo, or else the first line of standard input.
pub(super) fn read() -> Result<String, String> {
    let input = io::stdin();
    if !input.is_terminal() {
        return read_line(&mut input.lock());
    }
    let (first, second) = (ask("New password")?, ask("The same again")?);
    if first == second { Ok(first) } else { Err("the passwords differ; nothing was changed".to_owned()) }
}

/// Reads a password: once from a terminal, without echo, or else the first line of standard input.
pub(super) fn read_once(prompt: &str) -> Result<String, String> {
    if io::stdin().is_terminal() { ask(prompt) } else { read_line(&mut io::stdin().lock()) }
}

/// Asks on the terminal, without echo.
fn ask(prompt: &str) -> Result<String, String> {
    let _no_echo = NoEcho::start().map_err(|error| format!("cannot hide what is typed: {error}"))?;
    eprint!("{prompt}: ");
    let _ = io::stderr().flush();
    let typed = read_line(&mut io::stdin().lock());
    // The terminal did not echo the line break.
    eprintln!();
    typed
}

/// Reads the first line of an input.
pub(super) fn read_line(input: &mut impl BufRead) -> Result<String, String> {
    /// Longer than any password.
    const MAX_BYTES: u64 = 8 << 10;
    let mut line = String::new();
    let read = io::Read::take(input, MAX_BYTES).read_line(&mut line);
    read.map_err(|error| format!("cannot read the password from standard input: {error}"))?;
    let password = line.strip_suffix('\n').unwrap_or(&line);
    let password = password.strip_suffix('\r').unwrap_or(password);
    if password.is_empty() {
        return Err("no password was given; type it, or send it as the first line of standard input".to_owned());
    }
    Ok(password.to_owned())
}

/// Turns off the echo of the terminal until it is dropped.
struct NoEcho(Termios);

impl NoEcho {
    fn start() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}
