use super::*;
use proptest::prelude::*;

fn snapshots() -> impl Strategy<Value = Snapshot> {
    (1..1_u64 << 40, proptest::collection::btree_set(0..5_000_u64, 0..40)).prop_map(|(xmin, running)| {
        let running: Vec<u64> = running.into_iter().map(|xid| xmin + xid).collect();
        let xmax = running.last().map_or(xmin, |last| last + 1) + 3;
        Snapshot { xmin, xmax, running }
    })
}

fn cursors() -> impl Strategy<Value = Cursor> {
    let position = (1..1_u64 << 40, 0..2_usize, any::<u128>()).prop_map(|(xid, source, id)| Position {
        xid,
        source: Source::ALL[source],
        id: Uuid::from_u128(id),
    });
    (snapshots(), proptest::option::of((snapshots(), position))).prop_map(|(since, within)| Cursor { since, within })
}

proptest! {
    #[test]
    fn a_cursor_survives_its_text_form(cursor in cursors()) {
        let text = cursor.encode();
        prop_assert!(text.0.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".~".contains(&byte)), "{text}");
        prop_assert_eq!(Cursor::decode(&text).unwrap(), cursor);
    }

    #[test]
    fn a_snapshot_survives_the_form_of_the_database(snapshot in snapshots()) {
        prop_assert_eq!(Snapshot::from_sql(&snapshot.to_sql()).unwrap(), snapshot);
    }

    #[test]
    fn no_text_makes_a_cursor_that_the_database_refuses(text in "p[0-9a-f.~]{0,60}") {
        if let Ok(cursor) = Cursor::decode(&FeedCursor(text)) {
            prop_assert_eq!(cursor.since.clone().checked(), Some(cursor.since));
        }
    }
}

#[test]
fn what_is_no_cursor_is_refused() {
    for text in [
        "",
        "p",
        "s1.2",
        "p0.1",
        "p5.1.9",
        "p5.9.1.0",
        "p5.1~5.1",
        "p5.1~5.1~1.7.00",
        "p5.1~",
        "pffffffffffff.1",
        "pffffffffffffffff.1",
    ] {
        assert!(Cursor::decode(&FeedCursor(text.into())).is_err(), "{text}");
    }
    assert_eq!(Snapshot::from_sql("7:9:7,8").unwrap().running, [7, 8]);
    assert!(Snapshot::from_sql("7:9").is_err());
}
