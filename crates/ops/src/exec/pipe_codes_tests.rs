use super::*;

#[test]
fn codes_are_reported_for_pipes_only() {
    assert_eq!(merged("ls", None), "exec 199>&2 2>&1; ls");
    assert_eq!(merged("ls", Some("it's")), r"exec 199>&2 2>&1; cd -- 'it'\''s' || exit 1; ls");
    assert!(merged("false | true", None).starts_with("exec 199>&2 2>&1; false | true\n{ "));
    for open in ["cat <<E | wc\n1\nE", "a | b \\"] {
        assert!(merged(open, None).ends_with(open), "{open}");
    }
}

#[test]
fn a_report_is_taken_out_of_the_output() {
    let mut codes = PipeCodes::default();
    assert_eq!(codes.take_from(b"plain".to_vec()), b"plain");
    assert!(codes.codes.is_empty());
    assert_eq!(codes.take_from(b"before\x1e\x02toolrest-pipe 1 0\nafter".to_vec()), b"beforeafter");
    assert_eq!(codes.codes, [1, 0]);
}
