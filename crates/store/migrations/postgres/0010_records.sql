-- The transaction that inserted the record, by which the feed finds what is new.
ALTER TABLE calls ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX calls_by_transaction ON calls (ws, xid);
