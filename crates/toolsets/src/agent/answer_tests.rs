use super::*;

#[test]
fn sizes_are_short() {
    assert_eq!([224, 1024, 14_000, 2_200_000].map(size), ["224", "1K", "14K", "2.0M"]);
}

#[test]
fn heads_end_at_lines() {
    let text = "one\ntwo\nthree\n";
    assert_eq!(head(text, 6), "one\n");
    assert_eq!(head("üüü", 3), "ü");
    assert_eq!(head(text, 100), text);
}
