use super::*;
use crate::lines::split;
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_place_is_found_whichever_way(file in prop::collection::vec("[ab]", 0..40), run in prop::collection::vec("[ab]", 1..5)) {
        let text: String = file.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let lines = split(text.as_bytes());
        let index = LineIndex::new(&lines, Level::Exact, Stop::never());
        let bodies: Vec<&[u8]> = run.iter().map(String::as_bytes).collect();
        let expected: Vec<usize> = (0..file.len()).filter(|start| file[*start..].starts_with(&run)).collect();
        prop_assert_eq!(&index.places_of(&bodies), &expected);
        if let Some(wanted) = bodies.iter().map(|body| index.number(body)).collect::<Option<Vec<_>>>() {
            prop_assert_eq!(index.scan(&wanted), expected);
        }
    }
}

#[test]
fn a_run_of_equal_lines_takes_time_in_proportion_to_the_file() {
    let text = b"x\n".repeat(200_000);
    let lines = split(&text);
    let index = LineIndex::new(&lines, Level::Exact, Stop::never());
    assert_eq!(index.places_of(&vec![b"x".as_slice(); 100_000]).len(), 100_001);
}
