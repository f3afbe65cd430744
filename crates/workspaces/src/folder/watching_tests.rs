use super::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use toolrest_core::WsPath;

#[test]
fn a_move_from_or_to_a_name_that_no_path_can_have_is_half_of_a_move() {
    let named = || PathBuf::from("dir/a");
    let unnamed = || PathBuf::from(OsStr::from_bytes(b"dir/\xff"));
    let path = WsPath::posix("/dir/a").unwrap();
    let moved = |from, to| to_tool_error(Event::Moved { from, to });
    assert_eq!(moved(named(), unnamed()), Some(FileEvent::Removed { path: path.clone() }));
    assert_eq!(moved(unnamed(), named()), Some(FileEvent::Created { path: path.clone() }));
    assert_eq!(moved(unnamed(), unnamed()), None);
    assert_eq!(moved(named(), named()), Some(FileEvent::Moved { from: path.clone(), path }));
}
