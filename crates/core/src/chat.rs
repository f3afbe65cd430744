//! Chats as text.

/// A chat as a text that people read and that can be searched: its title, then each message after its speaker.
pub fn chat_text<'a>(title: Option<&str>, messages: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = title.map_or(String::new(), |title| format!("{title}\n"));
    for (role, content) in messages {
        for part in ["\n", role, ": ", content, "\n"] {
            text.push_str(part);
        }
    }
    text
}
