//! Reads a stream of server-sent events.

use super::super::failure::{Failure, Outcome};
use super::super::http_client::AnswerBody;
use http_body_util::BodyExt;

/// Maximum size of one event. The server's are far smaller.
const MAX_BYTES: usize = 4 << 20;

/// The events of a stream.
pub(super) struct Events {
    body: AnswerBody,
    unread: Vec<u8>,
}

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: String,
    pub(super) id: Option<String>,
}

impl Events {
    pub(super) fn new(body: AnswerBody) -> Self {
        Self { body, unread: Vec::new() }
    }

    /// Waits for the next event; none at the end of the stream.
    pub(super) async fn next(&mut self) -> Outcome<Option<Event>> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.unread.drain(..end + 2).collect();
                match parse(&String::from_utf8_lossy(&block)) {
                    Some(event) => return Ok(Some(event)),
                    // A comment, which keeps the connection open.
                    None => continue,
                }
            }
            if self.unread.len() > MAX_BYTES {
                return Err(Failure::Failed("the server sent an event that is too long".to_owned()));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let Ok(frame) = frame else { return Ok(None) };
            self.unread.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        }
    }
}

fn parse(block: &str) -> Option<Event> {
    let mut event = Event::default();
    for line in block.lines() {
        match line.split_once(':') {
            Some(("event", value)) => value.trim_start().clone_into(&mut event.kind),
            Some(("id", value)) => event.id = Some(value.trim_start().to_owned()),
            _ => {}
        }
    }
    (!event.kind.is_empty()).then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_comments_are_skipped() {
        let event = parse("event: approval\nid: s1\ndata: {}\n\n").unwrap();
        assert_eq!(event, Event { kind: "approval".to_owned(), id: Some("s1".to_owned()) });
        assert_eq!(parse(":\n\n"), None);
    }
}
