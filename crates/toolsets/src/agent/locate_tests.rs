use super::*;

#[test]
fn lines_are_split_off_in_all_forms() {
    let cases = [
        ("a.rs", ("a.rs", Lines::All)),
        ("a.rs:40-90", ("a.rs", Lines::Range(40, 90))),
        ("a.rs:90-40", ("a.rs", Lines::Range(40, 90))),
        ("a.rs:40-", ("a.rs", Lines::Range(40, usize::MAX))),
        ("a.rs:0-3", ("a.rs", Lines::Range(1, 3))),
        ("a.rs:57", ("a.rs", Lines::Around(57))),
        ("a.rs:57:5", ("a.rs", Lines::Around(57))),
        ("a.rs#L40-L90", ("a.rs", Lines::Range(40, 90))),
        ("a.rs#L40", ("a.rs", Lines::Around(40))),
        ("a.rs:x", ("a.rs:x", Lines::All)),
        (":57", (":57", Lines::All)),
        ("C#L", ("C#L", Lines::All)),
    ];
    for (text, expected) in cases {
        assert_eq!(split_lines(text), expected, "{text}");
    }
    assert_eq!(Lines::Around(57).bounds(), (27, 107));
    assert_eq!(Lines::Around(3).bounds(), (1, 53));
}

#[test]
fn addresses_of_files_are_decoded() {
    assert_eq!(without_scheme("file:///a%20b/c%"), "/a b/c%");
    assert_eq!(without_scheme("a%20b"), "a%20b");
}
