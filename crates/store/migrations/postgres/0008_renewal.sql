-- How far versions of earlier releases have been renewed, which knew fewer forms of text and counted the size of JSON in
-- another way. The row is there as long as some are left.
CREATE TABLE renewal (
    ws uuid NOT NULL,
    file_id uuid NOT NULL,
    seq bigint NOT NULL
);
INSERT INTO renewal SELECT '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000', 0
WHERE EXISTS (SELECT 1 FROM versions);
