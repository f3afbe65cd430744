use super::*;
use proptest::prelude::*;

fn text(name: Option<Vec<u8>>) -> Option<String> {
    name.map(|name| String::from_utf8(name).unwrap())
}

#[test]
fn timestamps_and_quotes_are_not_part_of_a_name() {
    assert_eq!(text(from_header(b"a/x y.rs\t2024-01-01 10:00", Blanks::MaybePadding)), Some("a/x y.rs".to_owned()));
    assert_eq!(text(from_header(b"\"a/caf\\303\\251\\t.txt\"", Blanks::MaybePadding)), Some("a/café\t.txt".to_owned()));
    assert_eq!(from_header(b"/dev/null", Blanks::MaybePadding), None);
    assert_eq!(from_header(b"/dev/null\t1970-01-01", Blanks::MaybePadding), None);
}

#[test]
fn prefixes_are_removed_only_in_pairs() {
    let pair = |old: &str, new: &str| {
        let (old, new) = without_prefixes(Some(old.into()), Some(new.into()));
        (text(old).unwrap(), text(new).unwrap())
    };
    assert_eq!(pair("a/x", "b/x"), ("x".into(), "x".into()));
    assert_eq!(pair("a/x", "a/x"), ("a/x".into(), "a/x".into()), "a folder that happens to be called a");
    assert_eq!(pair("x", "x"), ("x".into(), "x".into()));
    assert_eq!(pair("i/x", "w/x"), ("x".into(), "x".into()));
    assert_eq!(text(without_prefixes(None, Some(b"b/x".to_vec())).1), Some("x".to_owned()));
}

#[test]
fn the_names_in_a_git_line_may_contain_spaces() {
    let names = |line: &str| from_git_line(line.as_bytes()).map(|(old, new)| (text(Some(old)), text(Some(new))));
    let both = |old: &str, new: &str| Some((Some(old.to_owned()), Some(new.to_owned())));
    assert_eq!(names("a/x y b/x y"), both("a/x y", "b/x y"));
    assert_eq!(names("\"a/x\\ty\" \"b/x\\ty\""), both("a/x\ty", "b/x\ty"));
    assert_eq!(names("a/x b/y"), both("a/x", "b/y"));
    assert_eq!(names("a/x 1 b/y 2"), None, "a rename has its names on separate lines");
}

proptest! {
    #[test]
    fn any_name_is_the_same_after_quoting_and_parsing(name in prop::collection::vec(1_u8.., 1..20)) {
        let name: Vec<u8> = [b"x".as_slice(), &name, b"y"].concat();
        let header = quoted("a/", &name);
        prop_assert_eq!(from_header(header.as_bytes(), Blanks::MaybePadding), Some([b"a/".as_slice(), &name].concat()));
    }
}
