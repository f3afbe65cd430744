-- Workspaces whose files lie in a real folder; the tables then hold its history. Kind 0 is the database, 1 a folder.
ALTER TABLE workspaces ADD COLUMN kind smallint NOT NULL DEFAULT 0;
ALTER TABLE workspaces ADD COLUMN root text;

-- The mode that a file of a folder was last seen with, so that it comes back from the trash as it was.
ALTER TABLE files ADD COLUMN mode integer;
