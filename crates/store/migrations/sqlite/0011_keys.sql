-- Agent keys. A key is a member of its workspace: `user_id` is the id of the key, `via` the person who made it, and `role`
-- the lower of the person's role and `max_role`. So every statement that checks a membership also checks keys, at no cost.
ALTER TABLE members ADD COLUMN via BLOB;
ALTER TABLE members ADD COLUMN max_role INTEGER;
CREATE INDEX members_by_person ON members (via, ws) WHERE via IS NOT NULL;

-- `is_held`: the key itself is suspended, so enabling its account does not restore it.
ALTER TABLE suspended_members ADD COLUMN via BLOB;
ALTER TABLE suspended_members ADD COLUMN max_role INTEGER;
ALTER TABLE suspended_members ADD COLUMN is_held INTEGER NOT NULL DEFAULT 0;
CREATE INDEX suspended_members_by_person ON suspended_members (via, ws) WHERE via IS NOT NULL;

-- What is shown of keys. The secret contains the scope and the expiry, so no call reads this table. Toolsets and actions
-- are names, separated by commas.
CREATE TABLE keys (
    ws BLOB NOT NULL,
    id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    name TEXT NOT NULL,
    toolsets TEXT NOT NULL,
    actions TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    suspended_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER,
    PRIMARY KEY (ws, id)
) WITHOUT ROWID;
CREATE INDEX keys_by_person ON keys (user_id, ws);
CREATE INDEX keys_by_expiry ON keys (expires_at);
