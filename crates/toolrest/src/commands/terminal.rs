//! What people see: colours, tables, questions, and texts of agents without control characters.

use super::failure::{Failure, Outcome};
use clap::ValueEnum;
use std::{
    borrow::Cow,
    fmt::Display,
    io::{self, BufRead, IsTerminal, Write},
};

/// When output has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless the variable NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Which colours an output stream has.
#[derive(Clone, Copy)]
pub(crate) struct Paint {
    has_color: bool,
}

impl Paint {
    pub(crate) fn new(choice: ColorChoice, stream: &impl IsTerminal) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let has_color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => stream.is_terminal() && !no_color,
        };
        Self { has_color }
    }

    fn sgr(self, code: &str, text: impl Display) -> String {
        if self.has_color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_string() }
    }

    pub(crate) fn bold(self, text: impl Display) -> String {
        self.sgr("1", text)
    }

    pub(crate) fn dim(self, text: impl Display) -> String {
        self.sgr("2", text)
    }

    /// Colours a unified diff. Its control characters are made visible first.
    pub(crate) fn diff(self, diff: &str) -> String {
        let mut text = String::with_capacity(diff.len());
        for line in visible(diff).lines() {
            let code = match line {
                _ if !self.has_color => "",
                _ if line.starts_with("+++") || line.starts_with("---") || line.starts_with("diff ") => "1",
                _ if line.starts_with('+') => "32",
                _ if line.starts_with('-') => "31",
                _ if line.starts_with("@@") => "36",
                _ if line.starts_with('#') => "33",
                _ => "",
            };
            let line = if code.is_empty() { line.to_owned() } else { self.sgr(code, line) };
            text.extend([line.as_str(), "\n"]);
        }
        text
    }
}

/// Returns a text with control characters, and those that change the direction of text, made visible. Line breaks and
/// tabs stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// Returns a text on one line, cut after some characters.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    let text = text.replace(['\n', '\t', '\r'], " ");
    let text = visible(&text);
    if text.chars().count() <= max_chars {
        return text.into_owned();
    }
    let cut: String = text.chars().take(max_chars.saturating_sub(1)).collect();
    cut + "…"
}

/// A table for standard output: aligned columns with a heading on a terminal, otherwise one line for each row with tabs
/// between the columns.
pub(crate) struct Table {
    heading: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&'static str]) -> Self {
        Self { heading: heading.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        self.rows.push(cells.iter().map(|cell| one_line(cell, 500)).collect());
    }

    pub(crate) fn print(&self, color: ColorChoice) -> Outcome {
        let stdout = io::stdout();
        let paint = Paint::new(color, &stdout);
        if !stdout.is_terminal() {
            let lines: String = self.rows.iter().map(|row| row.join("\t") + "\n").collect();
            return print(&lines);
        }
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row.get(column).map_or(0, |cell| cell.chars().count()));
            cells.chain([self.heading[column].len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heading.len()).map(width).collect();
        let line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let heading: Vec<String> = self.heading.iter().map(|name| name.to_uppercase()).collect();
        let mut text = paint.dim(line(&heading)) + "\n";
        for row in &self.rows {
            text.extend([line(row).as_str(), "\n"]);
        }
        print(&text)
    }
}

/// Writes data to standard output. A reader that has gone away, such as `head`, is no failure.
pub(crate) fn print(text: &str) -> Outcome {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Failure::io("cannot write to standard output")),
    }
}

/// Writes one JSON document to standard output.
pub(crate) fn print_json(value: &serde_json::Value) -> Outcome {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Failed(error.to_string()))?;
    print(&(text + "\n"))
}

/// Whether a person can be asked: standard input and standard error are a terminal.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question on the terminal and returns the answer; none at the end of the input.
pub(crate) fn ask(question: &str) -> Outcome<Option<String>> {
    eprint!("{question} ");
    let _ = io::stderr().flush();
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).map_err(Failure::io("cannot read from the terminal"))?;
    Ok((read > 0).then(|| line.trim().to_owned()))
}

/// Asks whether to go on.
pub(crate) fn confirm(question: &str) -> Outcome<bool> {
    let answer = ask(&format!("{question} [y/N]"))?;
    Ok(answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")))
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
