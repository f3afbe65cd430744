use super::*;
use crate::lines::split;
use proptest::prelude::*;

proptest! {
    #[test]
    fn both_algorithms_find_every_occurrence(file in prop::collection::vec("[ab]", 0..40), run in prop::collection::vec("[ab]", 1..5)) {
        let text: String = file.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let lines = split(text.as_bytes());
        let index = LineIndex::new(&lines, MatchLevel::Exact, StopFlag::never());
        let bodies: Vec<&[u8]> = run.iter().map(String::as_bytes).collect();
        let expected: Vec<usize> = (0..file.len()).filter(|start| file[*start..].starts_with(&run)).collect();
        prop_assert_eq!(&index.find(&bodies), &expected);
        if let Some(wanted) = bodies.iter().map(|body| index.id(body)).collect::<Option<Vec<_>>>() {
            prop_assert_eq!(index.find_frequent(&wanted), expected);
        }
    }
}

#[test]
fn many_equal_lines_are_found_in_linear_time() {
    let text = b"x\n".repeat(200_000);
    let lines = split(&text);
    let index = LineIndex::new(&lines, MatchLevel::Exact, StopFlag::never());
    assert_eq!(index.find(&vec![b"x".as_slice(); 100_000]).len(), 100_001);
}
