//! The content of a file: its type, its form and its hash.

use crate::{BYTE_ORDER_MARK, Encoding, ErrorKind, JsonText, Result, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::{borrow::Cow, fmt, str::FromStr};

/// The type of a file, as the `workspace` toolset names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum FileType {
    /// A folder.
    Folder,
    /// Text, or an object with a `text` field.
    Document,
    /// A JSON object describing a canvas.
    Canvas,
    /// A JSON object describing a whiteboard.
    Whiteboard,
    /// A JSON object holding a conversation.
    Chat,
    /// A JSON object describing an agent.
    Agent,
    /// A JSON object describing a skill.
    Skill,
    /// Bytes that are not text.
    File,
}

impl FileType {
    const ALL: [Self; 8] = [
        Self::Folder,
        Self::Document,
        Self::Canvas,
        Self::Whiteboard,
        Self::Chat,
        Self::Agent,
        Self::Skill,
        Self::File,
    ];

    /// Returns the number that databases store for the type.
    pub fn code(self) -> i16 {
        match self {
            Self::Folder => 0,
            Self::Document => 1,
            Self::Canvas => 2,
            Self::Whiteboard => 3,
            Self::Chat => 4,
            Self::Agent => 5,
            Self::Skill => 6,
            Self::File => 7,
        }
    }

    /// Returns the type for a number of [`FileType::code`].
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Returns the name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Folder => "Folder",
            Self::Document => "Document",
            Self::Canvas => "Canvas",
            Self::Whiteboard => "Whiteboard",
            Self::Chat => "Chat",
            Self::Agent => "Agent",
            Self::Skill => "Skill",
            Self::File => "File",
        }
    }

    /// Whether files of this type hold a JSON object that is not a document.
    pub fn is_json(self) -> bool {
        matches!(self, Self::Canvas | Self::Whiteboard | Self::Chat | Self::Agent | Self::Skill)
    }
}

impl fmt::Display for FileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FileType {
    type Err = ToolError;

    /// Parses the name of a type, without regard to case.
    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(text)).ok_or_else(|| {
            let message = format!(
                "Unknown file type '{text}'; use one of document, folder, canvas, chat, whiteboard, agent, skill"
            );
            ToolError::new(ErrorKind::InvalidArgument, message)
        })
    }
}

/// The form of a content. A JSON value and a text with the same bytes are different contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// UTF-8 text without a byte order mark.
    Text,
    /// A JSON value.
    Json,
    /// Bytes that are not text.
    Bytes,
    /// Text that has a byte order mark, or is not UTF-8.
    Encoded,
}

impl Form {
    /// Returns the number that databases store for the form.
    pub fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Json => 1,
            Self::Bytes => 2,
            Self::Encoded => 3,
        }
    }

    /// Returns the type of a plain file with content of this form.
    pub fn plain_type(self) -> FileType {
        if self == Self::Bytes { FileType::File } else { FileType::Document }
    }

    /// Returns the form for a number of [`Form::code`].
    pub fn from_code(code: i16) -> Option<Self> {
        [Self::Text, Self::Json, Self::Bytes, Self::Encoded].into_iter().find(|form| form.code() == code)
    }
}

/// Maximum size of formatted JSON. Longer JSON is shown to programs without formatting.
const MAX_FORMATTED_BYTES: usize = 64 << 20;

/// A file's content.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// UTF-8 text without a byte order mark.
    Text(String),
    /// Text that has a byte order mark, or is not UTF-8.
    Encoded(EncodedText),
    /// A JSON value, as it was written.
    Json(JsonText),
    /// Bytes that are not text.
    Bytes(Vec<u8>),
}

/// The bytes of a text that has a byte order mark, or is not UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedText {
    encoding: Encoding,
    bytes: Vec<u8>,
}

impl EncodedText {
    /// Returns its encoding.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the text, including a byte order mark.
    pub fn text(&self) -> Cow<'_, str> {
        // The constructor checked that the bytes are text in this encoding.
        self.encoding.decode(&self.bytes).unwrap_or_default()
    }
}

