-- The history of folders has a limit of its own and is not counted; of folders only their chats are.
UPDATE storage_used SET bytes = (
    SELECT coalesce(sum(octet_length(m.content)), 0)::bigint FROM chat_messages m WHERE m.ws = storage_used.ws
) WHERE ws IN (SELECT id FROM workspaces WHERE kind = 1);
