-- Secrets of a workspace, encrypted. `sealing_key` identifies the key.
CREATE TABLE workspace_secrets (
    ws uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    sealing_key bytea NOT NULL,
    sealed bytea NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    updated_by uuid NOT NULL,
    PRIMARY KEY (ws, name)
);
