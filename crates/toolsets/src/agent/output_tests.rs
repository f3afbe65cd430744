use super::*;

#[test]
fn a_short_output_is_shown_as_it_is() {
    let ShownOutput { text, lines, is_shortened } = shown("one\n\n\ntwo\n", 1_000);
    assert_eq!((text.as_str(), lines, is_shortened), ("one\n\n\ntwo", 4, false));
    assert_eq!(shown("", 1_000).text, "");
}

#[test]
fn codes_progress_and_repeats_are_removed() {
    let output = "\x1b[31mred\x1b[0m\n10%\r50%\r100%\ncrlf\r\nagain\nagain\nagain\nend\n";
    let ShownOutput { text, lines, is_shortened } = shown(output, 1_000);
    assert_eq!(text, "red\n100%\ncrlf\nagain (3 times)\nend");
    assert_eq!((lines, is_shortened), (7, true));
}

#[test]
fn the_middle_of_a_long_output_is_left_out_but_for_failures() {
    let output: String = (1..=1_000)
        .map(|n| if n == 500 { "test x FAILED here\n".to_owned() } else { format!("line number {n}\n") })
        .collect();
    let ShownOutput { text, lines, is_shortened } = shown(&output, 2_000);
    assert!(text.len() <= 2_000 && is_shortened && lines == 1_000, "{text}");
    assert!(text.starts_with("line number 1\n") && text.ends_with("line number 1000"), "{text}");
    assert!(text.contains(" of 1000 left out; 1 looks like a failure:\n500: test x FAILED here\n"), "{text}");
}

#[test]
fn long_lines_are_cut_and_lines_like_ours_are_marked() {
    assert!(shown(&"x".repeat(5_000), 2_000).text.ends_with("… +4000 bytes"));
    assert_eq!(shown("== x\n.. y\nerror z\nerrors\n", 1_000).text, " == x\n .. y\n error z\nerrors");
}

#[test]
fn sizes_are_in_words() {
    assert_eq!([834, 75_000, 2_100_000].map(kilobytes), ["834 bytes", "75 KB", "2.1 MB"]);
}
