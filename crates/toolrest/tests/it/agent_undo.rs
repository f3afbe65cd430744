//! The toolset `agent`: showing and undoing changes.

use serde_json::{Value, json};
use toolrest_testkit::{Account, Reply, Request, Workspace, unique_email};

use crate::agent::projects;
use crate::agent::{hash, refused, text, text_of};
use crate::agent_edits::commit_of;
use crate::on::{On, text_at};

on_every_backend![
    a_commit_is_undone_by_its_short_name,
    without_a_commit_nothing_is_undone_and_the_last_are_listed,
    a_patch_is_undone_with_every_name_and_byte,
    changes_of_others_in_the_way_are_named,
    changes_of_others_in_other_lines_stay,
    a_session_is_shown_and_undone_as_a_whole,
    some_files_of_a_commit_are_undone,
    changes_are_listed_and_shown,
    commits_that_are_not_there_are_explained,
];

on!(of_long_diffs, Sqlite: a_long_diff_is_kept);

/// Calls a tool in a session.
async fn in_session(workspace: &Workspace, session: &str, tool: &str, args: &Value) -> Reply {
    let path = format!("/api/v1/workspaces/{}/toolsets/agent", workspace.id);
    let account = &workspace.account;
    let request = Request::new("POST", &path).bearer(&account.access_token).header("X-Toolrest-Session", session);
    account.client.send(request.json(&json!({ "tool": tool, "args": args }))).await
}

async fn edit(workspace: &Workspace, path: &str, old: &str, new: &str) -> String {
    commit_of(&text(workspace, "edit", json!({"path": path, "old": old, "new": new})).await)
}

async fn a_commit_is_undone_by_its_short_name(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\ntwo\n").await;
    let before = hash(&workspace, "/a.txt").await;
    let commit = edit(&workspace, "a.txt", "two", "2").await;
    let undone = text(&workspace, "undo", json!({"commit": commit})).await;
    let by = undone.split("commit ").nth(1).unwrap()[..8].to_owned();
    assert_eq!(undone, format!("== undid {commit} (edit), commit {by}\nM a.txt #{before}"));
    assert_eq!(workspace.text("/a.txt").await, "one\ntwo\n");
    let again = refused(&workspace, "conflict", "undo", json!({"commit": commit})).await;
    assert_eq!(
        again,
        format!(
            "error conflict: {commit} was undone already, by {by}\nnext: undo {{\"commit\":\"{by}\"}} brings it back"
        )
    );
    text(&workspace, "undo", json!({"commit": by})).await;
    assert_eq!(workspace.text("/a.txt").await, "one\n2\n");
}

async fn without_a_commit_nothing_is_undone_and_the_last_are_listed(on: On) {
    let workspace = on.workspace().await;
    assert!(text(&workspace, "undo", json!({})).await.starts_with("== this session has no commits"));
    text(&workspace, "write", json!({"path": "a.txt", "content": "0\n"})).await;
    let mut commits = Vec::new();
    for number in 0..6 {
        commits.push(edit(&workspace, "a.txt", &number.to_string(), &(number + 1).to_string()).await);
    }
    let listed = text(&workspace, "undo", json!({})).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines[0], "== nothing undone: name a commit. The last of 7 commits of this session");
    let named: Vec<&str> = lines[1..].iter().map(|line| &line[..8]).collect();
    let expected: Vec<&String> = commits.iter().rev().take(5).collect();
    assert_eq!(named, expected, "{listed}");
    assert!(lines[1].ends_with(", edit: M a.txt"), "{listed}");
    assert_eq!(workspace.text("/a.txt").await, "6\n");
    let both = json!({"commit": commits[0], "since": "start"});
    refused(&workspace, "bad_args", "undo", both).await;
}

async fn a_patch_is_undone_with_every_name_and_byte(on: On) {
    let workspace = on.workspace().await;
    for (path, content) in [("/lib/a.js", "one\r\ntwo\n"), ("/lib/c.js", "three"), ("/lib/e.js", "four\n")] {
        workspace.write(path, content).await;
    }
    let before = workspace.paths_below("/").await;
    let patch = "*** Begin Patch\n*** Update File: lib/a.js\n@@\n-two\n+2\n*** Add File: lib/b.js\n+new\n\
                 *** Update File: lib/c.js\n*** Move to: lib/d.js\n@@\n-three\n+3\n*** Delete File: lib/e.js\n*** End Patch\n";
    let commit = commit_of(&text(&workspace, "apply_patch", json!({"patch": patch})).await);
    let undone = text(&workspace, "undo", json!({"commit": commit})).await;
    for line in ["D lib/b.js", "R lib/d.js -> lib/c.js", "A lib/e.js"] {
        assert!(undone.lines().any(|shown| shown.starts_with(line)), "{line}: {undone}");
    }
    assert_eq!(workspace.paths_below("/").await, before);
    for (path, content) in [("/lib/a.js", "one\r\ntwo\n"), ("/lib/c.js", "three"), ("/lib/e.js", "four\n")] {
        assert_eq!(workspace.text(path).await, content);
    }
}

