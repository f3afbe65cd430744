use super::*;

fn root(files: &[&str]) -> Node {
    let mut root = Node::default();
    for file in files {
        root.add(file, 10);
    }
    root
}

fn written(mut root: Node, bytes: usize) -> String {
    root.open(bytes);
    let mut text = String::new();
    root.write(&mut text, 0);
    text
}

#[test]
fn small_folders_are_opened_first() {
    let mut files = vec!["a.txt".to_owned(), "small/one".to_owned(), "small/deep/two".to_owned()];
    files.extend((0..50).map(|n| format!("large/{n}")));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    assert_eq!(written(root(&files), 60), "a.txt 10\nlarge/ 50 files\nsmall/\n deep/\n  two 10\n one 10");
    assert_eq!(written(root(&files), 0), "a.txt 10\nlarge/ 50 files\nsmall/ 2 files");
}

#[test]
fn counts_stand_for_names_that_do_not_fit() {
    let mut text = String::new();
    root(&["a.rs", "b.rs", "Makefile", "src/x"]).write_counts(&mut text);
    assert_eq!(text, "src/ 1 file\n(no extension) 1 file\n*.rs 2 files");
}
