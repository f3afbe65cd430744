-- What searches need. A signature tells of a content what it cannot hold; it stands before the data, so that reading it
-- does not touch the pages that a large content flows over to. Contents from before have none and are always read.
CREATE TABLE blobs_with_signatures (
    ws BLOB NOT NULL,
    key BLOB NOT NULL,
    size INTEGER NOT NULL,
    encoding INTEGER NOT NULL,
    signature BLOB,
    data BLOB NOT NULL
);
INSERT INTO blobs_with_signatures (ws, key, size, encoding, data) SELECT ws, key, size, encoding, data FROM blobs;
DROP TABLE blobs;
ALTER TABLE blobs_with_signatures RENAME TO blobs;
CREATE UNIQUE INDEX blobs_by_key ON blobs (ws, key);

-- Which files changed, counted on in each workspace. The last row of a workspace is never removed, and of the others
-- the oldest first, so that a gap shows.
CREATE TABLE changes (
    ws BLOB NOT NULL,
    place INTEGER NOT NULL,
    file_id BLOB NOT NULL,
    PRIMARY KEY (ws, place)
) WITHOUT ROWID;
