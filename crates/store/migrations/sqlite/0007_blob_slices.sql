-- Large contents are stored in slices, some at a time, ahead of the commit that needs them, so that nobody waits for the
-- whole. Their row in `blobs` has no data, and 3 added to its
-- encoding.
CREATE TABLE blob_slices (
    ws BLOB NOT NULL,
    key BLOB NOT NULL,
    n INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX blob_slices_by_key ON blob_slices (ws, key, n);
CREATE TRIGGER slices_go_with_their_blob AFTER DELETE ON blobs WHEN old.encoding >= 3
BEGIN DELETE FROM blob_slices WHERE ws = old.ws AND key = old.key; END;
CREATE TRIGGER slices_go_when_their_blob_is_dropped AFTER UPDATE OF encoding ON blobs
WHEN old.encoding >= 3 AND new.encoding < 3
BEGIN DELETE FROM blob_slices WHERE ws = old.ws AND key = old.key; END;

-- Contents that were stored ahead of a commit which is not there yet. Those that never got one are removed.
CREATE TABLE staged_blobs (
    ws BLOB NOT NULL,
    key BLOB NOT NULL,
    staged_at INTEGER NOT NULL,
    PRIMARY KEY (ws, key)
) WITHOUT ROWID;
