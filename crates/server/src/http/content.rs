//! The bytes of a file, whole or a range of them, sent as they are read.

use super::App;
use super::budget::{Held, of_user};
use super::reply::Answer;
use super::request::At;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::{
    io::{Read, SeekFrom},
    sync::Arc,
};
use toolrest_core::{OpenFile, ReadSeek, Role, ToolError};

/// How much is read and sent at a time.
const PIECE_BYTES: u64 = 256 << 10;

pub(crate) async fn download(State(app): State<Arc<App>>, at: At, headers: HeaderMap) -> Answer {
    let path = at.file_path(&app).await?;
    let _place = app.engine.enter(at.workspace, at.caller).await?;
    let cx = app.engine.rest_context("content", at.workspace, at.caller, Role::Viewer).await?;
    let on_disk = cx.workspace.open(&path, 0).await?;
    let (OpenFile { entry, bytes }, held) = if let Some(on_disk) = on_disk {
        (on_disk, None)
    } else {
        // It is in memory as a whole until it was sent.
        let open = match toolrest_ops::open(&cx, &path).await {
            Ok(open) => open,
            Err(error) => return Err(cx.with_near_names(error).await.into()),
        };
        let size = usize::try_from(open.entry.size).unwrap_or(0);
        (open, Some(app.budget.reserve(&of_user(at.caller.user), size).await?))
    };
    let size = u64::try_from(entry.size).unwrap_or(0);
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    let (status, part) = match range.map_or(Asked::Everything, |range| Asked::by(range, size)) {
        Asked::Everything => (StatusCode::OK, Part { first: 0, count: size }),
        Asked::For(part) => (StatusCode::PARTIAL_CONTENT, part),
        Asked::PastTheEnd => {
            let all = [(header::CONTENT_RANGE, format!("bytes */{size}"))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, all).into_response());
        }
    };
    let mut response = Response::new(Body::from_stream(pieces(bytes, part, held)));
    *response.status_mut() = status;
    let said = response.headers_mut();
    // Never shown by a browser as a page of this server: a file may hold anything.
    said.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    said.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    said.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    said.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    said.insert(header::CONTENT_LENGTH, HeaderValue::from(part.count));
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {}-{}/{size}", part.first, part.first + part.count - 1);
        said.insert(header::CONTENT_RANGE, HeaderValue::try_from(range).map_err(ToolError::internal)?);
    }
    Ok(response)
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    first: u64,
    count: u64,
}

/// How much of a file a caller wants.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Everything,
    For(Part),
    PastTheEnd,
}

impl Asked {
    /// Reads a range. One of a form that is not known counts as none, as HTTP has it.
    fn by(range: &str, size: u64) -> Self {
        let Some((first, last)) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
            return Self::Everything;
        };
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let (first, end) = match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => (first, last.saturating_add(1).min(size)),
            (Some(first), None) if last.trim().is_empty() => (first, size),
            (None, Some(count)) if first.trim().is_empty() => (size.saturating_sub(count), size),
            _ => return Self::Everything,
        };
        if first < end { Self::For(Part { first, count: end - first }) } else { Self::PastTheEnd }
    }
}

/// The bytes of a part, piece by piece. Each is read when the one before was sent, so that memory stays small.
fn pieces(mut bytes: Box<dyn ReadSeek>, part: Part, held: Option<Held>) -> impl Stream<Item = std::io::Result<Bytes>> {
    let sought = bytes.seek(SeekFrom::Start(part.first)).map(drop);
    stream::try_unfold((bytes, part.count, Some(sought), held), |(mut bytes, left, sought, held)| async move {
        sought.unwrap_or(Ok(()))?;
        if left == 0 {
            return Ok(None);
        }
        let read = move || {
            let mut piece = Vec::new();
            let count = bytes.by_ref().take(left.min(PIECE_BYTES)).read_to_end(&mut piece)?;
            Ok::<_, std::io::Error>((piece, count as u64, bytes))
        };
        let (piece, count, bytes) = tokio::task::spawn_blocking(read).await??;
        if count == 0 {
            return Err(std::io::Error::other("the file became shorter while it was sent"));
        }
        Ok(Some((Bytes::from(piece), (bytes, left - count, None, held))))
    })
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
