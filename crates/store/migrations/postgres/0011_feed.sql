-- The transaction that made the commit, by which the feed finds what is new. Existing commits get the transaction of this
-- migration, which is older than any cursor.
ALTER TABLE commits ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX commits_by_transaction ON commits (ws, xid);

-- The newest transaction of which purges deleted an event, by workspace and source (0 commits, 1 calls). A reader whose
-- cursor lies before it has missed something.
CREATE TABLE feed_purged (
    ws uuid NOT NULL,
    source smallint NOT NULL,
    upto bigint NOT NULL,
    PRIMARY KEY (ws, source)
);
