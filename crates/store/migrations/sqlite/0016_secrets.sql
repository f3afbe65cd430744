-- Secrets of a workspace, encrypted. `sealing_key` identifies the key.
CREATE TABLE workspace_secrets (
    ws BLOB NOT NULL,
    name TEXT NOT NULL,
    sealing_key BLOB NOT NULL,
    sealed BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by BLOB NOT NULL,
    PRIMARY KEY (ws, name)
) WITHOUT ROWID;
