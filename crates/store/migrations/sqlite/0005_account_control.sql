-- What an operator does to an account. Access tokens name the epoch they were issued in; those of an earlier one are
-- refused.
ALTER TABLE users ADD COLUMN disabled_at INTEGER;
ALTER TABLE users ADD COLUMN token_epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN tokens_revoked_at INTEGER;
CREATE INDEX users_with_revoked_tokens ON users (tokens_revoked_at) WHERE tokens_revoked_at IS NOT NULL;

-- The memberships of disabled accounts. They are not in `members`, so that every statement which asks for a membership
-- refuses such an account, at no cost.
CREATE TABLE suspended_members (
    ws BLOB NOT NULL,
    user_id BLOB NOT NULL,
    role INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (ws, user_id)
) WITHOUT ROWID;
CREATE INDEX suspended_members_by_user ON suspended_members (user_id, ws);
