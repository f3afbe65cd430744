//! Downloads of files, whole or in part, streamed from where they are stored.

use super::App;
use super::budget::{Held, of_user};
use super::reply::Answer;
use super::request::WorkspaceRequest;
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

/// Size of the pieces that are read and sent.
const PIECE_BYTES: u64 = 256 << 10;

pub(crate) async fn download(State(app): State<Arc<App>>, target: WorkspaceRequest, headers: HeaderMap) -> Answer {
    let path = target.file_path(&app).await?;
    let _slot = app.engine.enter(target.workspace, target.caller).await?;
    let cx = app.engine.rest_context("content", target.workspace, target.caller, Role::Viewer).await?;
    let on_disk = cx.workspace.open(&path, 0).await?;
    let (OpenFile { entry, bytes }, held) = if let Some(on_disk) = on_disk {
        (on_disk, None)
    } else {
        // The whole content stays in memory until it has been sent, so its size is reserved.
        let open = match toolrest_ops::open(&cx, &path).await {
            Ok(open) => open,
            Err(error) => return Err(cx.with_similar_names(error).await.into()),
        };
        let size = usize::try_from(open.entry.size).unwrap_or(0);
        (open, Some(app.budget.reserve(&of_user(target.caller.user), size).await?))
    };
    let size = u64::try_from(entry.size).unwrap_or(0);
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    let (status, part) = match range.map_or(RequestedRange::WholeFile, |range| RequestedRange::parse(range, size)) {
        RequestedRange::WholeFile => (StatusCode::OK, Part { first: 0, count: size }),
        RequestedRange::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        RequestedRange::PastTheEnd => {
            let all = [(header::CONTENT_RANGE, format!("bytes */{size}"))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, all).into_response());
        }
    };
    let mut response = Response::new(Body::from_stream(pieces(bytes, part, held)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    // A browser must not show a file as a page of this server, because a file may contain scripts.
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(part.count));
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {}-{}/{size}", part.first, part.first + part.count - 1);
        headers.insert(header::CONTENT_RANGE, HeaderValue::try_from(range).map_err(ToolError::internal)?);
    }
    Ok(response)
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    first: u64,
    count: u64,
}

/// The part of a file that a `Range` header requests.
#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    WholeFile,
    Part(Part),
    PastTheEnd,
}

impl RequestedRange {
    /// Parses a range. HTTP requires that a range of an unknown form is ignored.
    fn parse(range: &str, size: u64) -> Self {
        let Some((first, last)) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
            return Self::WholeFile;
        };
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let (first, end) = match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => (first, last.saturating_add(1).min(size)),
            (Some(first), None) if last.trim().is_empty() => (first, size),
            (None, Some(count)) if first.trim().is_empty() => (size.saturating_sub(count), size),
            _ => return Self::WholeFile,
        };
        if first < end { Self::Part(Part { first, count: end - first }) } else { Self::PastTheEnd }
    }
}

/// Streams the bytes of a part. Each piece is read when the one before it was sent, so memory use stays small.
fn pieces(mut bytes: Box<dyn ReadSeek>, part: Part, held: Option<Held>) -> impl Stream<Item = std::io::Result<Bytes>> {
    // A failed seek is returned as the first item of the stream.
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
