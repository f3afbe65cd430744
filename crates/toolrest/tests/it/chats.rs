//! Chats: virtual files that only their own API changes.

use serde_json::{Value, json};
use toolrest_testkit::Workspace;

use crate::on::{On, list_at, text_at};

on_both_databases![
    a_chat_appears_as_a_virtual_file,
    a_chat_keeps_its_messages_in_order,
    a_chat_is_read_as_a_file_with_its_messages,
    no_tool_changes_a_chat,
    two_chats_of_one_title_are_two_files,
    concurrent_messages_are_all_kept,
    a_message_that_lacks_something_is_refused,
    an_unknown_chat_is_not_found,
    a_full_chat_refuses_messages,
];

async fn new_chat(workspace: &Workspace, title: &str) -> Value {
    let reply = workspace.post("/chats", &json!({"title": title})).await;
    reply.success()["chat"].take()
}

async fn say(workspace: &Workspace, chat: &Value, role: &str, content: &str) -> Value {
    let path = format!("/chats/{}/messages", text_at(chat, "/id"));
    let body = json!({"role": role, "content": content});
    workspace.post(&path, &body).await.success()["message"].take()
}

async fn a_chat_appears_as_a_virtual_file(on: On) {
    let workspace = on.workspace().await;
    let chat = new_chat(&workspace, "Plans for 50%").await;
    assert_eq!(chat["title"], "Plans for 50%");
    assert_eq!(chat["messages"], json!([]));
    let path = text_at(&chat, "/path");
    assert!(path.starts_with("/chats/"), "{path}");
    assert_eq!(path.rsplit('.').next(), Some("chat"), "{path}");
    let listing = workspace.ok("ls", json!({"path": "/chats"})).await;
    let entry = &list_at(&listing, "/entries")[0];
    assert_eq!(entry["path"], path);
    assert_eq!(entry["file_type"], "Chat");
    assert_eq!(entry["is_virtual"], true);
    let below = workspace.paths_below("/").await;
    assert_eq!(below, ["/chats", path]);
}

async fn a_chat_keeps_its_messages_in_order(on: On) {
    let workspace = on.workspace().await;
    let chat = new_chat(&workspace, "Talk").await;
    let said = [("user", "Hello"), ("assistant", "How may I help?"), ("user", "Ünïcode ✓\r\nand a second line")];
    for (role, content) in said {
        let message = say(&workspace, &chat, role, content).await;
        assert_eq!(message["role"], role);
        assert_eq!(message["content"], content);
        assert!(message["id"].is_string(), "{message}");
    }
    let path = format!("/chats/{}", text_at(&chat, "/id"));
    let read = workspace.get(&path).await.success();
    let kept: Vec<_> = list_at(&read, "/chat/messages")
        .iter()
        .map(|message| (text_at(message, "/role"), text_at(message, "/content")))
        .collect();
    assert_eq!(kept, said);
}

async fn a_chat_is_read_as_a_file_with_its_messages(on: On) {
    let workspace = on.workspace().await;
    let chat = new_chat(&workspace, "Talk").await;
    let before = workspace.read(text_at(&chat, "/path")).await;
    say(&workspace, &chat, "user", "a word to be found").await;
    let after = workspace.read(text_at(&chat, "/path")).await;
    assert!(after["content"].is_object(), "{after}");
    let content = after["content"].to_string();
    assert!(content.contains("a word to be found"), "{after}");
    assert_ne!(before["hash"], after["hash"]);
}

async fn no_tool_changes_a_chat(on: On) {
    let workspace = on.workspace().await;
    let chat = new_chat(&workspace, "Talk").await;
    say(&workspace, &chat, "user", "Hello").await;
    let path = text_at(&chat, "/path");
    workspace.write("/a.txt", "text").await;
    let edit = json!({"path": path, "old_string": "Hello", "new_string": "Bye"});
    for (tool, args) in [
        ("write", json!({"path": path, "content": "x"})),
        ("write", json!({"path": path, "content": {}, "file_type": "chat"})),
        ("edit", edit.clone()),
        ("edit-many", edit),
        ("mv", json!({"source": path, "destination": "/mine.chat"})),
        ("rm", json!({"path": path})),
    ] {
        workspace.refused(400, "VALIDATION_ERROR", tool, args).await;
    }
    let onto = json!({"source": "/a.txt", "destination": path});
    let reply = workspace.call("mv", &onto).await;
    assert!([400, 409].contains(&reply.status), "{reply}");
    let read = workspace.get(&format!("/chats/{}", text_at(&chat, "/id"))).await.success();
    assert_eq!(read["chat"]["messages"][0]["content"], "Hello");
    assert_eq!(workspace.paths_in("/chats").await, [path]);
}

