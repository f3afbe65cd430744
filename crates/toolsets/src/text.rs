//! Answers as texts for models: what a file, a listing or a program says, without the JSON around it. Remarks of a tool
//! stand in brackets on lines of their own.

use std::fmt::Write;

/// Adds a line, on a line of its own.
pub(crate) fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

/// Returns a list, one item on each line; `empty` if there is none.
pub(crate) fn lines(items: impl IntoIterator<Item = String>, empty: &str) -> String {
    let mut text = String::new();
    for item in items {
        push_line(&mut text, &item);
    }
    if text.is_empty() { format!("[{empty}]") } else { text }
}

/// Adds what an answer leaves out: counts with their reasons.
pub(crate) fn push_left_out(text: &mut String, counts: &[(Option<u64>, &str)]) {
    let counts: Vec<String> = counts
        .iter()
        .filter_map(|(count, why)| Some(format!("{} {why}", (*count).filter(|count| *count > 0)?)))
        .collect();
    if !counts.is_empty() {
        push_line(text, &format!("[left out: {}]", counts.join(", ")));
    }
}

/// Returns a match of a search as `path:line: text`. Text of several lines begins on the next line.
pub(crate) fn search_match(path: &str, line: u64, text: &str) -> String {
    let separator = if text.contains('\n') { '\n' } else { ' ' };
    format!("{path}:{line}:{separator}{text}")
}

/// Returns a change as its diff, or says that nothing changed.
pub(crate) fn change(diff: &str, path: &str) -> String {
    if diff.is_empty() { format!("[{path} already has this content]") } else { diff.to_owned() }
}

/// Returns what a program printed and how it ended.
pub(crate) fn program_output(stdout: &str, stderr: &str, exit_code: i32) -> String {
    let mut text = stdout.to_owned();
    if !stderr.is_empty() {
        push_line(&mut text, "[stderr]\n");
        text.push_str(stderr);
    }
    if stdout.is_empty() && stderr.is_empty() {
        text.push_str("[no output]");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    // Writing to a string cannot fail.
    let _ = write!(text, "[exit code {exit_code}]");
    text
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
