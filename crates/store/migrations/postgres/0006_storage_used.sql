-- How many bytes a workspace stores. Updated behind the writes, so that they do not wait for each other at this row.
CREATE TABLE storage_used (
    ws uuid PRIMARY KEY,
    bytes bigint NOT NULL
);
INSERT INTO storage_used SELECT ws, sum(size)::bigint FROM blobs GROUP BY ws;

-- The workspaces of an account.
CREATE INDEX workspaces_by_owner ON workspaces (owner_id);
