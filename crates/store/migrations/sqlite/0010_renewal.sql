-- How far versions of earlier releases have been renewed, which knew fewer forms of text and counted the size of JSON in
-- another way. The row is there as long as some are left.
CREATE TABLE renewal (
    ws BLOB NOT NULL,
    file_id BLOB NOT NULL,
    seq INTEGER NOT NULL
);
INSERT INTO renewal SELECT zeroblob(16), zeroblob(16), 0 WHERE EXISTS (SELECT 1 FROM versions);
