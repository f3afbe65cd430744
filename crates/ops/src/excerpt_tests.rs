use super::*;

fn all(text: &str, from: usize, to: usize, bytes: usize) -> Excerpt {
    excerpt_of_text(text, ExcerptOptions { from, to, bytes, line_bytes: 1000 })
}

fn texts(excerpt: &Excerpt) -> Vec<(usize, &str)> {
    excerpt.lines.iter().map(|line| (line.number, line.text.as_str())).collect()
}

#[test]
fn ranges_are_inclusive_and_a_final_newline_is_no_line() {
    let excerpt = all("a\nb\nc\n", 2, 3, 1000);
    assert_eq!((texts(&excerpt), excerpt.total, excerpt.next), (vec![(2, "b"), (3, "c")], 3, None));
    assert_eq!(all("a\nb", 1, usize::MAX, 1000).total, 2);
    assert_eq!(all("", 1, usize::MAX, 1000).total, 0);
}

#[test]
fn what_does_not_fit_is_named_by_its_first_line() {
    let text = "0123456789\n".repeat(100);
    let (mut from, mut seen) = (1, Vec::new());
    loop {
        let excerpt = all(&text, from, usize::MAX, 200);
        assert!(excerpt.lines.iter().map(ExcerptLine::shown_bytes).sum::<usize>() <= 200);
        seen.extend(excerpt.lines.iter().map(|line| line.number));
        let Some(next) = excerpt.next else { break };
        from = next;
    }
    assert_eq!(seen, (1..=100).collect::<Vec<_>>());
}

#[test]
fn long_lines_are_cut_at_characters_and_given_alone() {
    let text = format!("short\n{}\n", "ü".repeat(3000));
    let excerpt = all(&text, 1, 2, 4000);
    assert_eq!((excerpt.lines[1].text.len(), excerpt.lines[1].cut_bytes), (1000, 5000));
    let alone = all(&text, 2, 2, 4001);
    assert_eq!((alone.lines[0].text.len(), alone.lines[0].cut_bytes), (4000, 2000));
}

#[test]
fn the_form_of_a_text_is_named() {
    assert_eq!(all("\u{feff}a\r\nb\r\n", 1, 9, 1000).forms, ["bom", "crlf"]);
    assert_eq!(all("a\r\nb\n", 1, 9, 1000).forms, ["mixed line endings"]);
    assert_eq!(texts(&all("a\r\n", 1, 9, 1000)), [(1, "a")]);
    assert!(all("a\r", 1, 9, 1000).forms.is_empty() || all("a\r", 1, 9, 1000).lines[0].text == "a");
}

#[test]
fn the_outline_has_definitions_and_headings() {
    let text = "# Title\nuse x;\nimpl Pool {\n    pub fn get(&self) {\n        let x = 1;\n    }\n}\nint main(void) {\n#define X 1\n";
    let lines: Vec<usize> = all(text, 1, 1, 100).outline.iter().map(|(number, _)| *number).collect();
    assert_eq!(lines, [1, 3, 4, 8]);
}
