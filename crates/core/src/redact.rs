//! Shortens the arguments of calls for their records, without secrets and long values.

use crate::push_json_string;
use hmac::{Hmac, KeyInit, Mac};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};

/// Maximum size of redacted arguments.
pub(crate) const MAX_ARGS_BYTES: usize = 4 << 10;
/// Maximum size of a text that is kept.
pub(crate) const MAX_TEXT_BYTES: usize = 200;
/// Maximum depth of objects and arrays that are kept.
const MAX_DEPTH: usize = 16;
/// Number of bytes of a hash that are kept.
const HASH_BYTES: usize = 8;

/// What stands for a secret.
const REDACTED: &str = r#"{"redacted":true}"#;
/// What stands for the rest of an object or array that is cut off.
const CUT_MEMBER: &str = r#""…":true"#;
const CUT_ELEMENT: &str = r#""…""#;
/// The room that an open object or array needs for a comma, a mark that it is cut off, and its end.
const CLOSING_BYTES: usize = CUT_MEMBER.len() + 2;

/// Parts of names whose values are secrets, in lower case.
const SECRET_WORDS: [&str; 16] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "authorization",
    "cookie",
    "credential",
    "private_key",
    "privatekey",
    "access_key",
    "_pass",
    "pwd",
];

/// Arguments whose values are not kept whatever they are: the input of a process may answer the question for a password.
const UNKEPT_NAMES: [&str; 1] = ["input"];

/// The beginnings of well-known access tokens, this server's own first.
const TOKEN_PREFIXES: [&str; 9] = ["trk_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "xoxb-", "AKIA"];
/// Minimum length of a token after its prefix.
const MIN_TOKEN_CHARS: usize = 12;

/// Members that name a header or a variable whose value is another member of the same object.
const NAME_MEMBERS: [&str; 4] = ["name", "key", "header", "field"];

/// Redacts arguments. The hashes of long values are keyed, so that nobody can test guesses of a value without the key.
pub struct Redactor {
    mac: Hmac<Sha256>,
}

impl Redactor {
    /// Creates a redactor with the server's key.
    pub fn new(key: &[u8]) -> Self {
        let mut block = [0; 64];
        block[..32].copy_from_slice(&Sha256::digest(key));
        Self { mac: Hmac::new(&block.into()) }
    }

    /// Returns arguments, which are JSON, as short JSON. A long text becomes `{"bytes", "hash"}`, a secret `{"redacted": true}`. What
    /// does not fit into 4 KB is cut off, which a member or element `…` says.
    ///
    /// The arguments are read as a stream, because the content of a file can have many megabytes.
    pub fn redact(&self, json: &str) -> String {
        let mut writer =
            Writer { redactor: self, out: String::with_capacity(json.len().min(256)), room: MAX_ARGS_BYTES };
        let mut reader = serde_json::Deserializer::from_str(json);
        // Text that JSON can escape and Unicode does not have cannot be read. Everything before it is kept, and every
        // object that was begun is closed.
        let read = Value { writer: &mut writer, depth: 0 }.deserialize(&mut reader);
        if read.is_err() && writer.out.is_empty() {
            writer.out.push_str("null");
        }
        writer.out
    }

    fn hash(&self, text: &str) -> String {
        let mut mac = self.mac.clone();
        mac.update(text.as_bytes());
        let hash = mac.finalize().into_bytes();
        crate::hex(&hash[..HASH_BYTES])
    }
}

/// Whether the value of this name is a secret.
fn is_secret_name(name: &str) -> bool {
    UNKEPT_NAMES.contains(&name) || secret_word_ends(name.as_bytes()).next().is_some()
}

/// Whether a text has an access token of a well-known form, or a URL with a password.
fn has_token(text: &str) -> bool {
    let is_token = |prefix: &&str| {
        text.match_indices(*prefix).any(|(at, prefix)| {
            let rest = text[at + prefix.len()..].bytes();
            rest.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count()
                >= MIN_TOKEN_CHARS
        })
    };
    let has_password = |(at, _): (usize, &str)| {
        let authority = text[at + 3..].split(['/', ' ', '"', '\'']).next().unwrap_or_default();
        authority.split_once('@').is_some_and(|(user, _)| user.contains(':'))
    };
    TOKEN_PREFIXES.iter().any(is_token) || text.match_indices("://").any(has_password)
}

/// Whether a text is an option whose value, the next text of a list, is a secret: `--token`.
fn is_secret_option(text: &str) -> bool {
    text.starts_with('-') && !text.contains('=') && is_secret_name(text)
}

/// Whether a text assigns a value to a secret name, as in `Authorization: …`, `TOKEN=…` or `--password …`, or has an
/// access token of HTTP.
fn mentions_secret(text: &str) -> bool {
    let text = text.as_bytes();
    let assigns = |end: usize| {
        let rest = &text[end..];
        let name = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count();
        let rest = &rest[name..];
        let gap = rest.iter().take_while(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'')).count();
        let is_option = text[..end].windows(2).any(|pair| pair == b"--") && gap > 0 && gap < rest.len();
        is_option || matches!(rest.get(gap), Some(b':' | b'='))
    };
    secret_word_ends(text).any(assigns) || text.windows(7).any(|part| part.eq_ignore_ascii_case(b"bearer "))
}

