-- What searches need. A signature tells of a content what it cannot hold. Contents from before have none and are always
-- read.
ALTER TABLE blobs ADD COLUMN signature bytea;
ALTER TABLE blobs ALTER COLUMN signature SET STORAGE EXTERNAL;

-- Which files changed in which transaction. A list that was read in a snapshot is brought up to date by what was
-- changed by transactions that this snapshot could not all see: those from its xmin on. A counter would not do, because
-- transactions do not become visible in the order of any number that they could take.
CREATE TABLE changes (
    ws uuid NOT NULL,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    file_id uuid NOT NULL
);
CREATE INDEX changes_by_transaction ON changes (ws, xid);

-- Which changes are still there: those from `kept` on. The next purge removes those before `next`.
CREATE TABLE changes_kept (
    kept xid8 NOT NULL,
    next xid8 NOT NULL
);
INSERT INTO changes_kept VALUES ('0', pg_snapshot_xmin(pg_current_snapshot()));
