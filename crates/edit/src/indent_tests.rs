use super::*;

fn explain(pairs: &[(&str, &str)]) -> Option<Shift> {
    let pairs: Vec<_> = pairs.iter().map(|(given, actual)| (given.as_bytes(), actual.as_bytes())).collect();
    Shift::explain(&pairs)
}

#[test]
fn a_uniform_shift_is_recognised() {
    assert_eq!(explain(&[("", "    "), ("  ", "      ")]), Some(Shift::Add(b"    ".to_vec())));
    assert_eq!(explain(&[("\t\t", "\t"), ("\t", "")]), Some(Shift::Remove(b"\t".to_vec())));
    assert_eq!(explain(&[("", "  "), ("  ", "  ")]), None, "the shift differs from line to line");
    assert_eq!(explain(&[("", ""), ("\t", "\t")]), Some(Shift::None));
}

#[test]
fn tabs_and_spaces_are_converted_at_the_width_that_explains_all_lines() {
    assert_eq!(explain(&[("", ""), ("        ", "\t\t")]), Some(Shift::ToTabs(4)));
    assert_eq!(explain(&[("\t", "  "), ("\t\t", "    ")]), Some(Shift::ToSpaces(2)));
    assert_eq!(Shift::ToTabs(4).line(b"      x").unwrap(), &b"\t  x"[..]);
    assert_eq!(Shift::ToSpaces(2).line(b"\t x\ty").unwrap(), &b"   x\ty"[..]);
}

#[test]
fn a_line_that_lacks_what_must_go_is_no_match() {
    let shift = Shift::Remove(b"    ".to_vec());
    assert_eq!(shift.line(b"  x"), None);
    assert_eq!(shift.line(b"").unwrap(), &b""[..]);
    assert_eq!(shift.line(b"      x").unwrap(), &b"  x"[..]);
}