impl Content {
    /// Creates the content for bytes; [`Encoding::of`] decides whether they are text.
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        match Encoding::of(&bytes) {
            Some(Encoding::Utf8) => match String::from_utf8(bytes) {
                Ok(text) => Self::of_text(text),
                Err(error) => Self::Bytes(error.into_bytes()),
            },
            Some(encoding) => Self::Encoded(EncodedText { encoding, bytes }),
            None => Self::Bytes(bytes),
        }
    }

    /// Creates the content for a text without NUL.
    pub fn of_text(text: String) -> Self {
        if text.starts_with(BYTE_ORDER_MARK) {
            return Self::Encoded(EncodedText { encoding: Encoding::Utf8, bytes: text.into_bytes() });
        }
        Self::Text(text)
    }

    /// Returns the form of this content.
    pub fn form(&self) -> Form {
        match self {
            Self::Text(_) => Form::Text,
            Self::Encoded(_) => Form::Encoded,
            Self::Json(_) => Form::Json,
            Self::Bytes(_) => Form::Bytes,
        }
    }

    /// Returns the hash that the API reports: of the bytes of text, or of the canonical form of JSON.
    pub fn hash(&self) -> Result<ContentHash> {
        Ok(match self {
            Self::Text(text) => ContentHash::of(text.as_bytes()),
            Self::Encoded(text) => ContentHash::of(text.as_bytes()),
            Self::Json(json) => ContentHash::of(&json.canonical()?),
            Self::Bytes(bytes) => ContentHash::of(bytes),
        })
    }

    /// Returns the bytes that programs see in a file of this type: the text of a document, or formatted JSON.
    pub fn shown(self, file_type: FileType) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Encoded(text) => text.into_bytes(),
            Self::Json(json) if file_type == FileType::Document => {
                json.document_text().unwrap_or_default().into_bytes()
            }
            // The indentation of deeply nested JSON can exceed the memory.
            Self::Json(json) if json.pretty_bytes() > MAX_FORMATTED_BYTES => json.as_str().as_bytes().to_vec(),
            Self::Json(json) => json.pretty().into_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// Returns the size of [`Content::shown`].
    pub fn shown_bytes(&self, file_type: FileType) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Encoded(text) => text.as_bytes().len(),
            Self::Json(json) if file_type == FileType::Document => json.document_text().map_or(0, |text| text.len()),
            Self::Json(json) => match json.pretty_bytes() {
                formatted if formatted > MAX_FORMATTED_BYTES => json.as_str().len(),
                formatted => formatted,
            },
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Creates the content of a file of this type from the bytes that a program wrote. The other fields of a document
    /// are kept. The bytes of a JSON file must be a JSON object.
    pub fn of_shown(bytes: Vec<u8>, file_type: FileType, before: &Self) -> Result<Self> {
        let Self::Json(json) = before else { return Ok(Self::of_bytes(bytes)) };
        let unfit = |message: &str| ToolError::new(ErrorKind::WrongType, message);
        let text = match Self::of_bytes(bytes) {
            Self::Text(text) => text,
            Self::Encoded(text) => text.text().into_owned(),
            Self::Json(_) | Self::Bytes(_) => return Err(unfit("What was written is not text")),
        };
        if file_type == FileType::Document {
            return json.with_document_text(&text).map(Self::Json);
        }
        let json = JsonText::parse(text)?;
        if !json.is_object() {
            return Err(unfit("What was written is not a JSON object"));
        }
        json.check_unique_keys()?;
        Ok(Self::Json(json.compact()))
    }

    /// Returns the bytes that stores keep.
    pub fn stored(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Text(text) => Cow::Borrowed(text.as_bytes()),
            Self::Encoded(text) => Cow::Borrowed(text.as_bytes()),
            Self::Json(json) => Cow::Owned(json.compact().as_str().as_bytes().to_vec()),
            Self::Bytes(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// Creates the content from the bytes of [`Content::stored`].
    pub fn from_stored(form: Form, bytes: Vec<u8>) -> Result<Self> {
        Ok(match form {
            Form::Text => Self::of_text(String::from_utf8(bytes).map_err(ToolError::internal)?),
            Form::Json => Self::Json(JsonText::parse(String::from_utf8(bytes).map_err(ToolError::internal)?)?),
            // Bytes of `Form::Bytes` may be text: before `Form::Encoded` existed, fewer encodings were recognised.
            Form::Bytes | Form::Encoded => Self::of_bytes(bytes),
        })
    }
}

/// The SHA-256 of a content, written as hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// Hashes bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Parses a hash from a caller. An invalid hash becomes one that no content has, so that the call fails like one
    /// with an outdated hash.
    pub fn claimed(text: &str) -> Self {
        text.parse().unwrap_or(Self([0; 32]))
    }

    /// Creates a hash from 32 bytes of a database.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// Hashes a content in pieces.
#[derive(Default)]
pub struct ContentHasher(Sha256);

impl ContentHasher {
    /// Adds the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the hash of all pieces.
    pub fn finish(self) -> ContentHash {
        ContentHash(self.0.finalize().into())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ContentHash {
    type Err = ToolError;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            let message = format!("'{text}' is not a hash; pass the 64 hexadecimal digits that read or write returned");
            ToolError::new(ErrorKind::InvalidArgument, message)
        };
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for ContentHash {
    fn schema_name() -> Cow<'static, str> {
        "ContentHash".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
