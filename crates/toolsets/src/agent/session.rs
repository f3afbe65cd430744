//! What is known about a caller's session: repeated calls, and the commits that the tools made.

use super::Kit;
use super::answer::{Answer, push};
use serde::Serialize;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use toolrest_core::{CallCx, CommitId, Notice, Role, SessionCommit, UserId, WorkspaceId};

/// Maximum number of sessions whose last call is remembered.
const MAX_SESSIONS: usize = 4_096;
/// The same call with the same answer is noted from this time on.
const NOTED_FROM: u32 = 3;
/// Maximum length of the words for a commit.
const MAX_LABEL_CHARS: usize = 120;

/// The last call of each session, to notice a model that repeats itself.
#[derive(Default)]
pub(super) struct Repetitions(Mutex<HashMap<(WorkspaceId, UserId, String), LastCall>>);

struct LastCall {
    call: u64,
    answer: u64,
    times: u32,
}

impl Repetitions {
    /// Returns how many times in a row this call of the session had this answer.
    fn count(&self, cx: &CallCx, answer: &str) -> u32 {
        let key = (cx.workspace_id, cx.caller.member(), cx.session.to_string());
        let (call, answer) = (hash(&(cx.tool, cx.details().args)), hash(&answer));
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(&key) {
            // A forgotten count only begins anew.
            sessions.clear();
        }
        let last = sessions.entry(key).or_insert(LastCall { call, answer, times: 0 });
        if (last.call, last.answer) != (call, answer) {
            *last = LastCall { call, answer, times: 0 };
        }
        last.times += 1;
        last.times
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Kit {
    /// Completes an answer: adds the warnings of the call and the notes for the session, and says if the model repeats itself.
    pub(super) fn finish<D: Serialize>(&self, cx: &CallCx, mut answer: Answer<D>) -> Answer<D> {
        for Notice { text, .. } in cx.take_warnings() {
            push(&mut answer.text, format!(".. {text}"));
        }
        for note in self.jobs.take_notes(cx) {
            push(&mut answer.text, format!(".. {note}"));
        }
        let times = self.repeats.count(cx, &answer.text);
        if times >= NOTED_FROM {
            let times = if times == NOTED_FROM { "third time".to_owned() } else { format!("{times} times") };
            let note = format!(".. same call, same answer, {times}: change the arguments or do something else");
            push(&mut answer.text, note);
        }
        answer
    }

    /// Notes that a commit belongs to the caller's session. A failure is logged: the change is made already.
    pub(super) async fn note_commit(&self, cx: &CallCx, commit: Option<CommitId>, label: &str) {
        let Some(commit) = commit else { return };
        let label = label.chars().filter(|c| !c.is_control()).take(MAX_LABEL_CHARS).collect();
        let noted = SessionCommit { commit, session: cx.session.to_string(), label };
        if let Err(error) = self.sessions.note_session_commit(cx.access(Role::Viewer), noted).await {
            error.log_cause();
        }
    }
}
