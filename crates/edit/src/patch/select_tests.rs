use super::*;
use crate::lines::split;

const FILE: &[u8] = b"class A:\n    def f():\n        x\n    def g():\n        x\nclass B:\n    def f():\n        x\n";

fn under(headings: &[&[u8]]) -> Vec<usize> {
    let lines = split(FILE);
    [2, 4, 7].into_iter().filter(|start| is_under_headings(&lines, *start, headings)).collect()
}

#[test]
fn a_line_is_under_the_nearest_heading_of_its_kind() {
    assert_eq!(under(&[b"class A"]), [2, 4]);
    assert_eq!(under(&[b"class B"]), [7]);
    assert_eq!(under(&[b"def g"]), [4]);
    assert_eq!(under(&[b"def f"]), [2, 7]);
    assert_eq!(under(&[b"class C"]), []);
}

#[test]
fn headings_nest() {
    assert_eq!(under(&[b"class A", b"def f"]), [2]);
    assert_eq!(under(&[b"class B", b"def f"]), [7]);
    assert_eq!(under(&[b"class B", b"def g"]), []);
}

#[test]
fn neighbours_on_both_sides_must_have_the_same_offset() {
    let moved = |offset| Neighbour { edge: None, offset };
    assert_eq!(common_offset(moved(Some(3)), moved(Some(3))), Some(3));
    assert_eq!(common_offset(moved(Some(3)), moved(Some(4))), None);
    assert_eq!(common_offset(moved(None), moved(Some(4))), Some(4));
    assert_eq!(common_offset(moved(None), moved(None)), Some(0));
}
