//! The simple commands of a command line, for rules about commands.
//!
//! Only lines whose meaning is certain are taken apart: words, quoted or not, joined by `&&`, `||`, `;`, `|` or newlines.
//! For everything else, such as expansions, redirections or programs that run other programs, there is no answer, and a
//! person is asked.

/// Programs that run what their arguments say.
const WRAPPERS: [&str; 41] = [
    ".", "ash", "awk", "bash", "builtin", "busybox", "chroot", "command", "coproc", "dash", "doas", "env", "eval",
    "exec", "expect", "fish", "gawk", "ksh", "ld.so", "mawk", "nice", "nohup", "parallel", "script", "sed", "setpriv",
    "setsid", "sh", "source", "ssh", "stdbuf", "strace", "sudo", "taskset", "time", "timeout", "trap", "watch",
    "xargs", "zsh", "su",
];
/// Words with a meaning for the shell itself.
const KEYWORDS: [&str; 17] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "function", "select",
    "in", "[[", "alias",
];
/// Options of `find` and `git` that run programs.
const RUNNING_OPTIONS: [&str; 11] = [
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-delete",
    "-c",
    "--exec-path",
    "--upload-pack",
    "--receive-pack",
    "--ext-diff",
    "--config-env",
];
/// Subcommands of git that run programs.
const RUNNING_SUBCOMMANDS: [&str; 7] =
    ["alias", "bisect", "config", "difftool", "filter-branch", "mergetool", "submodule"];

/// Returns the simple commands of a command line, each with single spaces between its words; none if the line is anything
/// but a plain list of commands.
pub fn simple_commands(line: &str) -> Option<Vec<String>> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut is_joined = false;
    let mut chars = line.chars().peekable();
    let mut end = |words: &mut Vec<String>| -> Option<bool> {
        if words.is_empty() {
            return Some(false);
        }
        commands.push(checked(&std::mem::take(words))?);
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
    let is_shell = WRAPPERS.contains(&name) || KEYWORDS.contains(&name) || name.starts_with("ld-");
    if first.contains('=') || first.contains('\u{a0}') || name.is_empty() || is_shell {
        return None;
    }
    let arguments = &words[1..];
    let runs =
        |word: &String| RUNNING_OPTIONS.iter().any(|option| word == option || word.starts_with(&format!("{option}=")));
    if matches!(name, "find" | "fd" | "git" | "rg" | "tar" | "rsync" | "make" | "cargo") && arguments.iter().any(runs) {
        return None;
    }
    if name == "git" && arguments.first().is_some_and(|word| RUNNING_SUBCOMMANDS.contains(&word.as_str())) {
        return None;
    }
    Some(words.join(" "))
}

#[cfg(test)]
#[path = "shell_commands_tests.rs"]
mod tests;
