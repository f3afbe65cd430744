//! Chats as text.

/// Writes a chat as text for reading and searching: its title, then each message after its role.
pub fn chat_text<'a>(title: Option<&str>, messages: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = title.map_or(String::new(), |title| format!("{title}\n"));
    for (role, content) in messages {
        for part in ["\n", role, ": ", content, "\n"] {
            text.push_str(part);
        }
    }
    text
}
