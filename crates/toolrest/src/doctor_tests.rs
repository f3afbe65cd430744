use super::*;

#[test]
fn columns_are_aligned_over_all_sections_and_remedies_stand_below_what_they_cure() {
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
fn a_data_folder_that_is_not_there_yet_is_judged_by_where_it_will_lie() {
    let home = tempfile::tempdir().unwrap();
    let scene = Scene::build(&home.path().join("not/yet")).unwrap();
    assert_eq!(scene.home.path().parent(), Some(home.path()));
    drop(scene);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}
