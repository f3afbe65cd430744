use super::{MOST_WARNINGS, Notice, the_first_of};

#[test]
fn many_failures_are_told_by_the_first_and_their_number() {
    let all: Vec<Notice> = (0..1_000).map(|number| format!("/{number}").into()).collect();
    let few = all[..MOST_WARNINGS].to_vec();
    assert_eq!(the_first_of(few.clone()), few);
    let to_tool_error = the_first_of(all);
    assert_eq!(to_tool_error[..MOST_WARNINGS], few);
    assert_eq!(
        to_tool_error[MOST_WARNINGS..],
        ["and 990 more that could not be brought to the folder".to_owned().into()]
    );
}
