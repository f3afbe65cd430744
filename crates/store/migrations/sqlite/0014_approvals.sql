-- The revision of the rules and grants that apply to a member. It changes with them, so that a statement which checks the
-- membership also notices that a call was judged by outdated rules.
ALTER TABLE members ADD COLUMN rules_rev INTEGER NOT NULL DEFAULT 0;

-- The rules of a workspace, as JSON.
CREATE TABLE rules (
    ws BLOB NOT NULL PRIMARY KEY,
    rev INTEGER NOT NULL,
    body TEXT NOT NULL,
    updated_by BLOB NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Permissions for the calls of one member. `body` is JSON.
CREATE TABLE grants (
    ws BLOB NOT NULL,
    id BLOB NOT NULL,
    principal BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (ws, id)
);
CREATE INDEX grants_by_principal ON grants (ws, principal);

-- Calls that wait, or waited, for a person. What is looked up has columns, and what may be long, so that lists can leave it
-- out; the rest is JSON in `body`.
CREATE TABLE approvals (
    ws BLOB NOT NULL,
    id BLOB NOT NULL,
    call_id BLOB NOT NULL,
    -- The key that called, or else the person.
    principal BLOB NOT NULL,
    user_id BLOB NOT NULL,
    toolset TEXT NOT NULL,
    tool TEXT NOT NULL,
    correlation TEXT NOT NULL,
    attach_key TEXT NOT NULL,
    state TEXT NOT NULL,
    revision INTEGER NOT NULL,
    -- The machine that must run it.
    node TEXT,
    -- The server process that runs it.
    executor BLOB,
    commit_id BLOB,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    delivered_at INTEGER,
    body TEXT NOT NULL,
    args TEXT NOT NULL,
    diff TEXT NOT NULL,
    command TEXT,
    result TEXT,
    PRIMARY KEY (ws, id)
);
CREATE UNIQUE INDEX approvals_open ON approvals (ws, attach_key) WHERE state IN ('pending', 'approved', 'executing');
CREATE INDEX approvals_open_by_principal ON approvals (ws, principal) WHERE state IN ('pending', 'approved', 'executing');
CREATE INDEX approvals_open_by_person ON approvals (user_id) WHERE state IN ('pending', 'approved', 'executing');
CREATE INDEX approvals_open_by_expiry ON approvals (state, expires_at) WHERE state IN ('pending', 'approved', 'executing');
CREATE INDEX approvals_by_state ON approvals (ws, state, id);
CREATE INDEX approvals_by_attach_key ON approvals (ws, attach_key, id);
CREATE INDEX approvals_by_principal ON approvals (ws, principal, id);

-- What happened to approvals. Rows are never changed.
CREATE TABLE approval_events (
    ws BLOB NOT NULL,
    approval_id BLOB NOT NULL,
    seq INTEGER NOT NULL,
    id BLOB NOT NULL,
    -- Orders the events of the workspace by arrival. A number is never used twice.
    pos INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    revision INTEGER NOT NULL,
    by BLOB,
    via TEXT,
    address TEXT,
    detail TEXT NOT NULL,
    PRIMARY KEY (ws, approval_id, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX approval_events_by_arrival ON approval_events (ws, pos);