async fn two_chats_of_one_title_are_two_files(on: On) {
    let workspace = on.workspace().await;
    let one = new_chat(&workspace, "Talk").await;
    let other = new_chat(&workspace, "Talk").await;
    assert_ne!(one["id"], other["id"]);
    assert_ne!(one["path"], other["path"]);
    assert_eq!(workspace.paths_in("/chats").await.len(), 2);
    // A title is words, not a path.
    let odd = new_chat(&workspace, "../../etc/passwd").await;
    let path = text_at(&odd, "/path");
    assert!(path.starts_with("/chats/"), "{path}");
    assert!(!path["/chats/".len()..].contains('/'), "{path}");
}

async fn concurrent_messages_are_all_kept(on: On) {
    let workspace = on.workspace().await;
    let chat = new_chat(&workspace, "Talk").await;
    let saying: Vec<_> = (0..40)
        .map(|n| {
            let (workspace, chat) = (workspace.clone(), chat.clone());
            tokio::spawn(async move { say(&workspace, &chat, "user", &format!("{n:02}")).await })
        })
        .collect();
    for message in saying {
        message.await.unwrap();
    }
    let path = format!("/chats/{}", text_at(&chat, "/id"));
    let read = workspace.get(&path).await.success();
    let mut kept: Vec<_> =
        list_at(&read, "/chat/messages").iter().map(|message| text_at(message, "/content").to_owned()).collect();
    kept.sort();
    let expected: Vec<_> = (0..40).map(|n| format!("{n:02}")).collect();
    assert_eq!(kept, expected);
}

async fn a_message_that_lacks_something_is_refused(on: On) {
    let workspace = on.workspace().await;
    let chat = new_chat(&workspace, "Talk").await;
    let path = format!("/chats/{}/messages", text_at(&chat, "/id"));
    for body in [
        json!({}),
        json!({"role": "user"}),
        json!({"content": "x"}),
        json!({"role": "user", "content": "a\0b"}),
        json!({"role": "user", "content": 5}),
    ] {
        workspace.post(&path, &body).await.refused(400, "VALIDATION_ERROR");
    }
    workspace.post("/chats", &json!({})).await.refused(400, "VALIDATION_ERROR");
}

async fn an_unknown_chat_is_not_found(on: On) {
    let workspace = on.workspace().await;
    let path = "/chats/019b97ac-e5f5-735b-b0a6-f3a34fcd4ff1";
    workspace.get(path).await.refused(404, "NOT_FOUND");
    let message = json!({"role": "user", "content": "x"});
    workspace.post(&format!("{path}/messages"), &message).await.refused(404, "NOT_FOUND");
    // A file is no chat, whatever its id.
    let file = workspace.write("/a.txt", "text").await;
    let path = format!("/chats/{}", text_at(&file, "/file_id"));
    workspace.get(&path).await.refused(404, "NOT_FOUND");
}

async fn a_full_chat_refuses_messages(on: On) {
    let workspace = on.workspace().await;
    let chat = new_chat(&workspace, "Full").await;
    let (large, path) = ("x".repeat(9 << 20), format!("/chats/{}/messages", text_at(&chat, "/id")));
    say(&workspace, &chat, "user", &large).await;
    let more = workspace.post(&path, &json!({"role": "user", "content": large})).await;
    more.refused(413, "PAYLOAD_TOO_LARGE");
    say(&workspace, &chat, "user", "a short one still fits").await;
    let shown = workspace.get(&format!("/chats/{}", text_at(&chat, "/id"))).await.success();
    assert_eq!(list_at(&shown, "/chat/messages").len(), 2);
}