async fn changes_of_others_in_the_way_are_named(on: On) {
    let workspace = on.workspace().await;
    let email = unique_email("ada");
    let ada = Account::register(&on.shared().client(), &email).await;
    workspace.add_member(&ada, "editor").await;
    projects::write(&workspace, &projects::c_library()).await;
    let edits = json!([
        {"path": "jsmn.h:262", "old": "return JSMN_ERROR_PART;", "new": "return JSMN_ERROR_INVAL;"},
        {"path": "README.md", "old": "A parser.", "new": "A small parser."},
    ]);
    let commit = commit_of(&text(&workspace, "edit", json!({ "edits": edits })).await);
    let theirs = workspace.for_user(&ada);
    let args = json!({"path": "jsmn.h:262", "old": "return JSMN_ERROR_INVAL;", "new": "return -1;"});
    let other = commit_of(&text(&theirs, "edit", args).await);
    let error = refused(&workspace, "conflict", "undo", json!({"commit": commit})).await;
    let expected = format!("error conflict: jsmn.h was changed after {commit} by {other} ({email}, ");
    assert!(error.starts_with(&expected), "{error}");
    assert!(error.contains("\n262\t  return -1;\n"), "{error}");
    let next = format!("\nnext: undo {{\"commit\":\"{commit}\",\"paths\":[\"README.md\"]}}, or edit \"jsmn.h:262\"");
    assert!(error.ends_with(&next), "{error}");
    let since = refused(&workspace, "conflict", "undo", json!({"since": "start"})).await;
    assert!(since.contains(&other), "{since}");
    assert!(workspace.text("/README.md").await.contains("A small parser."));
    text(&workspace, "undo", json!({"commit": commit, "paths": "README.md"})).await;
    assert!(workspace.text("/README.md").await.contains("A parser."));
    assert!(workspace.text("/jsmn.h").await.contains("return -1;"));
}

async fn changes_of_others_in_other_lines_stay(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "1\n2\n3\n4\n5\n").await;
    let first = edit(&workspace, "a.txt", "2", "two").await;
    workspace.ok("edit", json!({"path": "/a.txt", "old_string": "4", "new_string": "four"})).await;
    let last = edit(&workspace, "a.txt", "5", "five").await;
    let undone = text(&workspace, "undo", json!({"commit": first})).await;
    assert!(undone.ends_with("\n.. a.txt had changed since in other lines, which stay"), "{undone}");
    assert_eq!(workspace.text("/a.txt").await, "1\n2\n3\nfour\nfive\n");
    text(&workspace, "undo", json!({"commit": commit_of(undone.split_once(", ").unwrap().1)})).await;
    assert_eq!(workspace.text("/a.txt").await, "1\ntwo\n3\nfour\nfive\n");
    // The line before it is changed by somebody else, so the regions touch.
    workspace.ok("edit", json!({"path": "/a.txt", "old_string": "four", "new_string": "vier"})).await;
    let touching = refused(&workspace, "conflict", "undo", json!({"commit": last})).await;
    assert!(touching.contains("a.txt was changed after"), "{touching}");
}

