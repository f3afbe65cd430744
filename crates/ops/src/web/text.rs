//! Tells text from other content, and decodes it by its charset.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use http::{HeaderMap, header};

/// Number of bytes at the beginning of a page in which it may name its charset.
const PRESCAN_BYTES: usize = 1024;

/// Types besides `text/*` that are text.
const TEXT_TYPES: [&str; 14] = [
    "application/json",
    "application/xml",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/xhtml+xml",
    "application/x-www-form-urlencoded",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/graphql",
    "application/sql",
    "application/x-sh",
    "application/x-ndjson",
];

/// The type of a content, in lower case and without parameters. Empty if there is none.
pub(super) fn media_type(fields: &HeaderMap) -> String {
    let value = content_type(fields);
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether a content is a page of HTML.
pub(super) fn is_html(media_type: &str, content: &str) -> bool {
    if matches!(media_type, "text/html" | "application/xhtml+xml") {
        return true;
    }
    let start = content.trim_start().get(..14).unwrap_or_default().to_ascii_lowercase();
    media_type.is_empty() && (start.starts_with("<!doctype html") || start.starts_with("<html"))
}

/// Decodes a content if it is text.
///
/// A byte order mark counts more than the charset of the head, and that more than what the page itself says. Without any
/// of them it is UTF-8, or else Windows-1252, as browsers have it.
pub(super) fn decode(fields: &HeaderMap, content: &[u8]) -> Option<String> {
    let media_type = media_type(fields);
    if !is_text(&media_type) {
        // Many hosts name no type, or the general one, for files that are text.
        let is_unknown = matches!(media_type.as_str(), "" | "application/octet-stream" | "binary/octet-stream");
        let text = if is_unknown { str::from_utf8(content).ok() } else { None };
        return text.filter(|text| !text.contains('\0')).map(|text| without_mark(text).to_owned());
    }
    let declared = || charset(content_type(fields)).or_else(|| declared_in_page(content));
    let encoding = Encoding::for_bom(content).map(|(encoding, _)| encoding).or_else(declared);
    let encoding = encoding.unwrap_or_else(|| if str::from_utf8(content).is_ok() { UTF_8 } else { WINDOWS_1252 });
    let (text, _, _) = encoding.decode(content);
    // What is called text and has NUL is something else.
    (!text.contains('\0')).then(|| text.into_owned())
}

fn content_type(fields: &HeaderMap) -> &str {
    fields.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || media_type.ends_with("+json")
        || media_type.ends_with("+xml")
        || TEXT_TYPES.contains(&media_type)
}

/// Returns the encoding that a content type names.
fn charset(content_type: &str) -> Option<&'static Encoding> {
    let (_, rest) = split_ignoring_case(content_type, "charset=")?;
    let label = rest.trim_start_matches(['"', '\'']);
    let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.+".contains(c))).unwrap_or(label.len());
    Encoding::for_label(&label.as_bytes()[..end])
}

/// Returns the encoding that a page names in its first bytes: `<meta charset=…>` or `<?xml encoding=…?>`.
fn declared_in_page(content: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&content[..content.len().min(PRESCAN_BYTES)]);
    let in_xml = || {
        let (_, rest) = split_ignoring_case(start.strip_prefix("<?xml")?, "encoding=")?;
        charset(&format!("charset={rest}"))
    };
    let found = split_ignoring_case(&start, "<meta").and_then(|(_, rest)| charset(rest)).or_else(in_xml)?;
    // The declaration was read as ASCII, so it cannot be UTF-16.
    Some(if found.is_ascii_compatible() { found } else { UTF_8 })
}

fn split_ignoring_case<'a>(text: &'a str, separator: &str) -> Option<(&'a str, &'a str)> {
    let at = text.to_ascii_lowercase().find(separator)?;
    Some((&text[..at], &text[at + separator.len()..]))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod text_tests;
