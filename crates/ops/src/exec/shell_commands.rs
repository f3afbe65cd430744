//! The simple commands of a command line, for rules about commands.
//!
//! Only lines whose meaning is certain are taken apart: words, quoted or not, joined by `&&`, `||`, `;`, `|` or newlines.
//! For everything else, such as expansions, redirections or programs that run other programs, there is no answer, and a
//! person is asked.

/// Programs that run what their arguments say.
const WRAPPERS: [&str; 59] = [
    ".",
    "ash",
    "awk",
    "bash",
    "builtin",
    "busybox",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "dash",
    "dbus-run-session",
    "doas",
    "env",
    "eval",
    "exec",
    "expect",
    "fish",
    "flock",
    "gawk",
    "i386",
    "ionice",
    "ksh",
    "ld.so",
    "linux32",
    "linux64",
    "mawk",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "prlimit",
    "runuser",
    "script",
    "sed",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "sh",
    "source",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "trap",
    "unshare",
    "uname26",
    "watch",
    "x86_64",
    "xargs",
    "zsh",
    "unbuffer",
];
/// Words with a meaning for the shell itself.
const KEYWORDS: [&str; 17] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "function", "select",
    "in", "[[", "alias",
];
/// Builtins of the shell that evaluate their arguments, or change what later commands mean.
const EVALUATING_BUILTINS: [&str; 24] = [
    "bind",
    "compgen",
    "complete",
    "compopt",
    "declare",
    "enable",
    "export",
    "fc",
    "getopts",
    "hash",
    "history",
    "jobs",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "typeset",
    "unalias",
    "unset",
    "wait",
];
/// Options with which programs run other programs.
const RUNNING_OPTIONS: [(&str, &[&str]); 13] = [
    ("find", &["-exec", "-execdir", "-ok", "-okdir", "-delete"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    (
        "git",
        &[
            "-c",
            "-O",
            "-x",
            "--exec",
            "--exec-path",
            "--upload-pack",
            "--receive-pack",
            "--ext-diff",
            "--config-env",
            "--open-files-in-pager",
        ],
    ),
    ("rg", &["--pre", "--hostname-bin"]),
    (
        "tar",
        &[
            "-I",
            "-F",
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "--info-script",
            "--rsh-command",
        ],
    ),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("make", &["-c", "--eval"]),
    ("cargo", &["-c", "--config"]),
    // The shell evaluates the index of a variable that they name.
    ("printf", &["-v"]),
    ("test", &["-v", "-R"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("zip", &["-TT", "--unzip-command"]),
];
/// Builtins that change the working folder.
const MOVING_BUILTINS: [&str; 3] = ["cd", "popd", "pushd"];
/// Folders whose programs are known by their names alone.
const PROGRAM_FOLDERS: [&str; 5] = ["/bin/", "/sbin/", "/usr/bin/", "/usr/local/bin/", "/usr/sbin/"];
/// Subcommands of git that run programs.
const RUNNING_SUBCOMMANDS: [&str; 7] =
    ["alias", "bisect", "config", "difftool", "filter-branch", "mergetool", "submodule"];

/// Returns the simple commands of a command line, each with single spaces between its words; none if the line is anything
/// but a plain list of commands.
pub fn simple_commands(line: &str) -> Option<Vec<String>> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let (mut is_joined, mut has_moved) = (false, false);
    let mut chars = line.chars().peekable();
    let mut end = |words: &mut Vec<String>| -> Option<bool> {
        if words.is_empty() {
            return Some(false);
        }
        let command = checked(&std::mem::take(words))?;
        let program = command.split(' ').next().unwrap_or_default();
        // In another folder, a relative path is another program.
        if has_moved && program.contains('/') && !program.starts_with('/') {
            return None;
        }
        has_moved |= MOVING_BUILTINS.contains(&program);
        commands.push(command);
        Some(true)
    };
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\n' | ';' => {
                words.extend(word.take());
                match end(&mut words)? {
                    true => is_joined = false,
                    false if c == ';' => return None,
                    // A newline may follow the operator between two commands.
                    false => {}
                }
            }
            '&' | '|' => {
                let is_double = chars.next_if_eq(&c).is_some();
                if !is_double && (c == '&' || chars.peek() == Some(&'&')) {
                    return None;
                }
                words.extend(word.take());
                if !end(&mut words)? {
                    return None;
                }
                is_joined = true;
            }
            '\'' | '"' => {
                let text = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        close if close == c => break,
                        '$' | '`' | '\\' | '!' if c == '"' => return None,
                        other if other.is_control() => return None,
                        // A quoted space would look like two words.
                        other if other.is_whitespace() => text.push('\u{a0}'),
                        other => text.push(other),
                    }
                }
            }
            c if c.is_ascii_alphanumeric() || "-_./,:+@%=^".contains(c) => word.get_or_insert_default().push(c),
            c if c.is_alphanumeric() => word.get_or_insert_default().push(c),
            _ => return None,
        }
    }
    words.extend(word.take());
    let is_complete = end(&mut words)? || !is_joined;
    (is_complete && !commands.is_empty()).then_some(commands)
}

/// Returns a simple command as one text, unless it may run another program.
fn checked(words: &[String]) -> Option<String> {
    let first = words.first()?;
    let name = first.rsplit('/').next().unwrap_or(first);
    let is_shell = [&WRAPPERS[..], &KEYWORDS, &EVALUATING_BUILTINS].concat().contains(&name) || name.starts_with("ld-");
    if first.contains('=') || first.contains('\u{a0}') || name.is_empty() || is_shell {
        return None;
    }
    let arguments = &words[1..];
    if arguments.iter().any(|word| runs_program(name, word)) {
        return None;
    }
    if name == "git" && !arguments.first().is_none_or(|word| is_plain_subcommand(word)) {
        return None;
    }
    // A path that leads back and forth is another name of the program.
    let mut folders = first.strip_prefix("./").unwrap_or(first).split('/').skip(usize::from(first.starts_with('/')));
    if folders.any(|folder| matches!(folder, "" | "." | "..")) {
        return None;
    }
    // A rule about `rm` is also about `/bin/rm`.
    let is_usual = PROGRAM_FOLDERS.iter().any(|folder| first.strip_prefix(folder) == Some(name));
    let first = if is_usual { name } else { first.as_str() };
    let words: Vec<&str> = std::iter::once(first).chain(arguments.iter().map(String::as_str)).collect();
    Some(words.join(" "))
}

/// Whether an argument of a program has it run another one. Short options may stand together, or before their value.
fn runs_program(name: &str, word: &str) -> bool {
    let Some((_, options)) = RUNNING_OPTIONS.iter().find(|(program, _)| *program == name) else { return false };
    options.iter().any(|option| {
        let is_short = option.len() == 2;
        let is_cluster = word.starts_with('-') && !word.starts_with("--");
        if is_short && is_cluster {
            return word.contains(&option[1..]);
        }
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        // Long options can be shortened.
        name == *option || (name.len() > 2 && name.starts_with("--") && option.starts_with(name))
    })
}

/// Whether a word is a subcommand of git that runs no other program. Options before it may change what it does.
fn is_plain_subcommand(word: &str) -> bool {
    !word.starts_with('-') && !RUNNING_SUBCOMMANDS.contains(&word)
}

#[cfg(test)]
#[path = "shell_commands_tests.rs"]
mod tests;
