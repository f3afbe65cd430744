-- `pos` numbers the commits of a workspace in the order of their insertion, by which the feed finds what is new.
CREATE TABLE numbered_commits (
    ws BLOB NOT NULL,
    pos INTEGER NOT NULL,
    id BLOB NOT NULL,
    call_id BLOB NOT NULL,
    toolset TEXT NOT NULL,
    tool TEXT NOT NULL,
    author BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    undoes BLOB,
    changes TEXT NOT NULL,
    PRIMARY KEY (ws, pos)
) WITHOUT ROWID;
INSERT INTO numbered_commits (ws, pos, id, call_id, toolset, tool, author, created_at, undoes, changes)
SELECT ws, row_number() OVER (PARTITION BY ws ORDER BY id), id, call_id, toolset, tool, author, created_at, undoes, changes
FROM commits;
DROP TABLE commits;
ALTER TABLE numbered_commits RENAME TO commits;
CREATE UNIQUE INDEX commits_by_id ON commits (ws, id);

-- The newest position of which purges deleted an event, by workspace and source (0 commits, 1 calls). A reader whose
-- cursor lies before it has missed something.
CREATE TABLE feed_purged (
    ws BLOB NOT NULL,
    source INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    PRIMARY KEY (ws, source)
) WITHOUT ROWID;
