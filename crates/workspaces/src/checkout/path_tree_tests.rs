use super::PathTree;
use toolrest_core::WsPath;

fn path(text: &str) -> WsPath {
    WsPath::posix(text).unwrap()
}

#[test]
fn the_nearest_above_is_found() {
    let mut paths = PathTree::default();
    assert_eq!(paths.at_or_above(&path("/a")), None);
    for at in ["/a", "/a/b/c", "/ab"] {
        paths.insert(&path(at), at);
    }
    let found = ["/", "/a", "/a/b", "/a/b/c", "/a/b/c/d/e", "/a/b/d", "/abc", "/b"]
        .map(|asked| paths.at_or_above(&path(asked)).copied());
    let (a, c) = (Some("/a"), Some("/a/b/c"));
    assert_eq!(found, [None, a, a, c, c, a, None, None]);
}

#[test]
fn what_lies_below_is_found() {
    let mut paths = PathTree::default();
    assert!(!paths.any_at_or_below(&path("/")));
    paths.insert(&path("/a/b"), ());
    let found = ["/", "/a", "/a/b", "/a/b/c", "/a/c", "/ab"].map(|asked| paths.any_at_or_below(&path(asked)));
    assert_eq!(found, [true, true, true, false, false, false]);
}
