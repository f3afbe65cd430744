-- Ids are 16-byte UUIDs, times microseconds since 1970, hashes 32 bytes. Every key of workspace data begins with `ws`.

CREATE TABLE users (
    id BLOB PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    password_hash TEXT NOT NULL,
    full_name TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- A refresh token is spent by its use; the tokens of one sign-in are a family.
CREATE TABLE sessions (
    token_hash BLOB PRIMARY KEY,
    family BLOB NOT NULL,
    user_id BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    spent_at INTEGER
) WITHOUT ROWID;
CREATE INDEX sessions_by_family ON sessions (family);

CREATE TABLE sign_in_attempts (
    key TEXT PRIMARY KEY,
    window_start INTEGER NOT NULL,
    count INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE workspaces (
    id BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    owner_id BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
) WITHOUT ROWID;

CREATE TABLE members (
    ws BLOB NOT NULL,
    user_id BLOB NOT NULL,
    role INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (ws, user_id)
) WITHOUT ROWID;
CREATE INDEX members_by_user ON members (user_id, ws);

-- The path is materialised: look-ups and listings are index look-ups, and a move rewrites paths in one statement. A
-- table with row numbers, because an index entry that ends in one is shorter and its row found faster.
CREATE TABLE files (
    ws BLOB NOT NULL,
    id BLOB NOT NULL,
    path TEXT NOT NULL,
    dir TEXT NOT NULL,
    name TEXT NOT NULL,
    display_name TEXT,
    kind INTEGER NOT NULL,
    is_virtual INTEGER NOT NULL DEFAULT 0,
    head_seq INTEGER,
    head_version BLOB,
    head_hash BLOB,
    head_blob BLOB,
    head_form INTEGER,
    size INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
);
CREATE UNIQUE INDEX files_by_id ON files (ws, id);
CREATE UNIQUE INDEX files_by_path ON files (ws, path) WHERE deleted_at IS NULL;
CREATE INDEX files_by_folder ON files (ws, dir, name) WHERE deleted_at IS NULL;
CREATE INDEX files_in_trash ON files (ws, deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX virtual_files ON files (ws, path) WHERE is_virtual = 1 AND deleted_at IS NULL;

CREATE TABLE versions (
    ws BLOB NOT NULL,
    file_id BLOB NOT NULL,
    seq INTEGER NOT NULL,
    id BLOB NOT NULL,
    hash BLOB NOT NULL,
    form INTEGER NOT NULL,
    blob BLOB NOT NULL,
    size INTEGER NOT NULL,
    author BLOB NOT NULL,
    commit_id BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (ws, file_id, seq)
) WITHOUT ROWID;

-- Contents by the SHA-256 of their bytes, once per workspace. Encoding 0 is raw, 1 is zstd.
CREATE TABLE blobs (
    ws BLOB NOT NULL,
    key BLOB NOT NULL,
    size INTEGER NOT NULL,
    encoding INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX blobs_by_key ON blobs (ws, key);

-- Contents that were replaced and wait to be compressed. Current ones stay raw, which makes reading and searching them
-- fast. A queue: a write adds to its end, which is cheap, and may add the same content twice.
CREATE TABLE superseded (
    place INTEGER PRIMARY KEY,
    ws BLOB NOT NULL,
    key BLOB NOT NULL
);

CREATE TABLE commits (
    ws BLOB NOT NULL,
    id BLOB NOT NULL,
    call_id BLOB NOT NULL,
    toolset TEXT NOT NULL,
    tool TEXT NOT NULL,
    author BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    undoes BLOB,
    changes TEXT NOT NULL,
    PRIMARY KEY (ws, id)
) WITHOUT ROWID;

CREATE TABLE calls (
    ws BLOB NOT NULL,
    id BLOB NOT NULL,
    toolset TEXT NOT NULL,
    tool TEXT NOT NULL,
    caller BLOB NOT NULL,
    started_at INTEGER NOT NULL,
    duration_us INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    commit_id BLOB,
    PRIMARY KEY (ws, id)
) WITHOUT ROWID;

CREATE TABLE chat_messages (
    ws BLOB NOT NULL,
    chat_id BLOB NOT NULL,
    seq INTEGER NOT NULL,
    id BLOB NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (ws, chat_id, seq)
) WITHOUT ROWID;
