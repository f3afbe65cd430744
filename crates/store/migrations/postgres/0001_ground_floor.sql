-- Every key of workspace data begins with `ws`, so that a distributed PostgreSQL can shard by it. Paths compare bytewise.

CREATE TABLE users (
    id uuid PRIMARY KEY,
    email text NOT NULL UNIQUE,
    password_hash text NOT NULL,
    full_name text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- A refresh token is spent by its use; the tokens of one sign-in are a family.
CREATE TABLE sessions (
    token_hash bytea PRIMARY KEY,
    family uuid NOT NULL,
    user_id uuid NOT NULL,
    expires_at timestamptz NOT NULL,
    spent_at timestamptz
);
CREATE INDEX sessions_by_family ON sessions (family);

CREATE TABLE sign_in_attempts (
    key text PRIMARY KEY,
    window_start timestamptz NOT NULL,
    count integer NOT NULL
);

CREATE TABLE secrets (
    name text PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE workspaces (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    owner_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    deleted_at timestamptz
);

CREATE TABLE members (
    ws uuid NOT NULL,
    user_id uuid NOT NULL,
    role smallint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (ws, user_id)
);
CREATE INDEX members_by_user ON members (user_id, ws);

-- The path is materialised: look-ups and listings are index look-ups, and a move rewrites paths in one statement.
-- Room is left on each page, because every write updates its file's row in place.
CREATE TABLE files (
    ws uuid NOT NULL,
    id uuid NOT NULL,
    path text COLLATE "C" NOT NULL,
    dir text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    display_name text,
    kind smallint NOT NULL,
    is_virtual boolean NOT NULL DEFAULT false,
    head_seq bigint,
    head_version uuid,
    head_hash bytea,
    head_blob bytea,
    head_form smallint,
    size bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    deleted_at timestamptz,
    PRIMARY KEY (ws, id)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX files_by_path ON files (ws, path) WHERE deleted_at IS NULL;
CREATE INDEX files_by_folder ON files (ws, dir, name) WHERE deleted_at IS NULL;
CREATE INDEX files_in_trash ON files (ws, deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX virtual_files ON files (ws, path) WHERE is_virtual AND deleted_at IS NULL;

CREATE TABLE versions (
    ws uuid NOT NULL,
    file_id uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    hash bytea NOT NULL,
    form smallint NOT NULL,
    blob bytea NOT NULL,
    size bigint NOT NULL,
    author uuid NOT NULL,
    commit_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (ws, file_id, seq)
);

-- Contents by the SHA-256 of their bytes, once per workspace. Encoding 0 is raw, 1 is zstd; PostgreSQL need not try.
CREATE TABLE blobs (
    ws uuid NOT NULL,
    key bytea NOT NULL,
    size bigint NOT NULL,
    encoding smallint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (ws, key)
);
ALTER TABLE blobs ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE commits (
    ws uuid NOT NULL,
    id uuid NOT NULL,
    call_id uuid NOT NULL,
    toolset text NOT NULL,
    tool text NOT NULL,
    author uuid NOT NULL,
    created_at timestamptz NOT NULL,
    undoes uuid,
    changes text NOT NULL,
    PRIMARY KEY (ws, id)
);

CREATE TABLE calls (
    ws uuid NOT NULL,
    id uuid NOT NULL,
    toolset text NOT NULL,
    tool text NOT NULL,
    caller uuid NOT NULL,
    started_at timestamptz NOT NULL,
    duration_us bigint NOT NULL,
    outcome text NOT NULL,
    commit_id uuid,
    PRIMARY KEY (ws, id)
);

CREATE TABLE chat_messages (
    ws uuid NOT NULL,
    chat_id uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    role text NOT NULL,
    content text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (ws, chat_id, seq)
);
