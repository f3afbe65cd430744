-- `pos` numbers the commits in the order of their insertion, by which the feed finds what is new. Numbers are never used
-- again.
CREATE TABLE numbered_commits (
    pos INTEGER PRIMARY KEY AUTOINCREMENT,
    ws BLOB NOT NULL,
    id BLOB NOT NULL,
    call_id BLOB NOT NULL,
    toolset TEXT NOT NULL,
    tool TEXT NOT NULL,
    author BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    undoes BLOB,
    changes TEXT NOT NULL,
    UNIQUE (ws, id)
);
INSERT INTO numbered_commits (ws, id, call_id, toolset, tool, author, created_at, undoes, changes)
SELECT ws, id, call_id, toolset, tool, author, created_at, undoes, changes FROM commits ORDER BY id;
DROP TABLE commits;
ALTER TABLE numbered_commits RENAME TO commits;
CREATE INDEX commits_by_call ON commits (ws, call_id);
-- Entries with the same ws are ordered by pos, which is the rowid.
CREATE INDEX commits_by_arrival ON commits (ws);

-- The newest position of which purges deleted an event, by workspace and source (0 commits, 1 calls). A reader whose
-- cursor lies before it has missed something.
CREATE TABLE feed_purged (
    ws BLOB NOT NULL,
    source INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    PRIMARY KEY (ws, source)
) WITHOUT ROWID;
