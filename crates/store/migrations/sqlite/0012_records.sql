-- Records of calls say who called with which arguments and what came of it, and keep their order of arrival.
ALTER TABLE calls RENAME TO earlier_calls;

CREATE TABLE calls (
    ws BLOB NOT NULL,
    -- Orders the records of the workspace by arrival. A number is never used twice.
    pos INTEGER NOT NULL,
    id BLOB NOT NULL,
    correlation TEXT NOT NULL,
    -- The key that called, or else the person.
    principal BLOB NOT NULL,
    user_id BLOB NOT NULL,
    toolset TEXT NOT NULL,
    tool TEXT NOT NULL,
    path TEXT,
    -- Redacted JSON; NULL in records of earlier releases.
    args TEXT,
    outcome TEXT NOT NULL,
    message TEXT,
    started_at INTEGER NOT NULL,
    duration_us INTEGER NOT NULL,
    commit_id BLOB,
    approval_id BLOB,
    PRIMARY KEY (ws, pos)
) WITHOUT ROWID;
CREATE UNIQUE INDEX calls_by_id ON calls (ws, id);

-- An earlier release knew no correlation ids; the id of the call stands for it. Outcomes were the names of error kinds in
-- the program's spelling: NotFound is not_found.
INSERT INTO calls (ws, pos, id, correlation, principal, user_id, toolset, tool, outcome, started_at, duration_us, commit_id)
SELECT ws, row_number() OVER (PARTITION BY ws ORDER BY id), id, lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-'
        || substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)), caller, caller, toolset, tool,
    ltrim(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(outcome, 'A', '_a'), 'B', '_b'), 'C', '_c'), 'D', '_d'), 'E', '_e'), 'F', '_f'), 'I', '_i'), 'L', '_l'), 'M', '_m'), 'N', '_n'), 'O', '_o'), 'P', '_p'), 'Q', '_q'), 'R', '_r'), 'S', '_s'), 'T', '_t'), 'U', '_u'), 'W', '_w'), '_'),
    started_at, duration_us, commit_id
FROM earlier_calls ORDER BY id;

DROP TABLE earlier_calls;

CREATE INDEX calls_by_principal ON calls (ws, principal, id);

-- Server processes. Each updates its row every second.
CREATE TABLE instances (
    id BLOB NOT NULL PRIMARY KEY,
    node TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Calls with effects outside of the files of their workspace. A row is inserted before the effect and deleted when the
-- record of the call is inserted.
CREATE TABLE calls_running (
    ws BLOB NOT NULL,
    id BLOB NOT NULL,
    instance BLOB NOT NULL,
    correlation TEXT NOT NULL,
    principal BLOB NOT NULL,
    user_id BLOB NOT NULL,
    toolset TEXT NOT NULL,
    tool TEXT NOT NULL,
    path TEXT,
    args TEXT,
    started_at INTEGER NOT NULL,
    PRIMARY KEY (ws, id)
) WITHOUT ROWID;
CREATE INDEX calls_running_by_instance ON calls_running (instance);
