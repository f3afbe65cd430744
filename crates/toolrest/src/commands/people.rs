//! The names of persons and keys, for tables.

use super::target::Client;
use serde_json::Value;
use std::collections::HashMap;

/// The names of the members and keys of a workspace, as far as the caller may see them.
#[derive(Default)]
pub(super) struct People(HashMap<String, String>);

impl People {
    /// Reads the names. Agent keys may see neither; then ids are shown.
    pub(super) async fn of(client: &Client, workspace: &str) -> Self {
        let mut names = HashMap::new();
        for (list, id, name) in [("members", "user_id", "email"), ("keys", "id", "name")] {
            let Ok(answer) = client.get(&format!("{workspace}/{list}")).await else { continue };
            for one in answer[list].as_array().into_iter().flatten() {
                if let (Some(id), Some(name)) = (one[id].as_str(), one[name].as_str()) {
                    names.insert(id.to_owned(), name.to_owned());
                }
            }
        }
        Self(names)
    }

    fn name(&self, id: &str) -> String {
        self.0.get(id).cloned().unwrap_or_else(|| id.to_owned())
    }

    /// Returns the name of the person of an id.
    pub(super) fn name_of(&self, id: &Value) -> String {
        self.name(id.as_str().unwrap_or_default())
    }

    /// Returns who made a call, from its `key_id` and `user_id`.
    pub(super) fn name_of_caller(&self, call: &Value) -> String {
        match call["key_id"].as_str() {
            Some(key) => format!("key {}", self.name(key)),
            None => self.name_of(&call["user_id"]),
        }
    }
}