async fn a_session_is_shown_and_undone_as_a_whole(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n").await;
    workspace.write("/old.txt", "old\n").await;
    let call = async |tool: &str, args: Value| text_of(&in_session(&workspace, "s1", tool, &args).await);
    text_of(&in_session(&workspace, "s0", "write", &json!({"path": "other.txt", "content": "x\n"})).await);
    call("edit", json!({"path": "a.txt", "old": "1", "new": "one"})).await;
    workspace.ok("edit", json!({"path": "/a.txt", "old_string": "5", "new_string": "five"})).await;
    let middle = commit_of(&call("edit", json!({"path": "a.txt", "old": "9", "new": "nine"})).await);
    call("write", json!({"path": "d/new.txt", "content": "new\n"})).await;
    call("apply_patch", json!({"patch": "*** Begin Patch\n*** Delete File: old.txt\n*** End Patch\n"})).await;
    let shown = call("changes", json!({"since": "start"})).await;
    assert!(shown.starts_with("== 3 files changed since start, by 4 commits of this session\n"), "{shown}");
    for line in ["-1", "+one", "+five", "-9", "+nine", "+new", "-old"] {
        assert!(shown.lines().any(|found| found == line), "{line}: {shown}");
    }
    assert!(shown.contains("\n.. others changed these files too: ") && !shown.contains("other.txt"), "{shown}");
    let later = call("changes", json!({"since": middle, "path": "d"})).await;
    assert!(later.starts_with(&format!("== 1 file changed since {middle}, ")) && later.contains("+new"), "{later}");
    let undone = call("undo", json!({"since": "start"})).await;
    assert!(undone.starts_with("== undid 4 commits of this session, commit "), "{undone}");
    assert_eq!(workspace.text("/a.txt").await, "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
    assert_eq!(workspace.text("/old.txt").await, "old\n");
    let paths = workspace.paths_below("/").await;
    assert!(!paths.contains(&"/d/new.txt".to_owned()) && paths.contains(&"/other.txt".to_owned()), "{paths:?}");
    let again = call("undo", json!({"since": "start"})).await;
    assert!(again.starts_with("== nothing to undo"), "{again}");
    let unknown = in_session(&workspace, "s2", "undo", &json!({"since": "start"})).await;
    assert_eq!(text_of(&unknown), "== nothing to undo: this session changed nothing since start");
    let nothing = in_session(&workspace, "s2", "changes", &json!({"since": "start"})).await;
    assert_eq!(text_of(&nothing), "== no changes since start");
}

async fn some_files_of_a_commit_are_undone(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/d/a.txt", "one\n").await;
    workspace.write("/b.txt", "one\n").await;
    let edits = json!([{"path": "d/a.txt", "old": "one", "new": "1"}, {"path": "b.txt", "old": "one", "new": "1"}]);
    let commit = commit_of(&text(&workspace, "edit", json!({ "edits": edits })).await);
    let undone = text(&workspace, "undo", json!({"commit": commit, "paths": ["d"]})).await;
    assert!(undone.contains("\nM d/a.txt #") && !undone.contains("b.txt"), "{undone}");
    assert_eq!((workspace.text("/d/a.txt").await, workspace.text("/b.txt").await), ("one\n".into(), "1\n".into()));
    let none = refused(&workspace, "conflict", "undo", json!({"commit": commit, "paths": ["c.txt"]})).await;
    assert!(none.contains("changed nothing to undo"), "{none}");
}

async fn changes_are_listed_and_shown(on: On) {
    let workspace = on.workspace().await;
    assert_eq!(text(&workspace, "changes", json!({})).await, "== no commits");
    workspace.write("/a.txt", "one\n").await;
    let commit = edit(&workspace, "a.txt", "one", "two").await;
    text(&workspace, "write", json!({"path": "b/c.txt", "content": "new\n"})).await;
    let listed = text(&workspace, "changes", json!({})).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines[0], "== 3 commits, newest first");
    assert!(lines[1].ends_with(" s ago, write: A b, A b/c.txt"), "{listed}");
    assert!(lines[2].starts_with(&commit) && lines[2].ends_with(" s ago, edit: M a.txt"), "{listed}");
    let of_path = text(&workspace, "changes", json!({"path": "a.txt"})).await;
    assert!(of_path.starts_with("== 2 commits of a.txt, newest first\n"), "{of_path}");
    let shown = text(&workspace, "changes", json!({"commit": commit})).await;
    let expected = ": M a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two";
    assert!(shown.starts_with(&format!("== {commit} edit, ")), "{shown}");
    assert_eq!(&shown[shown.find(": M").unwrap()..], expected.replace("-1,1 +1,1", "-1 +1"), "{shown}");
    let undo = commit_of(text(&workspace, "undo", json!({"commit": commit})).await.split_once(", ").unwrap().1);
    let listed = text(&workspace, "changes", json!({})).await;
    assert!(listed.contains(&format!("edit: M a.txt (undone by {undo})")), "{listed}");
    assert!(
        listed.contains(&format!("{undo} ")) && listed.contains(&format!("undo of {commit} (edit): M a.txt")),
        "{listed}"
    );
}

async fn commits_that_are_not_there_are_explained(on: On) {
    let workspace = on.workspace().await;
    for tool in ["undo", "changes"] {
        let missing = refused(&workspace, "not_found", tool, json!({"commit": "12345678"})).await;
        assert_eq!(missing, "error not_found: commit 12345678\nnext: changes {} lists the last commits");
        let wrong = refused(&workspace, "bad_args", tool, json!({"commit": "HEAD"})).await;
        assert!(wrong.contains("'HEAD' is no commit"), "{wrong}");
    }
    workspace.write("/a.txt", "one\n").await;
    let commits = workspace.get("/commits").await.success();
    let whole = text_at(&commits, "/commits/0/id");
    let shown = text(&workspace, "changes", json!({ "commit": whole })).await;
    assert!(shown.contains("A a.txt") && shown.contains("+one"), "{shown}");
}

async fn a_long_diff_is_kept(on: On) {
    let workspace = on.workspace().await;
    let lines: Vec<String> = (0..3_000).map(|line| format!("line number {line}\n")).collect();
    let content = lines.concat();
    let commit = commit_of(&text(&workspace, "write", json!({"path": "a.txt", "content": content})).await);
    let shown = text(&workspace, "changes", json!({"commit": commit})).await;
    assert!(shown.len() <= 12_288, "{}", shown.len());
    let last = shown.lines().last().unwrap();
    let rest = last.split('"').nth(1).unwrap();
    let number = shown.lines().rev().nth(1).unwrap().rsplit(' ').next().unwrap().parse::<usize>().unwrap();
    let read = text(&workspace, "read", json!({"paths": [rest]})).await;
    assert!(read.contains(&format!("\t+line number {}\n", number + 1)), "{last} {number} {read}");
}
