//! The output of a child process, read by threads so that the child never blocks on a full pipe.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

#[derive(Default)]
struct State {
    text: String,
    open_pipes: usize,
}

/// The text read so far from one or more pipes.
#[derive(Clone, Default)]
pub struct Output {
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Output {
    /// Adds a pipe; each of its lines is stored with `prefix` in front.
    pub fn drain(&self, pipe: impl Read + Send + 'static, prefix: &'static str) {
        self.shared.0.lock().unwrap().open_pipes += 1;
        let output = self.clone();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(pipe);
            let mut line = Vec::new();
            while matches!(reader.read_until(b'\n', &mut line), Ok(read) if read > 0) {
                output.push(prefix, &String::from_utf8_lossy(&line));
                line.clear();
            }
            output.shared.0.lock().unwrap().open_pipes -= 1;
            output.shared.1.notify_all();
        });
    }

    fn push(&self, prefix: &str, line: &str) {
        let mut state = self.shared.0.lock().unwrap();
        state.text.push_str(prefix);
        state.text.push_str(line);
        self.shared.1.notify_all();
    }

    /// Waits for a line that begins with `start` and returns the rest of it; `None` if all pipes are closed, or after
    /// `limit`.
    pub fn wait_for_line(&self, start: &str, limit: Duration) -> Option<String> {
        self.wait_for(limit, |text| text.lines().find_map(|line| line.strip_prefix(start)).map(str::to_owned))
    }

    /// Waits until `find` returns something for the text so far.
    pub fn wait_for<T>(&self, limit: Duration, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + limit;
        let mut state = self.shared.0.lock().unwrap();
        loop {
            if let Some(found) = find(&state.text) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.open_pipes == 0 {
                return None;
            }
            state = self.shared.1.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits until all pipes are closed, but not longer than `limit`.
    pub fn wait_for_end(&self, limit: Duration) {
        self.wait_for::<()>(limit, |_| None);
    }

    pub fn text(&self) -> String {
        self.shared.0.lock().unwrap().text.clone()
    }
}