/// Returns the end of each secret word in a text.
fn secret_word_ends(text: &[u8]) -> impl Iterator<Item = usize> {
    (0..text.len()).filter_map(move |start| {
        let rest = &text[start..];
        let begins =
            |word: &&&str| rest.get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes()));
        // Most positions are skipped by their first letter.
        let is_first = matches!(rest[0].to_ascii_lowercase(), b'p' | b's' | b't' | b'a' | b'c' | b'_');
        let word = if is_first { SECRET_WORDS.iter().find(begins) } else { None };
        word.map(|word| start + word.len())
    })
}

/// Writes redacted JSON within a limit.
struct Writer<'r> {
    redactor: &'r Redactor,
    out: String,
    /// Maximum length of `out` at which every open object and array can still be closed.
    room: usize,
}

impl Writer<'_> {
    fn text(&mut self, text: &str) {
        if text.len() > MAX_TEXT_BYTES {
            let hash = self.redactor.hash(text);
            let _ = write!(self.out, r#"{{"bytes":{},"hash":"{hash}"}}"#, text.len());
        } else if mentions_secret(text) || has_token(text) {
            self.out.push_str(REDACTED);
        } else {
            push_json_string(&mut self.out, text);
        }
    }

    fn name(&mut self, name: &str) {
        if name.len() > MAX_TEXT_BYTES {
            let _ = write!(self.out, "\"({} bytes)\"", name.len());
        } else {
            push_json_string(&mut self.out, name);
        }
    }

    /// Opens an object or array, and reserves the room to close it. Returns false if there is none.
    fn open(&mut self, bracket: char) -> bool {
        if self.out.len() + 1 + CLOSING_BYTES > self.room {
            return false;
        }
        self.out.push(bracket);
        self.room -= CLOSING_BYTES;
        true
    }

    /// Closes an object or array. If it is cut off, a mark says so.
    fn close(&mut self, bracket: char, mark: Option<&str>) {
        self.room += CLOSING_BYTES;
        if let Some(mark) = mark {
            if !self.out.ends_with(['{', '[']) {
                self.out.push(',');
            }
            self.out.push_str(mark);
        }
        self.out.push(bracket);
    }

    /// Removes what was written since `start` if it exceeds the room. Returns whether it stays.
    fn keep_since(&mut self, start: usize) -> bool {
        let fits = self.out.len() <= self.room;
        if !fits {
            self.out.truncate(start);
        }
        fits
    }
}

/// A value to redact.
struct Value<'w, 'r> {
    writer: &'w mut Writer<'r>,
    depth: usize,
}

