//! The secrets of a program: looked up for its environment, and replaced in its output.

use super::{Executor, Program};
use std::{collections::HashSet, sync::Arc};
use toolrest_core::{
    CallCx, ErrorKind, MIN_SECRET_BYTES, Result, Role, Secret, ToolError, check_secret_name, no_such_secret,
};
use toolrest_sandbox::{CapturedOutput, Report};

/// Maximum number of secrets that a program gets.
const MAX_NAMES: usize = 32;
/// Maximum number of texts that are replaced in the output of a program. Output is compared with each of them.
const MAX_NEEDLES: usize = 512;

/// The secrets of a program, by name.
pub(super) type ProgramSecrets = Vec<(String, Secret)>;

impl Executor {
    /// Returns the secrets that a program names. Fails if one does not exist.
    pub(super) async fn secrets_of(&self, cx: &CallCx, program: &Program) -> Result<ProgramSecrets> {
        let names = checked_names(program)?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let values = self.secrets.values(cx.access(Role::Editor), &names).await?;
        let found = names.into_iter().zip(values);
        found.map(|(name, value)| value.ok_or_else(|| no_such_secret(&name)).map(|value| (name, value))).collect()
    }
}

/// Returns the names of the secrets of a program, each once.
fn checked_names(program: &Program) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for name in &program.secrets {
        check_secret_name("secrets", name)?;
        if program.env.iter().any(|(variable, _)| variable == name) {
            let message = format!("{name} is given twice, in `env` and in `secrets`; give it once");
            return Err(ToolError::argument("secrets", message));
        }
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    if names.len() > MAX_NAMES {
        let message = format!("`secrets` has {} names; a program gets at most {MAX_NAMES}", names.len());
        return Err(ToolError::new(ErrorKind::InvalidArgument, message).about("secrets"));
    }
    Ok(names)
}

/// Replaces the values of secrets in output.
#[derive(Clone, Default)]
pub(super) struct Redaction {
    /// What is replaced, the longest first, and what replaces it.
    needles: Arc<[(Vec<u8>, String)]>,
}

impl Redaction {
    /// Refuses secrets of too many lines.
    pub(super) fn of(secrets: &ProgramSecrets) -> Result<Self> {
        let (mut needles, mut known) = (Vec::new(), HashSet::new());
        for (name, secret) in secrets {
            let mark = format!("[secret {name}]");
            let value = secret.expose();
            // Programs print a key of many lines line by line, and a text within JSON with escapes.
            let escaped = serde_json::to_string(value).unwrap_or_default();
            let forms = [value, value.trim_end(), escaped.trim_matches('"')].into_iter().chain(value.lines());
            for form in forms.filter(|form| form.len() >= MIN_SECRET_BYTES) {
                if known.insert(form.to_owned()) {
                    needles.push((form.as_bytes().to_vec(), mark.clone()));
                }
            }
        }
        if needles.len() > MAX_NEEDLES {
            let message =
                format!("The secrets have more than {MAX_NEEDLES} lines together; give the program fewer of them");
            return Err(ToolError::argument("secrets", message));
        }
        needles.sort_by_key(|(needle, _): &(Vec<u8>, String)| std::cmp::Reverse(needle.len()));
        Ok(Self { needles: needles.into() })
    }

    /// Replaces the secrets in the output of a report.
    pub(super) fn apply(&self, report: &mut Report) {
        if !self.needles.is_empty() {
            report.stdout = self.redacted(&report.stdout);
            report.stderr = self.redacted(&report.stderr);
        }
    }

    fn redacted(&self, output: &CapturedOutput) -> CapturedOutput {
        let (head, tail) = output.parts();
        if output.cut_bytes() == 0 {
            let mut stream = self.stream();
            let mut all = stream.push(&[head, tail].concat());
            all.extend(stream.finish());
            return output.with_parts(all, Vec::new());
        }
        // What is held back at the cut may be the beginning of a secret, so it is left out.
        let kept_head = self.stream().push(head);
        let mut stream = self.stream();
        let mut kept_tail = stream.push(&tail[self.rest_of_secret(tail)..]);
        kept_tail.extend(stream.finish());
        output.with_parts(kept_head, kept_tail)
    }

    /// Returns how many bytes at the beginning may be the end of a secret that is cut.
    fn rest_of_secret(&self, bytes: &[u8]) -> usize {
        let rest =
            |needle: &[u8]| (1..needle.len().min(bytes.len() + 1)).rev().find(|size| needle.ends_with(&bytes[..*size]));
        self.needles.iter().filter_map(|(needle, _)| rest(needle)).max().unwrap_or(0)
    }

    /// Begins the redaction of a stream.
    pub(super) fn stream(&self) -> StreamRedaction {
        StreamRedaction { redaction: self.clone(), held: Vec::new() }
    }
}

/// Replaces the values of secrets in a stream. Bytes that may be the beginning of a secret are held back until more come.
#[derive(Default)]
pub(super) struct StreamRedaction {
    redaction: Redaction,
    held: Vec<u8>,
}

impl StreamRedaction {
    /// Takes the next bytes; returns those that are certain by now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.redaction.needles.is_empty() {
            return bytes.to_vec();
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let (redacted, rest) = self.redact(&all, More::CanCome);
        self.held = all.split_off(rest);
        redacted
    }

    /// Returns the bytes that were held back, at the end of the stream.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        self.redact(&held, More::CannotCome).0
    }

    /// Returns the redacted bytes, and where those begin that are not certain.
    fn redact(&self, all: &[u8], more: More) -> (Vec<u8>, usize) {
        let needles = &self.redaction.needles;
        let mut is_first = [false; 256];
        for (needle, _) in needles.iter() {
            is_first[usize::from(needle[0])] = true;
        }
        let mut redacted = Vec::with_capacity(all.len());
        let mut at = 0;
        while at < all.len() {
            let rest = &all[at..];
            if !is_first[usize::from(rest[0])] {
                redacted.push(rest[0]);
                at += 1;
                continue;
            }
            // The longest first: one that is incomplete wins over a shorter one that is complete.
            let possible = needles
                .iter()
                .find(|(needle, _)| rest.starts_with(needle) || (more == More::CanCome && needle.starts_with(rest)));
            match possible {
                Some((needle, mark)) if rest.len() >= needle.len() => {
                    redacted.extend_from_slice(mark.as_bytes());
                    at += needle.len();
                }
                Some(_) => return (redacted, at),
                None => {
                    redacted.push(rest[0]);
                    at += 1;
                }
            }
        }
        (redacted, at)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    CanCome,
    CannotCome,
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
