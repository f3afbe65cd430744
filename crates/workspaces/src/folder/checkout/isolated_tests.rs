use super::{MAX_WARNINGS, Notice, first_warnings};

#[test]
fn many_failures_are_reported_by_the_first_and_their_number() {
    let all: Vec<Notice> = (0..1_000).map(|number| format!("/{number}").into()).collect();
    let few = all[..MAX_WARNINGS].to_vec();
    assert_eq!(first_warnings(few.clone()), few);
    let reported = first_warnings(all);
    assert_eq!(reported[..MAX_WARNINGS], few);
    assert_eq!(reported[MAX_WARNINGS..], ["and 990 more that could not be brought to the folder".to_owned().into()]);
}
