//! Commands for bash whose two outputs are one stream, and the exit codes of the commands of their pipes.

/// The descriptor on which the codes are reported: what was standard error before it was joined with standard output.
const DESCRIPTOR: u32 = 199;
/// What a report begins with. No program prints it by chance.
const MARK: &[u8] = b"\x1e\x02toolrest-pipe ";
/// Maximum number of codes that are reported.
const MAX_CODES: usize = 32;

/// Returns the code that runs a command in a folder below the working directory, with one stream for both outputs.
///
/// If the command has a pipe, the exit codes of the last pipe are reported. They are those of the last command only as long
/// as nothing else has run, so the report is part of the same text: not for commands whose end may swallow it.
pub(super) fn merged(command: &str, folder: Option<&str>) -> String {
    let mut code = format!("exec {DESCRIPTOR}>&2 2>&1; ");
    if let Some(folder) = folder {
        code.extend(["cd -- '", &folder.replace('\'', r"'\''"), "' || exit 1; "]);
    }
    code.push_str(command);
    let is_open = command.contains("<<") || command.trim_end().ends_with('\\');
    if command.contains('|') && !is_open {
        let report = format!(
            "\n{{ __toolrest=(\"$?\" \"${{PIPESTATUS[@]}}\"); \
             printf '\\036\\002toolrest-pipe %s\\n' \"${{__toolrest[*]:1}}\" >&{DESCRIPTOR}; \
             exit \"${{__toolrest[0]}}\"; }} 2>/dev/null"
        );
        code.push_str(&report);
    }
    code
}

/// Finds the report of exit codes in standard error.
#[derive(Debug, Default)]
pub(super) struct PipeCodes {
    /// The codes of the last pipe.
    pub(super) codes: Vec<i32>,
}

impl PipeCodes {
    /// Takes a report out of a piece of output. A report is one write of few bytes, so it is not split.
    pub(super) fn take_from(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        let Some(start) = bytes.windows(MARK.len()).position(|window| window == MARK) else { return bytes };
        let after = &bytes[start + MARK.len()..];
        let end = after.iter().position(|byte| *byte == b'\n').unwrap_or(after.len());
        let codes = String::from_utf8_lossy(&after[..end]);
        self.codes = codes.split_whitespace().take(MAX_CODES).map_while(|code| code.parse().ok()).collect();
        let rest = &after[(end + 1).min(after.len())..];
        [&bytes[..start], rest].concat()
    }
}

#[cfg(test)]
#[path = "pipe_codes_tests.rs"]
mod tests;
