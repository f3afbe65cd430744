use super::*;
use rusqlite::ffi;

#[test]
fn a_write_that_the_disk_refuses_is_told_from_a_database_that_is_away() {
    for (code, kind) in [
        (ffi::SQLITE_FULL, ErrorKind::WriteFailed),
        (ffi::SQLITE_IOERR_WRITE, ErrorKind::WriteFailed),
        (ffi::SQLITE_IOERR_FSYNC, ErrorKind::WriteFailed),
        (ffi::SQLITE_IOERR_READ, ErrorKind::Unavailable),
        (ffi::SQLITE_BUSY, ErrorKind::Unavailable),
        (ffi::SQLITE_CORRUPT, ErrorKind::Internal),
    ] {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        assert_eq!(fault(error).kind, kind, "{code}");
    }
}
