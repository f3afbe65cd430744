-- Memories of a workspace. `tags` is a JSON array. `id` is the row of `memory_words`.
CREATE TABLE memories (
    id INTEGER PRIMARY KEY,
    ws BLOB NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    tags TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    -- What it counts in the storage used.
    bytes INTEGER NOT NULL,
    user_id BLOB NOT NULL,
    agent_key BLOB
);
CREATE UNIQUE INDEX memories_by_key ON memories (ws, key);
CREATE INDEX memories_by_expiry ON memories (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE memory_tags (
    ws BLOB NOT NULL,
    tag TEXT NOT NULL,
    key TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (ws, tag, key)
) WITHOUT ROWID;
CREATE INDEX memory_tags_by_time ON memory_tags (ws, tag, updated_at, key);

CREATE TABLE memory_counts (
    ws BLOB NOT NULL PRIMARY KEY,
    memories INTEGER NOT NULL
) WITHOUT ROWID;

-- The words of memories. Each word begins with letters that stand for its workspace, so that a search reads only entries of
-- its own workspace.
CREATE VIRTUAL TABLE memory_words USING fts5(
    key, tags, value,
    content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co M*'"
);

CREATE TRIGGER memory_inserted AFTER INSERT ON memories BEGIN
    INSERT INTO memory_counts (ws, memories) VALUES (new.ws, 1) ON CONFLICT (ws) DO UPDATE SET memories = memories + 1;
    INSERT INTO memory_tags (ws, tag, key, updated_at) SELECT new.ws, value, new.key, new.updated_at FROM json_each(new.tags);
END;
CREATE TRIGGER memory_deleted AFTER DELETE ON memories BEGIN
    UPDATE memory_counts SET memories = memories - 1 WHERE ws = old.ws;
    DELETE FROM memory_tags WHERE ws = old.ws AND tag IN (SELECT value FROM json_each(old.tags)) AND key = old.key;
    DELETE FROM memory_words WHERE rowid = old.id;
END;
