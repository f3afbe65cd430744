//! Results that were too long for an answer: kept as `out:ID`, read and searched like files.

use super::Kit;
use super::jobs::Job;
use super::locate::{Lines, split_lines};
use toolrest_core::{CallCx, CallId, ErrorKind, MAX_RESULT_BYTES, Result, Role, ToolError};

/// What paths to results begin with.
pub(super) const PREFIX: &str = "out:";
/// Number of characters of an id.
const ID_CHARS: usize = 6;
/// The characters of ids, without those that are easily confused.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Maximum length of an id.
const MAX_ID_CHARS: usize = 24;

impl Kit {
    /// Keeps a text for the caller; returns its path. What is over the limit is left out.
    pub(super) async fn keep(&self, cx: &CallCx, text: &str) -> Result<String> {
        let id = new_id();
        self.keep_as(cx, &id, text.as_bytes()).await?;
        Ok(format!("{PREFIX}{id}"))
    }

    /// Keeps bytes under an id.
    pub(super) async fn keep_as(&self, cx: &CallCx, id: &str, bytes: &[u8]) -> Result<()> {
        let kept = bytes[..bytes.len().min(MAX_RESULT_BYTES)].to_vec();
        self.sessions.keep_result(cx.access(Role::Viewer), id.to_owned(), kept).await
    }

    /// Reads what is kept under an id, once there is memory for it.
    pub(super) async fn kept(&self, cx: &CallCx, id: &str) -> Result<Option<Vec<u8>>> {
        let access = cx.access(Role::Viewer);
        let Some(bytes) = self.sessions.result_bytes(access, id.to_owned()).await? else { return Ok(None) };
        cx.workspace.make_room(bytes).await?;
        self.sessions.kept_result(access, id.to_owned()).await
    }

    /// Returns the text of a result, and the lines that its path asks for.
    pub(super) async fn result(&self, cx: &CallCx, path: &str) -> Result<(String, String, Lines)> {
        let (path, lines) = split_lines(path.trim());
        let id = path.strip_prefix(PREFIX).unwrap_or(path).to_lowercase();
        let is_id = !id.is_empty() && id.len() <= MAX_ID_CHARS && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_id {
            let message = format!("{path} is not the name of a result, such as out:k3f9");
            return Err(ToolError::argument("paths", message));
        }
        if let Some(number) = id.strip_prefix('j').and_then(|number| number.parse::<u32>().ok()) {
            // The log of a job, unless that ended long ago.
            if let Ok((_, Job::Process(process))) = self.job(cx, &format!("j{number}")).await
                && let Ok(output) = self.job_output(cx, number, &process).await
            {
                let text = String::from_utf8_lossy(&output.bytes).into_owned();
                return Ok((format!("{PREFIX}{id}"), text, lines));
            }
        }
        let expired = || {
            let error = ToolError::new(ErrorKind::Expired, format!("{PREFIX}{id} was kept for 24 h, or never was"));
            error.with_hint("run the command or the search again")
        };
        let bytes = self.kept(cx, &id).await?.ok_or_else(expired)?;
        Ok((format!("{PREFIX}{id}"), String::from_utf8_lossy(&bytes).into_owned(), lines))
    }
}

/// Returns a new id.
fn new_id() -> String {
    // The last bytes of an id of a call are random.
    let random = CallId::new().0.into_bytes();
    let digit = |byte: &u8| char::from(ALPHABET[usize::from(byte % 32)]);
    random[16 - ID_CHARS..].iter().map(digit).collect()
}
