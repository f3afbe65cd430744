use super::*;

#[test]
fn a_budget_is_divided_equally_and_what_is_left_goes_to_others() {
    assert_eq!(shares(&[100, 100], 1000), [100, 100]);
    assert_eq!(shares(&[10_000, 100], 1000), [900, 100]);
    assert_eq!(shares(&[10_000, 10_000, 100], 1000), [450, 450, 100]);
    assert_eq!(shares(&[usize::MAX], 1000), [1000]);
}

fn all_of(text: &str, share: usize) -> String {
    let excerpt = excerpt_of_text(text, options(Lines::All, 32_768));
    shown("a.rs", Lines::All, excerpt, share).0
}

#[test]
fn a_file_that_does_not_fit_has_its_beginning_an_outline_and_the_next_call() {
    let text = "fn one() {\n    body();\n}\n".repeat(3_000);
    let shown = all_of(&text, 32_768);
    assert!(shown.len() <= HEAD_BYTES + OUTLINE_BYTES + AROUND_BYTES, "{}", shown.len());
    assert!(shown.starts_with("== a.rs 9000 lines\n1\tfn one() {\n"), "{shown}");
    let last = shown.lines().last().unwrap();
    let next: usize = last.split(':').nth(2).unwrap().split('-').next().unwrap().parse().unwrap();
    assert_eq!(last, format!(".. {} more lines: read \"a.rs:{next}-9000\"", 9001 - next));
    assert!(shown.contains(&format!("\n{}\tfn one() {{\n", next - 3)) || shown.contains(&format!("\n{}\t", next - 1)));
    assert!(shown.contains("\n.. outline of the rest, "), "{shown}");
}

#[test]
fn a_range_is_cut_at_its_share() {
    let text = "0123456789\n".repeat(100);
    let excerpt = excerpt_of_text(&text, options(Lines::Range(10, 50), 32_768));
    let (shown, file) = shown("a", Lines::Range(10, 50), excerpt, 600);
    assert!(shown.len() <= 600, "{shown}");
    let (from, to) = (file.from.unwrap(), file.to.unwrap());
    assert!(shown.starts_with(&format!("== a {from}-{to} of 100\n10\t0123456789")), "{shown}");
    assert!(shown.ends_with(&format!("more lines: read \"a:{}-50\"", to + 1)), "{shown}");
}
