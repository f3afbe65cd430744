use super::*;

#[test]
fn columns_are_aligned_over_all_sections_and_remedies_follow_their_rows() {
    let mut table = Table::default();
    table.section("First");
    table.row("a", State::Present, "well");
    table.section("Second");
    table.row("long name", State::Missing, "not well");
    table.remedy("Cure it.");
    table.row("b", State::Unknown, "");
    let wanted = "First\n  a          present    well\n\nSecond\n  long name  MISSING    not well\n                        \
                  Cure it.\n  b          not tried\n";
    assert_eq!(table.to_string(), wanted);
}

#[test]
fn a_missing_data_folder_is_checked_in_its_nearest_existing_parent() {
    let home = tempfile::tempdir().unwrap();
    let mounts = MountTest::create(&home.path().join("not/yet")).unwrap();
    assert_eq!(mounts.home.path().parent(), Some(home.path()));
    drop(mounts);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}
