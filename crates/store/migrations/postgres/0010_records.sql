-- Records of calls say who called with which arguments and what came of it, and keep their order of arrival. The table is
-- written anew: a new column for the order would rewrite it anyway.
ALTER TABLE calls RENAME TO earlier_calls;

CREATE TABLE calls (
    ws uuid NOT NULL,
    id uuid NOT NULL,
    -- The transaction that inserted the record, which orders records by arrival.
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    correlation text NOT NULL,
    -- The key that called, or else the person.
    principal uuid NOT NULL,
    user_id uuid NOT NULL,
    toolset text NOT NULL,
    tool text NOT NULL,
    path text COLLATE "C",
    -- Redacted JSON; NULL in records of earlier releases.
    args text,
    outcome text NOT NULL,
    message text,
    started_at timestamptz NOT NULL,
    duration_us bigint NOT NULL,
    commit_id uuid,
    approval_id uuid,
    CONSTRAINT calls_key PRIMARY KEY (ws, id)
);

-- Outcomes were the names of error kinds in the program's spelling: NotFound is not_found.
INSERT INTO calls (ws, id, correlation, principal, user_id, toolset, tool, outcome, started_at, duration_us, commit_id)
SELECT ws, id, id::text, caller, caller, toolset, tool, lower(ltrim(regexp_replace(outcome, '([A-Z])', '_\1', 'g'), '_')),
    started_at, duration_us, commit_id
FROM earlier_calls e ORDER BY e.id;

DROP TABLE earlier_calls;

CREATE INDEX calls_by_arrival ON calls (ws, xid);
CREATE INDEX calls_by_principal ON calls (ws, principal, id);

-- Server processes. Each updates its row every second.
CREATE TABLE instances (
    id uuid PRIMARY KEY,
    node text NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL
);

-- Calls with effects outside of the files of their workspace. A row is inserted before the effect and deleted when the
-- record of the call is inserted.
CREATE TABLE calls_running (
    ws uuid NOT NULL,
    id uuid NOT NULL,
    instance uuid NOT NULL,
    correlation text NOT NULL,
    principal uuid NOT NULL,
    user_id uuid NOT NULL,
    toolset text NOT NULL,
    tool text NOT NULL,
    path text COLLATE "C",
    args text,
    started_at timestamptz NOT NULL,
    PRIMARY KEY (ws, id)
);
CREATE INDEX calls_running_by_instance ON calls_running (instance);
