-- What the owner of a workspace has set for it, as JSON.
ALTER TABLE workspaces ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
