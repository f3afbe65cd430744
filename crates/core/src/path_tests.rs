use super::*;

#[test]
fn a_relative_path_never_leaves_the_root() {
    for (text, path) in [("a/b", "/a/b"), ("./a//b/", "/a/b"), ("a/../b", "/b"), ("", "/"), (".", "/"), ("a/..", "/")] {
        assert_eq!(WsPath::relative(text).unwrap().as_str(), path, "{text}");
    }
    for text in ["..", "../a", "a/../..", "a/../../b", "/a", "/"] {
        assert_eq!(WsPath::relative(text).unwrap_err().kind, ErrorKind::OutsideWorkspace, "{text}");
    }
    assert_eq!(WsPath::within("/a/./b").unwrap().as_str(), "/a/b");
    assert_eq!(WsPath::within("/../a").unwrap_err().kind, ErrorKind::OutsideWorkspace);
    assert_eq!(WsPath::within("/a/b").unwrap().without_slash(), "a/b");
    assert_eq!(WsPath::root().without_slash(), ".");
}
use proptest::prelude::*;

fn posix(text: &str) -> String {
    WsPath::posix(text).map_or_else(|error| error.message, |path| path.to_string())
}

#[test]
fn paths_are_parsed_like_posix_paths_from_the_root() {
    for (given, normal) in [
        ("", "/"),
        ("/", "/"),
        ("a", "/a"),
        ("  /a/b  ", "/  /a/b  "),
        ("a ", "/a "),
        ("//folder///file", "/folder/file"),
        ("/a/./b/../c", "/a/c"),
        ("/../../a", "/a"),
        ("/..", "/"),
        ("/a/", "/a"),
        ("/My Notes (1).txt", "/My Notes (1).txt"),
        ("/a / c", "/a / c"),
        ("/a /", "/a "),
        ("/Ünïcode/文件", "/Ünïcode/文件"),
        ("/...", "/..."),
    ] {
        assert_eq!(posix(given), normal, "{given:?}");
    }
}

#[test]
fn control_characters_and_long_names_are_refused() {
    for bad in ["/a\0b", "/a\nb", "/a\u{7f}", "/a\u{85}b", &format!("/{}", "x".repeat(256)), &"/abc".repeat(600)] {
        let error = WsPath::posix(bad).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidPath, "{bad:?}");
    }
    assert!(WsPath::posix(&format!("/{}", "x".repeat(255))).is_ok());
}

#[test]
fn a_name_with_the_same_prefix_is_not_below() {
    let pre = WsPath::posix("/pre").unwrap();
    assert!(!WsPath::posix("/prefix/x").unwrap().is_below(&pre));
    assert!(WsPath::posix("/pre/x").unwrap().is_below(&pre));
    assert!(!pre.is_below(&pre));
    assert!(pre.is_below(&WsPath::root()));
}

#[test]
fn ancestors_go_from_the_root_down() {
    let above: Vec<String> = WsPath::posix("/a/b/c").unwrap().ancestors().iter().map(ToString::to_string).collect();
    assert_eq!(above, ["/", "/a", "/a/b"]);
    assert!(WsPath::root().ancestors().is_empty());
    assert!(WsPath::posix("/a/b/c").unwrap().folders_above().rev().eq(["/a/b", "/a", "/"]));
}

proptest! {
    #[test]
    fn normalising_twice_changes_nothing(text in "[ab./ ]{0,20}") {
        // The slash separates white space at the end of a name from white space around the path.
        let once = posix(&text);
        prop_assert_eq!(posix(&format!("{once}/")), once);
    }

    #[test]
    fn the_range_below_a_folder_holds_exactly_what_is_below_it(folder in "[a0/.-]{0,6}", path in "[a0/.-]{0,9}") {
        let folder = WsPath::posix(&folder).unwrap();
        let path = WsPath::posix(&path).unwrap();
        let (low, high) = folder.below_range();
        let in_range = path.as_str() > low.as_str() && path.as_str() < high.as_str();
        prop_assert_eq!(in_range, path.is_below(&folder), "{} in {}", path, folder);
    }

    #[test]
    fn moving_there_and_back_is_the_same_path(from in "[ab]{1,3}", to in "[cd]{1,3}", rest in "[ab/]{0,5}") {
        let (from, to) = (WsPath::posix(&from).unwrap(), WsPath::posix(&to).unwrap());
        let path = WsPath::posix(&format!("{from}/{rest}")).unwrap();
        let moved = path.moved(&from, &to).unwrap();
        prop_assert_eq!(moved.moved(&to, &from).unwrap(), path);
    }
}
