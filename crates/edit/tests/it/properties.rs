//! Properties of diffs and patches: applying a diff of two texts to the first gives the second.

use proptest::prelude::*;
use toolrest_edit::{Limits, StopFlag, diff, patch};

const LIMITS: Limits = Limits::of_bytes(1 << 20);

/// Generates texts with many equal lines and all kinds of endings, so that many positions match.
fn text() -> impl Strategy<Value = String> {
    let line =
        prop_oneof![4 => "[ab]{0,2}", 1 => "[-+ @\\\\]{1,3}[ab]?", 1 => "\t? {0,4}[a-d\r]{0,3}", 1 => "[“é]{1,2}"];
    let ending = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    (prop::collection::vec((line, ending), 0..40), prop::option::of("[ab]{1,3}")).prop_map(|(lines, last)| {
        let body: String = lines.into_iter().map(|(line, ending)| line + ending).collect();
        body + &last.unwrap_or_default()
    })
}

/// Generates a text and the same text with some lines changed.
fn texts() -> impl Strategy<Value = (String, String)> {
    let change = (any::<prop::sample::Index>(), 0..3_u8, "[xy]{0,2}");
    let edited = (text(), prop::collection::vec(change, 0..6)).prop_map(|(old, changes)| {
        let mut lines: Vec<String> = old.split_inclusive('\n').map(str::to_owned).collect();
        for (at, kind, line) in changes {
            let at = at.index(lines.len() + 1);
            match kind {
                0 => lines.insert(at, line + "\n"),
                1 if at < lines.len() => _ = lines.remove(at),
                _ if at < lines.len() => lines[at] = line + "\r\n",
                _ => {}
            }
        }
        (old, lines.concat())
    });
    prop_oneof![3 => edited, 1 => (text(), text())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn applying_a_diff_gives_the_new_text_and_its_reverse_the_old_one((old, new) in texts()) {
        let diff = diff::unified(b"some file", Some(old.as_bytes()), Some(new.as_bytes()), StopFlag::never());
        if old == new {
            prop_assert_eq!(diff, "");
            return Ok(());
        }
        let files = patch::parse(diff.as_bytes()).unwrap();
        prop_assert_eq!(files.len(), 1, "{}", diff);
        let applied = patch::apply(&files[0], old.as_bytes(), LIMITS).unwrap();
        prop_assert_eq!(String::from_utf8(applied.content).unwrap(), new.clone());
        prop_assert!(applied.warnings.iter().all(|warning| warning.contains("indented")), "{:?}", applied.warnings);
        let back = patch::apply(&files[0].reversed(), new.as_bytes(), LIMITS).unwrap();
        prop_assert_eq!(String::from_utf8(back.content).unwrap(), old);
    }

    #[test]
    fn diffs_that_create_and_delete_a_file_can_be_applied(new in text()) {
        let diff = diff::unified(b"x", None, Some(new.as_bytes()), StopFlag::never());
        if !new.is_empty() {
            let files = patch::parse(diff.as_bytes()).unwrap();
            prop_assert_eq!(&files[0].change, &patch::Change::Create(b"x".to_vec()));
            prop_assert_eq!(patch::apply(&files[0], b"", LIMITS).unwrap().content, new.as_bytes());
            prop_assert_eq!(patch::apply(&files[0].reversed(), new.as_bytes(), LIMITS).unwrap().content, b"");
        }
    }

    #[test]
    fn no_patch_and_no_file_cause_a_panic(patch in "(@@|--- a/x|\\+\\+\\+ b/x|[-+ \\\\]|[ab \t\r]|\\*\\*\\* (Begin Patch|Update File: x|End Patch)|[0-9, ]|\n){0,60}", file in "[ab \t\r\n]{0,30}") {
        let whole = format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n{patch}");
        for patch in [patch.as_bytes(), whole.as_bytes()] {
            for part in patch::parse(patch).into_iter().flatten() {
                if let Err(error) = patch::apply(&part, file.as_bytes(), LIMITS) {
                    prop_assert!(error.to_string().len() <= toolrest_edit::MAX_MESSAGE_BYTES);
                }
            }
        }
    }
}
