-- The revision of the rules and grants that apply to a member. It changes with them, so that a statement which checks the
-- membership also notices that a call was judged by outdated rules. `rights` has both in one number.
ALTER TABLE members ADD COLUMN rules_rev bigint NOT NULL DEFAULT 0;
ALTER TABLE members ADD COLUMN rights bigint NOT NULL GENERATED ALWAYS AS (rules_rev * 4 + role) STORED;

-- The rules of a workspace, as JSON.
CREATE TABLE rules (
    ws uuid PRIMARY KEY,
    rev bigint NOT NULL,
    body text NOT NULL,
    updated_by uuid NOT NULL,
    updated_at timestamptz NOT NULL
);

-- Permissions for the calls of one member. `body` is JSON.
CREATE TABLE grants (
    ws uuid NOT NULL,
    id uuid NOT NULL,
    principal uuid NOT NULL,
    expires_at timestamptz NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (ws, id)
);
CREATE INDEX grants_by_principal ON grants (ws, principal);

-- Calls that wait, or waited, for a person. What is looked up has columns, and what may be long, so that lists can leave it
-- out; the rest is JSON in `body`.
CREATE TABLE approvals (
    ws uuid NOT NULL,
    id uuid NOT NULL,
    call_id uuid NOT NULL,
    -- The key that called, or else the person.
    principal uuid NOT NULL,
    user_id uuid NOT NULL,
    toolset text NOT NULL,
    tool text NOT NULL,
    correlation text NOT NULL,
    attach_key text NOT NULL,
    state text NOT NULL,
    revision bigint NOT NULL,
    -- The machine that must run it.
    node text,
    -- The server process that runs it.
    executor uuid,
    commit_id uuid,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    delivered_at timestamptz,
    body text NOT NULL,
    args text NOT NULL,
    diff text NOT NULL,
    command text,
    result text,
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
    ws uuid NOT NULL,
    approval_id uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    -- The transaction that inserted the event, which orders events by arrival.
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at timestamptz NOT NULL,
    kind text NOT NULL,
    state text NOT NULL,
    revision bigint NOT NULL,
    by uuid,
    via text,
    address text,
    detail text NOT NULL,
    PRIMARY KEY (ws, approval_id, seq)
);
CREATE INDEX approval_events_by_arrival ON approval_events (ws, xid);
