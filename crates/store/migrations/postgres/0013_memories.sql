-- Memories of a workspace. `words` are the words of the key, the tags and the value. Each word begins with letters that stand
-- for its workspace, so that a search reads only entries of its own workspace.
CREATE TABLE memories (
    ws uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    value text NOT NULL,
    tags text[] NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    expires_at timestamptz,
    -- What it counts in the storage used.
    bytes bigint NOT NULL,
    user_id uuid NOT NULL,
    agent_key uuid,
    words tsvector NOT NULL,
    PRIMARY KEY (ws, key)
);
CREATE INDEX memories_by_words ON memories USING gin (words);
CREATE INDEX memories_by_expiry ON memories (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE memory_tags (
    ws uuid NOT NULL,
    tag text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (ws, tag, key)
);
CREATE INDEX memory_tags_by_time ON memory_tags (ws, tag, updated_at, key);

-- The number of memories. A transaction that changes the memories of a workspace locks its row.
CREATE TABLE memory_counts (
    ws uuid PRIMARY KEY,
    memories bigint NOT NULL
);
