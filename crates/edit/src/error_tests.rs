use super::*;

fn failure(hunk: usize, message: &str) -> HunkFailure {
    HunkFailure {
        hunk,
        patch_line: hunk * 10,
        error: EditError::NotFound { looser_level: None, message: message.to_owned(), closest: None },
    }
}

#[test]
fn no_message_is_longer_than_its_limit() {
    let long = "ä".repeat(10_000);
    let errors = [
        EditError::NotFound { looser_level: None, message: long.clone(), closest: None },
        EditError::syntax(3, long.clone()),
        EditError::Hunks { file: long.clone(), failures: (1..=300).map(|hunk| failure(hunk, &long)).collect() },
        EditError::Edit { number: 1, count: 2, error: Box::new(EditError::BaseMismatch { message: long }) },
    ];
    for error in errors {
        assert!(error.to_string().len() <= MAX_MESSAGE_BYTES, "{}", error.to_string().len());
    }
}

#[test]
fn every_failed_hunk_is_in_the_message() {
    let failures = (1..=5).map(|hunk| failure(hunk, &"x".repeat(3_000))).collect();
    let message = EditError::Hunks { file: "a.txt".to_owned(), failures }.to_string();
    for hunk in 1..=5 {
        assert!(message.contains(&format!("hunk {hunk} (patch line {hunk}0)")), "{message}");
    }
}

#[test]
fn hunks_are_already_applied_only_if_all_are() {
    let applied = HunkFailure { hunk: 1, patch_line: 1, error: EditError::AlreadyApplied { line: 1 } };
    let kind = |failures| EditError::Hunks { file: String::new(), failures }.kind();
    assert_eq!(kind(vec![applied.clone()]), ErrorKind::AlreadyApplied);
    assert_eq!(kind(vec![applied, failure(2, "")]), ErrorKind::NotFound);
}
