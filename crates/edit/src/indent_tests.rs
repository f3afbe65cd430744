use super::*;

fn between(pairs: &[(&str, &str)]) -> Option<IndentChange> {
    let pairs: Vec<_> = pairs.iter().map(|(given, actual)| (given.as_bytes(), actual.as_bytes())).collect();
    IndentChange::between(&pairs)
}

#[test]
fn the_same_change_of_all_lines_is_recognised() {
    assert_eq!(between(&[("", "    "), ("  ", "      ")]), Some(IndentChange::Add(b"    ".to_vec())));
    assert_eq!(between(&[("\t\t", "\t"), ("\t", "")]), Some(IndentChange::Remove(b"\t".to_vec())));
    assert_eq!(between(&[("", "  "), ("  ", "  ")]), None, "the change differs from line to line");
    assert_eq!(between(&[("", ""), ("\t", "\t")]), Some(IndentChange::None));
}

#[test]
fn tabs_and_spaces_are_converted_with_the_tab_width_that_fits_all_lines() {
    assert_eq!(between(&[("", ""), ("        ", "\t\t")]), Some(IndentChange::ToTabs(4)));
    assert_eq!(between(&[("\t", "  "), ("\t\t", "    ")]), Some(IndentChange::ToSpaces(2)));
    assert_eq!(IndentChange::ToTabs(4).apply_to_line(b"      x").unwrap(), &b"\t  x"[..]);
    assert_eq!(IndentChange::ToSpaces(2).apply_to_line(b"\t x\ty").unwrap(), &b"   x\ty"[..]);
}

#[test]
fn a_line_that_lacks_the_indentation_to_remove_is_no_match() {
    let change = IndentChange::Remove(b"    ".to_vec());
    assert_eq!(change.apply_to_line(b"  x"), None);
    assert_eq!(change.apply_to_line(b"").unwrap(), &b""[..]);
    assert_eq!(change.apply_to_line(b"      x").unwrap(), &b"  x"[..]);
}
