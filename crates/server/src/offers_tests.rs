use super::*;

fn ask(action: Action, subject: &str, grant: &str) -> Ask {
    let (subject, grant) = (subject.to_owned(), Some(grant.to_owned()));
    Ask { action, subject, rule: None, because: String::new(), grant, approvers: Vec::new() }
}

fn offered(asks: &[Ask]) -> Vec<String> {
    Offer::all(asks).iter().map(ToString::to_string).collect()
}

#[test]
fn the_narrowest_permission_comes_first() {
    let write = |path: &str| ask(Action::Write, path, path.trim_start_matches('/'));
    assert_eq!(offered(&[write("/docs/a.md")]), ["write(docs/a.md)", "write(docs/**)", "write(**)"]);
    assert_eq!(offered(&[write("/a.md")]), ["write(a.md)", "write(**)"]);
    let two = [write("/docs/en/a.md"), write("/docs/de/b.md")];
    assert_eq!(offered(&two), ["write(docs/en/a.md), write(docs/de/b.md)", "write(docs/**)", "write(**)"]);
    let apart = [write("/docs/a.md"), write("/docsets/b.md")];
    assert_eq!(offered(&apart), ["write(docs/a.md), write(docsets/b.md)", "write(**)"]);
    let mixed = [write("/docs/a.md"), ask(Action::Delete, "/old.md", "old.md")];
    assert_eq!(offered(&mixed), ["write(docs/a.md), delete(old.md)", "delete(**), write(**)"]);
    // The first edit of a session asks for all of them.
    assert_eq!(offered(&[ask(Action::Write, "/docs/a.md", "**")]), ["write(**)"]);
}

#[test]
fn commands_are_offered_with_one_word_at_least() {
    let exec = |command: &str, grant: &str| ask(Action::Exec, command, grant);
    assert_eq!(offered(&[exec("git push origin", "git push")]), ["exec(git push)", "exec(git)"]);
    let two = [exec("cargo build", "cargo build"), exec("npm test", "npm test")];
    assert_eq!(offered(&two), ["exec(cargo build), exec(npm test)"]);
}

#[test]
fn what_no_grant_covers_is_not_offered() {
    let unknown = Ask { grant: None, ..ask(Action::Exec, "$(cat x)", "") };
    assert_eq!(offered(std::slice::from_ref(&unknown)), Vec::<String>::new());
    assert!(Offer::choose(&[unknown], None).is_err());
    assert!(Offer::choose(&[ask(Action::Write, "/a", "a")], Some("write(b)")).is_err());
    assert_eq!(Offer::choose(&[ask(Action::Write, "/a", "a")], Some("write(**)")).unwrap().to_string(), "write(**)");
}
