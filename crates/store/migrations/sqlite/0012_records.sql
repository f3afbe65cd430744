-- `pos` numbers the records in the order of their insertion, by which the feed finds what is new. Numbers are never used
-- again.
CREATE TABLE numbered_calls (
    pos INTEGER PRIMARY KEY AUTOINCREMENT,
    ws BLOB NOT NULL,
    id BLOB NOT NULL,
    toolset TEXT NOT NULL,
    tool TEXT NOT NULL,
    caller BLOB NOT NULL,
    started_at INTEGER NOT NULL,
    duration_us INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    commit_id BLOB,
    UNIQUE (ws, id)
);
INSERT INTO numbered_calls (ws, id, toolset, tool, caller, started_at, duration_us, outcome, commit_id)
SELECT ws, id, toolset, tool, caller, started_at, duration_us, outcome, commit_id FROM calls ORDER BY id;
DROP TABLE calls;
ALTER TABLE numbered_calls RENAME TO calls;
CREATE INDEX calls_by_position ON calls (ws, pos);
