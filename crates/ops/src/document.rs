//! Contents as editable text, and the contents that each file type allows.

use serde_json::Value;
use toolrest_core::{
    BYTE_ORDER_MARK, Content, Encoding, Entry, ErrorKind, FileType, JsonText, Result, ToolError, WsPath, chat_text,
};

/// Converts a JSON value into the content of a file of this type.
///
/// A document is a string, or an object whose `text` is a string. An object with no other field than `text` equals the
/// string. The other types need an object, which is kept as it was written.
pub fn fit(value: &JsonText, file_type: FileType) -> Result<Content> {
    if value.is_object() {
        value.check_unique_keys().map_err(|error| error.about("content"))?;
    }
    match file_type {
        FileType::Document => document(value),
        kind if kind.is_json() => {
            if value.is_object() {
                return Ok(Content::Json(value.compact()));
            }
            Err(unfit(format!("Content of a {kind} must be a JSON object")))
        }
        kind => Err(unfit(format!("Content of a {kind} cannot be given as JSON"))),
    }
}

fn document(value: &JsonText) -> Result<Content> {
    if let Some(text) = value.as_string() {
        return without_nul(text).map(Content::of_text);
    }
    let wrong = || unfit("Content of a Document must be a string, or an object whose `text` field is a string");
    let members = value.members().ok_or_else(wrong)?;
    let text = without_nul(value.document_text().ok_or_else(wrong)?)?;
    Ok(if members.len() == 1 { Content::of_text(text) } else { Content::Json(value.compact()) })
}

fn without_nul(text: String) -> Result<String> {
    if let Some(at) = text.find('\0') {
        return Err(unfit(format!("Content has a NUL character at byte {at}; a text cannot hold one")));
    }
    Ok(text)
}

fn unfit(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::WrongType, message).about("content")
}

/// The text of a content, which can be edited and written back.
pub struct Editable {
    /// The text.
    pub text: String,
    whole: Original,
}

enum Original {
    Text,
    /// A document with more fields than `text`.
    Document(JsonText),
    /// JSON of another type, shown formatted.
    Json,
    /// Text that has a byte order mark, or is not in UTF-8.
    Encoded(Encoding),
}

impl Editable {
    /// Extracts the text of a content.
    ///
    /// JSON is formatted, which can make it much longer. More than `limit_bytes` is refused before it is formatted.
    pub fn of(content: Content, file_type: FileType, path: &WsPath, limit_bytes: usize) -> Result<Self> {
        match content {
            Content::Text(text) => Ok(Self { text, whole: Original::Text }),
            Content::Json(json) if file_type == FileType::Document => {
                let text = json.document_text().unwrap_or_default();
                Ok(Self { text, whole: Original::Document(json) })
            }
            Content::Json(json) => {
                let size = json.pretty_bytes();
                if size > limit_bytes {
                    let message =
                        format!("{path} is {size} bytes when formatted for editing, over the limit of {limit_bytes}");
                    return Err(ToolError::new(ErrorKind::PayloadTooLarge, message));
                }
                Ok(Self { text: json.pretty(), whole: Original::Json })
            }
            Content::Encoded(encoded) => {
                Ok(Self { text: encoded.text().into_owned(), whole: Original::Encoded(encoded.encoding()) })
            }
            Content::Bytes(bytes) => Err(binary(path, bytes.len())),
        }
    }

    /// Extracts the text of a file's content; of a chat, its messages.
    pub fn of_file(entry: &Entry, content: Content, limit_bytes: usize) -> Result<Self> {
        match &content {
            Content::Json(json) if entry.is_virtual => Ok(Self { text: chat_messages(json), whole: Original::Json }),
            _ => Self::of(content, entry.file_type, &entry.path, limit_bytes),
        }
    }

    /// Creates the content with the edited text.
    pub fn put_back(self, text: String) -> Result<Content> {
        match self.whole {
            Original::Text | Original::Encoded(Encoding::Utf8) => without_nul(text).map(Content::of_text),
            Original::Document(json) => json.with_document_text(&without_nul(text)?).map(Content::Json),
            Original::Json => {
                let json = JsonText::parse(text).map_err(|error| {
                    unfit(format!(
                        "{error}. The file holds JSON and must still do so after the edit; nothing was written"
                    ))
                })?;
                if !json.is_object() {
                    return Err(unfit("The file must still hold a JSON object after the edit; nothing was written"));
                }
                json.check_unique_keys().map_err(|error| unfit(format!("{error}; nothing was written")))?;
                Ok(Content::Json(json.compact()))
            }
            Original::Encoded(encoding) => match encoding.encode(&text) {
                Ok(bytes) => Ok(Content::of_bytes(bytes)),
                Err(why) => Err(unfit(format!(
                    "The file is a text in {encoding} and must stay one, but {why}; nothing was written"
                ))),
            },
        }
    }

    /// Creates the content with another whole text. The encoding and the byte order mark are preserved.
    pub fn replace_whole(self, text: String) -> Result<Content> {
        let lacks_mark = self.text.starts_with(BYTE_ORDER_MARK) && !text.starts_with(BYTE_ORDER_MARK);
        self.put_back(if lacks_mark { format!("{BYTE_ORDER_MARK}{text}") } else { text })
    }
}

/// Returns the messages of a chat as text, as in searches.
fn chat_messages(chat: &JsonText) -> String {
    let chat: Value = serde_json::from_str(chat.as_str()).unwrap_or_default();
    let messages = chat["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said = |name: &str, message: &'_ Value| message[name].as_str().unwrap_or_default().to_owned();
    let said: Vec<_> = messages.iter().map(|message| (said("role", message), said("content", message))).collect();
    chat_text(chat["title"].as_str(), said.iter().map(|(role, content)| (role.as_str(), content.as_str())))
}

/// Creates the error for showing bytes as text.
pub fn binary(path: &WsPath, size: usize) -> ToolError {
    let message = format!("{path} holds {size} bytes that are not text");
    ToolError::new(ErrorKind::Binary, message).detail("size", size).at_path(path)
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
