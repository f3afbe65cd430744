use super::*;

fn heading(line: &str) -> Option<&str> {
    parse(line.as_bytes()).unwrap().heading.map(|heading| str::from_utf8(heading).unwrap())
}

#[test]
fn ranges_and_heading_are_parsed() {
    let header = parse(b"@@ -1,3 +2 @@ fn main() {").unwrap();
    assert_eq!(header.ranges, Some(HeaderRanges { old_start: 1, old_count: 3, new_start: 2, new_count: 1 }));
    assert_eq!(header.heading, Some(&b"fn main() {"[..]));
}

#[test]
fn a_header_needs_no_ranges() {
    assert_eq!(parse(b"@@").unwrap(), HunkHeader::default());
    assert_eq!(parse(b"@@ ... @@").unwrap(), HunkHeader::default());
    assert_eq!(heading("@@ ... @@ def f():"), Some("def f():"));
    assert_eq!(heading("@@ class A"), Some("class A"));
    assert_eq!(heading("@@ class A @@"), Some("class A"));
    assert_eq!(heading("@@ -x,y +1 @@"), Some("-x,y +1"));
    assert_eq!(parse(b"@@ -99999999999999999999999,1 +1 @@").unwrap().ranges, None);
    assert_eq!(parse(b"no"), None);
}
