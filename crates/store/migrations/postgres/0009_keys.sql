-- Agent keys. A key is a member of its workspace: `user_id` is the id of the key, `via` the person who made it, and `role`
-- the lower of the person's role and `max_role`. So every statement that checks a membership also checks keys, at no cost.
ALTER TABLE members ADD COLUMN via uuid;
ALTER TABLE members ADD COLUMN max_role smallint;
CREATE INDEX members_by_person ON members (via, ws) WHERE via IS NOT NULL;

-- `is_held`: the key itself is suspended, so enabling its account does not restore it.
ALTER TABLE suspended_members ADD COLUMN via uuid;
ALTER TABLE suspended_members ADD COLUMN max_role smallint;
ALTER TABLE suspended_members ADD COLUMN is_held boolean NOT NULL DEFAULT false;
CREATE INDEX suspended_members_by_person ON suspended_members (via, ws) WHERE via IS NOT NULL;

-- What is shown of keys. The secret contains the scope and the expiry, so no call reads this table. Toolsets and actions
-- are names, separated by commas.
CREATE TABLE keys (
    ws uuid NOT NULL,
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    name text NOT NULL,
    toolsets text NOT NULL,
    actions text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    suspended_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    PRIMARY KEY (ws, id)
);
CREATE INDEX keys_by_person ON keys (user_id, ws);
CREATE INDEX keys_by_expiry ON keys (expires_at);
