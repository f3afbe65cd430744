//! The fields of requests (headers) that callers may set.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Maximum number of fields that a caller may set.
const MAX_FIELDS: usize = 64;
/// Maximum size of the fields that a caller may set, together.
const MAX_FIELD_BYTES: usize = 16 << 10;

/// Fields that decide how the message is read, who sent it, or where it goes. They are the client's own.
const OWN: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];
/// Beginnings of the names of such fields.
const OWN_PREFIXES: [&str; 2] = ["proxy-", "x-forwarded-"];

/// Why a field cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadField {
    /// The client sets it.
    #[error("the header {0} cannot be set: the server sets it itself")]
    Own(String),
    /// The name is not one.
    #[error("{0:?} is not the name of a header")]
    Name(String),
    /// The value cannot be sent.
    #[error("the value of the header {0} has characters that cannot be sent")]
    Value(String),
    /// There are too many.
    #[error("at most {MAX_FIELDS} headers with {MAX_FIELD_BYTES} bytes together can be set")]
    TooMany,
}

/// Checks the fields that a caller sets.
pub fn caller_fields<'a>(given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<HeaderMap, BadField> {
    let mut fields = HeaderMap::new();
    let (mut count, mut bytes) = (0, 0);
    for (given_name, value) in given {
        (count, bytes) = (count + 1, bytes + given_name.len() + value.len());
        if count > MAX_FIELDS || bytes > MAX_FIELD_BYTES {
            return Err(BadField::TooMany);
        }
        let name: HeaderName = given_name.parse().map_err(|_| BadField::Name(given_name.to_owned()))?;
        let is_own =
            OWN.contains(&name.as_str()) || OWN_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix));
        if is_own {
            return Err(BadField::Own(name.to_string()));
        }
        let value = HeaderValue::from_str(value).map_err(|_| BadField::Value(name.to_string()))?;
        fields.append(name, value);
    }
    Ok(fields)
}

/// Returns the fields that another host may see too: none of them can be a credential.
pub(super) fn harmless(fields: &HeaderMap) -> HeaderMap {
    let kept = [header::ACCEPT, header::ACCEPT_LANGUAGE];
    kept.into_iter().filter_map(|name| Some((name.clone(), fields.get(&name)?.clone()))).collect()
}
