-- What an operator does to an account. Access tokens name the epoch they were issued in; those of an earlier one are
-- refused.
ALTER TABLE users ADD COLUMN disabled_at timestamptz;
ALTER TABLE users ADD COLUMN token_epoch bigint NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN tokens_revoked_at timestamptz;
CREATE INDEX users_with_revoked_tokens ON users (tokens_revoked_at) WHERE tokens_revoked_at IS NOT NULL;

-- The memberships of disabled accounts. They are not in `members`, so that every statement which asks for a membership
-- refuses such an account, at no cost.
CREATE TABLE suspended_members (
    ws uuid NOT NULL,
    user_id uuid NOT NULL,
    role smallint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (ws, user_id)
);
CREATE INDEX suspended_members_by_user ON suspended_members (user_id, ws);
