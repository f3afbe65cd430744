//! An answer of the server, with common assertions.

use serde_json::Value;

/// A complete HTTP answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    /// Names in lower case, in the order received.
    pub headers: Vec<(String, String)>,
    /// The body as received.
    pub text: String,
    /// `METHOD path body`, shortened, for messages.
    pub request: String,
}

impl Reply {
    /// Returns the first header of a name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns all headers of a name (lower case).
    pub fn headers_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the cookies that were set, as the value of a `Cookie` header.
    pub fn cookies(&self) -> String {
        self.headers_named("set-cookie").filter_map(|cookie| cookie.split(';').next()).collect::<Vec<_>>().join("; ")
    }

    /// Returns the body as JSON; panics if it is not JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("the body is not JSON ({error}): {self}"))
    }

    /// Asserts status 200 and returns the body.
    #[track_caller]
    pub fn success(&self) -> Value {
        assert_eq!(self.status, 200, "{self}");
        self.json()
    }

    /// Asserts the form of a successful tool call and returns its result.
    #[track_caller]
    pub fn result(&self) -> Value {
        let mut body = self.success();
        assert_eq!(body["success"], true, "{self}");
        assert_eq!(body["error"], Value::Null, "{self}");
        let keys: Vec<_> = body.as_object().expect("the body is an object").keys().map(String::as_str).collect();
        assert_eq!(keys.len(), 3, "not only success, result, error: {self}");
        body["result"].take()
    }

    /// Asserts an error with this status and code, and returns the body.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self}");
        let body = self.error_shape();
        assert_eq!(body["code"], code, "{self}");
        body
    }

    /// Asserts the form that all errors have and returns the body.
    #[track_caller]
    pub fn error_shape(&self) -> Value {
        assert!(self.status >= 400, "{self}");
        let content_type = self.header("content-type").unwrap_or_default();
        assert!(content_type.starts_with("application/json"), "{self}");
        let body = self.json();
        let fields = body.as_object().unwrap_or_else(|| panic!("the body is not an object: {self}"));
        for name in fields.keys() {
            assert!(
                ["error", "code", "fields"].contains(&name.as_str()),
                "an error must not have a field `{name}`: {self}"
            );
        }
        let message = body["error"].as_str().unwrap_or_default();
        assert!(!message.is_empty(), "the error has no message: {self}");
        assert!(body["code"].is_string(), "the error has no code: {self}");
        body
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: String = self.text.chars().take(2000).collect();
        write!(f, "{} answered {} {shown}", self.request, self.status)
    }
}
