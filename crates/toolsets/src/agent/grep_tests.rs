use super::*;

fn found(name: &str, line: u64, text: &str, before: &[&str], after: &[&str]) -> Match {
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    Match { name: name.to_owned(), line, text: text.to_owned(), before: owned(before), after: owned(after) }
}

fn finder() -> MatchFinder {
    MatchFinder::new("x", Case::Sensitive).unwrap()
}

#[test]
fn lines_around_matches_are_shown_once() {
    let matches = [
        found("a", 2, "x2", &["1"], &["3", "x4"]),
        found("a", 4, "x4", &["x2", "3"], &["5", "6"]),
        found("a", 20, "x20", &["18", "19"], &[]),
        found("b", 1, "x1", &[], &[]),
    ];
    assert_eq!(
        lines_of(&matches, 9, &finder()),
        "a\n1-1\n2:x2\n3-3\n4:x4\n5-5\n6-6\n--\n18-18\n19-19\n20:x20\nb\n1:x1"
    );
    assert_eq!(lines_of(&matches[2..], 9, &finder()), "a\n18-18\n19-19\n20:x20\nb\n1:x1");
}

#[test]
fn a_long_line_is_cut_around_its_match() {
    let line = format!("{}x{}", "a".repeat(1000), "b".repeat(1000));
    let shown = cut(&line, finder().find(&line));
    assert!(shown.starts_with('…') && shown.contains('x') && shown.ends_with(" bytes"), "{shown}");
    assert!(shown.len() < 230, "{}", shown.len());
    assert_eq!(cut("short", None), "short");
}

#[test]
fn fewer_and_fewer_is_shown_until_it_fits() {
    let all: Vec<Match> = (0..30)
        .flat_map(|file| (1..30).map(move |line| found(&format!("src/{file:02}.rs"), line, "x", &[], &[])))
        .collect();
    let mut by_file: BTreeMap<&str, Vec<&Match>> = BTreeMap::new();
    for one in &all {
        by_file.entry(&one.name).or_default().push(one);
    }
    let how = |room| shortened(&all, &by_file, room, &finder());
    assert_eq!(how(4_000).1, "first 10 of each file");
    assert_eq!(how(1_400).1, "first 5 of each file");
    assert_eq!(how(1_100).1, "first 3 of each file");
    assert_eq!(
        how(600),
        (by_file.keys().map(|name| format!("{name} (29)")).collect::<Vec<_>>().join("\n"), "counts only".to_owned())
    );
    assert_eq!(how(100), ("src/ (870)".to_owned(), "counts of folders only".to_owned()));
}
