//! Passwords that an operator types or pipes in; never arguments, which every user of the machine can see.

use std::io::{self, BufRead, IsTerminal, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Reads a password: twice without an echo from a terminal, else the first line of standard input.
pub(super) fn read() -> Result<String, String> {
    let input = io::stdin();
    if !input.is_terminal() {
        return line(&mut input.lock());
    }
    let silence = Silence::begin().map_err(|error| format!("cannot hide what is typed: {error}"))?;
    let ask = |what: &str| {
        eprint!("{what}: ");
        let _ = io::stderr().flush();
        let typed = line(&mut input.lock());
        // The line break that was not shown.
        eprintln!();
        typed
    };
    let (first, second) = (ask("New password")?, ask("The same again")?);
    drop(silence);
    if first == second { Ok(first) } else { Err("the passwords differ; nothing was changed".to_owned()) }
}

fn line(input: &mut impl BufRead) -> Result<String, String> {
    /// More than any password has.
    const MOST_BYTES: u64 = 8 << 10;
    let mut line = String::new();
    let read = io::Read::take(input, MOST_BYTES).read_line(&mut line);
    read.map_err(|error| format!("cannot read the password from standard input: {error}"))?;
    let password = line.strip_suffix('\n').unwrap_or(&line);
    let password = password.strip_suffix('\r').unwrap_or(password);
    if password.is_empty() {
        return Err("no password was given; type it, or send it as the first line of standard input".to_owned());
    }
    Ok(password.to_owned())
}

/// A terminal that does not show what is typed, as long as this lives.
struct Silence(Termios);

impl Silence {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}
