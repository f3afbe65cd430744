-- The store's tables with 2,000 files of one version each, in a workspace that one user may write to.
INSERT INTO members (ws, user_id, role, created_at)
VALUES ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000001', 3, now());
INSERT INTO files (ws, id, path, dir, name, kind, head_seq, head_version, head_hash, head_blob, head_form, size,
    created_at, updated_at)
SELECT '00000000-0000-0000-0000-000000000001', gen_random_uuid(),
    '/src/folder-' || i % 40 || '/file-' || i || '.rs', '/src/folder-' || i % 40, 'file-' || i || '.rs', 1, 1,
    gen_random_uuid(), sha256(i::text::bytea), sha256(i::text::bytea), 0, 4096, now(), now()
FROM generate_series(0, 1999) i;
INSERT INTO versions (ws, file_id, seq, id, hash, form, blob, size, author, commit_id, created_at)
SELECT ws, id, 1, head_version, head_hash, 0, head_blob, 4096, ws, id, now() FROM files;
INSERT INTO blobs (ws, key, size, encoding, data)
SELECT ws, head_blob, 4096, 0, repeat(md5(path), 128)::bytea FROM files;
