//! What `toolrest serve` prints on a terminal when calls wait for a person.

use crate::commands::terminal::one_line;
use std::{
    io::{self, IsTerminal},
    time::Duration,
};
use tokio::sync::mpsc;
use toolrest::Server;

/// Minimum time between two notices; what begins to wait in between is counted.
const INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of calls that are noted for the next notice.
const MAX_NOTED: usize = 1_000;

/// A call that began to wait.
struct Noted {
    id: String,
    workspace: String,
    tool: String,
    subject: String,
}

/// Prints a notice on standard error when calls begin to wait on a server, if that is a terminal. `target` are the
/// arguments that lead the command line to the server or the folder.
pub(crate) fn start(server: &Server, target: String) {
    if !io::stderr().is_terminal() {
        return;
    }
    let (sender, mut noted) = mpsc::channel(MAX_NOTED);
    let is_set = server.on_asked(move |approval| {
        let noted = Noted {
            id: approval.id.to_string(),
            workspace: approval.call.workspace.to_string(),
            tool: format!("{}/{}", approval.call.toolset, approval.call.tool),
            subject: approval.asks.first().map(|ask| ask.subject.clone()).unwrap_or_default(),
        };
        // What does not fit is still in `toolrest approvals`.
        let _ = sender.try_send(noted);
    });
    if !is_set {
        return;
    }
    tokio::spawn(async move {
        while let Some(first) = noted.recv().await {
            let mut others = 0;
            while noted.try_recv().is_ok() {
                others += 1;
            }
            eprintln!("{}", notice(&first, others, &target));
            tokio::time::sleep(INTERVAL).await;
        }
    });
}

fn notice(first: &Noted, others: usize, target: &str) -> String {
    let Noted { id, workspace, tool, subject } = first;
    let more = match others {
        0 => String::new(),
        1 => " 1 more call waits.".to_owned(),
        count => format!(" {count} more calls wait."),
    };
    let target =
        if target.starts_with("--dir") { target.to_owned() } else { format!("{target} --workspace {workspace}") };
    format!(
        "{} {} waits for you.{more} Decide: toolrest approvals watch {target}   (or: approve {id}, deny {id})",
        one_line(tool, 60),
        one_line(subject, 100)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_says_what_waits_and_how_to_decide() {
        let noted = Noted {
            id: "ID".to_owned(),
            workspace: "WS".to_owned(),
            tool: "system/write_file".to_owned(),
            subject: "/a\u{1b}.txt".to_owned(),
        };
        let text = notice(&noted, 2, "--server http://127.0.0.1:1");
        assert!(text.starts_with("system/write_file /a\\u{1b}.txt waits for you. 2 more calls wait."), "{text}");
        assert!(text.contains("toolrest approvals watch --server http://127.0.0.1:1 --workspace WS"), "{text}");
        assert!(notice(&noted, 0, "--dir /x").contains("watch --dir /x   (or: approve ID"));
    }
}
