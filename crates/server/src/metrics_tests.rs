use super::*;

#[test]
fn labels_are_escaped() {
    let mut text = Text::default();
    text.counter("calls_total", "Calls.");
    text.sample("", &[("tool", "a\"b\\c\nd"), ("outcome", "ok")], 3);
    text.one("size_bytes", "Size.", 1.5);
    let expected = "# HELP toolrest_calls_total Calls.\n# TYPE toolrest_calls_total counter\n\
                    toolrest_calls_total{tool=\"a\\\"b\\\\c\\nd\",outcome=\"ok\"} 3\n\
                    # HELP toolrest_size_bytes Size.\n# TYPE toolrest_size_bytes gauge\n\
                    toolrest_size_bytes 1.5\n";
    assert_eq!(text.0, expected);
}
