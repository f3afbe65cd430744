-- Results that were too long for an answer, kept for a while for the caller who got the answer. `principal` is that caller: a
-- key or a person; `person` is the person.
CREATE TABLE results (
    ws BLOB NOT NULL,
    principal BLOB NOT NULL,
    id TEXT NOT NULL,
    person BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (ws, principal, id)
) WITHOUT ROWID;
CREATE INDEX results_by_person ON results (person, created_at);
CREATE INDEX results_by_expiry ON results (expires_at);

-- The bytes of results, in parts, so that none of them makes other writes wait. `size` is the size before compression.
CREATE TABLE result_parts (
    ws BLOB NOT NULL,
    principal BLOB NOT NULL,
    result TEXT NOT NULL,
    n INTEGER NOT NULL,
    size INTEGER NOT NULL,
    encoding INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX result_parts_by_place ON result_parts (ws, principal, result, n);
CREATE TRIGGER result_deleted AFTER DELETE ON results BEGIN
    DELETE FROM result_parts WHERE ws = old.ws AND principal = old.principal AND result = old.id;
END;

-- The commits of each session, with the words for them.
CREATE TABLE session_commits (
    ws BLOB NOT NULL,
    commit_id BLOB NOT NULL,
    principal BLOB NOT NULL,
    session TEXT NOT NULL,
    label TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (ws, commit_id)
) WITHOUT ROWID;
CREATE INDEX session_commits_by_caller ON session_commits (ws, principal, at);

-- Commits are named by the last digits of their ids.
CREATE INDEX commits_by_suffix ON commits (ws, substr(id, 13));
