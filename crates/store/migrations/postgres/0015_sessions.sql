-- Results that were too long for an answer, kept for a while for the caller who got the answer. `principal` is that caller: a
-- key or a person; `person` is the person.
CREATE TABLE results (
    ws uuid NOT NULL,
    principal uuid NOT NULL,
    id text COLLATE "C" NOT NULL,
    person uuid NOT NULL,
    bytes bigint NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (ws, principal, id)
);
CREATE INDEX results_by_person ON results (person, created_at);
CREATE INDEX results_by_expiry ON results (expires_at);

-- The bytes of results, in parts. `size` is the size before compression.
CREATE TABLE result_parts (
    ws uuid NOT NULL,
    principal uuid NOT NULL,
    result text COLLATE "C" NOT NULL,
    n integer NOT NULL,
    size bigint NOT NULL,
    encoding smallint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (ws, principal, result, n),
    FOREIGN KEY (ws, principal, result) REFERENCES results ON DELETE CASCADE
);
ALTER TABLE result_parts ALTER COLUMN data SET STORAGE EXTERNAL;

-- The commits of each session, with the words for them.
CREATE TABLE session_commits (
    ws uuid NOT NULL,
    commit_id uuid NOT NULL,
    principal uuid NOT NULL,
    session text NOT NULL,
    label text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (ws, commit_id)
);
CREATE INDEX session_commits_by_caller ON session_commits (ws, principal, at);

-- Commits are named by the last digits of their ids.
CREATE INDEX commits_by_suffix ON commits (ws, right(id::text, 8));
