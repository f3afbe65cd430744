-- Slices are removed some at a time, so that nobody waits for the whole of a large content. A content that goes leaves
-- its slices as those of a commit that never came, which are removed in turns.
DROP TRIGGER slices_go_with_their_blob;
DROP TRIGGER slices_go_when_their_blob_is_dropped;
CREATE TRIGGER slices_wait_for_removal AFTER DELETE ON blobs WHEN old.encoding >= 3
BEGIN INSERT INTO staged_blobs (ws, key, staged_at) VALUES (old.ws, old.key, 0)
    ON CONFLICT DO UPDATE SET staged_at = max(0, staged_at); END;
CREATE TRIGGER slices_of_dropped_wait_for_removal AFTER UPDATE OF encoding ON blobs
WHEN old.encoding >= 3 AND new.encoding < 3
BEGIN INSERT INTO staged_blobs (ws, key, staged_at) VALUES (old.ws, old.key, 0)
    ON CONFLICT DO UPDATE SET staged_at = max(0, staged_at); END;