/// What a value says about the object that it is a member of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// The name of a secret.
    SecretName,
    /// An option whose value is a secret.
    SecretOption,
    Other,
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = Seen;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Seen, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = Seen;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Seen, E> {
        let _ = write!(self.writer.out, "{value}");
        Ok(Seen::Other)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Seen, E> {
        let _ = write!(self.writer.out, "{value}");
        Ok(Seen::Other)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Seen, E> {
        let _ = write!(self.writer.out, "{value}");
        Ok(Seen::Other)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Seen, E> {
        // The notation of `Debug` is that of JSON, with an exponent for very large and very small numbers.
        let _ = write!(self.writer.out, "{value:?}");
        Ok(Seen::Other)
    }

    fn visit_unit<E>(self) -> Result<Seen, E> {
        self.writer.out.push_str("null");
        Ok(Seen::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Seen, E> {
        self.writer.text(text);
        Ok(match text {
            _ if text.len() > MAX_TEXT_BYTES => Seen::Other,
            _ if is_secret_option(text) => Seen::SecretOption,
            _ if is_secret_name(text) => Seen::SecretName,
            _ => Seen::Other,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Seen, A::Error> {
        let Self { writer, depth } = self;
        let mut is_cut = !writer.open('[');
        if is_cut {
            writer.out.push_str(CUT_ELEMENT);
        }
        let is_open = !is_cut;
        is_cut |= depth >= MAX_DEPTH;
        let mut follows_option = false;
        let read = loop {
            if is_cut {
                break ignore_items(&mut items);
            }
            let start = writer.out.len();
            if !writer.out.ends_with('[') {
                writer.out.push(',');
            }
            let begin = writer.out.len();
            match items.next_element_seed(Value { writer: &mut *writer, depth: depth + 1 }) {
                Ok(Some(seen)) => {
                    if follows_option {
                        writer.out.truncate(begin);
                        writer.out.push_str(REDACTED);
                    }
                    follows_option = seen == Seen::SecretOption;
                    is_cut = !writer.keep_since(start);
                }
                Ok(None) => {
                    writer.out.truncate(start);
                    break Ok(());
                }
                Err(error) => {
                    writer.out.truncate(start);
                    is_cut = true;
                    break Err(error);
                }
            }
        };
        if is_open {
            writer.close(']', is_cut.then_some(CUT_ELEMENT));
        }
        read.map(|()| Seen::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Seen, A::Error> {
        let Self { writer, depth } = self;
        let begin = writer.out.len();
        let mut is_cut = !writer.open('{');
        if is_cut {
            writer.out.push_str(CUT_ELEMENT);
        }
        let is_open = !is_cut;
        is_cut |= depth >= MAX_DEPTH;
        let (mut names_secret, mut has_value) = (false, false);
        let read = loop {
            if is_cut {
                break ignore_members(&mut map);
            }
            let start = writer.out.len();
            let member = member(&mut map, writer, depth);
            match member {
                Ok(Some((name, seen))) => {
                    names_secret |= seen == Seen::SecretName && NAME_MEMBERS.contains(&name.as_str());
                    has_value |= name.starts_with("value");
                    is_cut = !writer.keep_since(start);
                }
                Ok(None) => break Ok(()),
                Err(error) => {
                    writer.out.truncate(start);
                    is_cut = true;
                    break Err(error);
                }
            }
        };
        if is_open {
            writer.close('}', is_cut.then_some(CUT_MEMBER));
        }
        if names_secret && has_value {
            writer.out.truncate(begin);
            writer.out.push_str(REDACTED);
        }
        read.map(|()| Seen::Other)
    }
}

/// Writes the next member of an object; `None` at its end.
fn member<'de, A: MapAccess<'de>>(
    map: &mut A,
    writer: &mut Writer<'_>,
    depth: usize,
) -> Result<Option<(String, Seen)>, A::Error> {
    let Some(name) = map.next_key::<String>()? else { return Ok(None) };
    if !writer.out.ends_with('{') {
        writer.out.push(',');
    }
    writer.name(&name);
    writer.out.push(':');
    if is_secret_name(&name) {
        map.next_value::<IgnoredAny>()?;
        writer.out.push_str(REDACTED);
        return Ok(Some((name, Seen::Other)));
    }
    let seen = map.next_value_seed(Value { writer, depth: depth + 1 })?;
    Ok(Some((name, seen)))
}

fn ignore_items<'de, A: SeqAccess<'de>>(items: &mut A) -> Result<(), A::Error> {
    while items.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn ignore_members<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
