use super::*;

fn text_of(page: &str) -> Result<()> {
    with_tree(page, |_| Ok(()))
}

fn refused(page: &str) -> TooMuch {
    let error = text_of(page).unwrap_err();
    let all = [TooMuch::Elements, TooMuch::Time, TooMuch::Depth];
    all.into_iter().find(|one| refusal(*one).message == error.message).unwrap_or_else(|| panic!("{error}"))
}

#[test]
fn pages_up_to_the_limits_are_parsed() {
    assert_eq!(text_of(""), Ok(()));
    assert_eq!(text_of(&"<p>ü".repeat(10_000)), Ok(()));
    assert_eq!(text_of(&"<div>".repeat(MAX_DEPTH - 10)), Ok(()));
}

#[test]
fn deep_pages_are_refused() {
    assert_eq!(refused(&"<div>".repeat(MAX_DEPTH + 1)), TooMuch::Depth);
}

#[test]
fn a_page_that_grows_when_it_is_parsed_is_refused() {
    let formatting = (0..200).map(|n| format!("<b id={n}>")).collect::<Vec<_>>().concat();
    let page = format!("<p>{formatting}</p>{}", "<p>x</p>".repeat(20_000));
    // Four million elements, from a page of 160 KB. A slow machine runs out of time first.
    assert!(matches!(refused(&page), TooMuch::Elements | TooMuch::Time));
}

#[test]
fn a_page_of_endless_nesting_ends_within_the_limits() {
    let started = Instant::now();
    refused(&"<div>".repeat(1_000_000));
    refused(&format!("{}{}", "<div>".repeat(100_000), "</x>".repeat(1_000_000)));
    assert!(started.elapsed() < 20 * MAX_TIME, "{:?}", started.elapsed());
}
