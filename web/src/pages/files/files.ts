// Reading and changing files.

import { ApiError, api, isRecord, send } from '$lib/api';
import { contentPath, use } from '$lib/tools';

export type Entry = { path: string; name: string; kind: 'file' | 'directory' | 'symlink'; size: number; modified: string };

export type FileInfo = {
  id: string;
  name: string;
  path: string;
  file_type: string;
  is_virtual: boolean;
  size: number;
  hash: string | null;
  updated_at: string;
  deleted_at: string | null;
};

export type Version = { id: string; seq: number; hash: string; size: number; author: string; commit_id: string; created_at: string };

export type TextFile = { content: string; size: number; modified: string; hash?: string };

/** The toolset `system` takes paths relative to the root. */
const relative = (path: string) => path.replace(/^\/+/, '') || '.';

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

export function join(folder: string, name: string): string {
  return folder === '/' ? `/${name}` : `${folder}/${name}`;
}

/** Lists a folder: folders first, then by name. */
export async function list(workspace: string, folder: string): Promise<Entry[]> {
  type Listed = { entries: { name: string; path: string; file_type: string; is_link: boolean; size: number; updated_at: string }[] };
  const { entries } = await api.get<Listed>(`/workspaces/${workspace}/list`, { query: { path: folder } });
  const order = new Intl.Collator(undefined, { numeric: true }).compare;
  const rank = (entry: Entry) => (entry.kind === 'directory' ? 0 : 1);
  return entries
    .map(({ name, path, file_type, is_link, size, updated_at }): Entry => {
      const kind = is_link ? 'symlink' : file_type === 'Folder' ? 'directory' : 'file';
      return { path, name, kind, size, modified: updated_at };
    })
    .sort((a, b) => rank(a) - rank(b) || order(a.name, b.name));
}

/** Returns what is at a path, or was removed from there last; null if there is nothing. */
export async function inspect(workspace: string, path: string): Promise<FileInfo | null> {
  try {
    return (await api.get<{ file: FileInfo }>(historyPath(workspace, path), { query: { limit: 1 } })).file;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

function historyPath(workspace: string, path: string): string {
  return contentPath(workspace, path).replace('/content/', '/history/');
}

export type History = { file: FileInfo; versions: Version[]; truncated: boolean };

export async function readHistory(workspace: string, path: string): Promise<History> {
  const history = await api.get<History>(historyPath(workspace, path), { query: { limit: 200 } });
  // What is in a folder has a hash only once it is read.
  const hasHash = history.file.hash !== null || history.file.deleted_at !== null || history.versions.length === 0;
  return hasHash ? history : { ...history, file: { ...history.file, hash: await currentHash(workspace, path) } };
}

async function currentHash(workspace: string, path: string): Promise<string | null> {
  const args = { path: relative(path), encoding: 'base64' };
  return (await use<TextFile>(workspace, 'system', 'read_file', args)).hash ?? null;
}

export type Content = { text: string; isText: true } | { base64: string; isText: false };

/** Reads an earlier version. */
export async function readVersion(workspace: string, file: string, version: string): Promise<Content> {
  const answer = await api.get<{ content: unknown; encoding?: 'base64' }>(`/workspaces/${workspace}/files/${file}/versions/${version}`);
  return contentOf(answer);
}

/** Reads a file in the trash. */
export async function readRemoved(workspace: string, file: string): Promise<Content> {
  return contentOf(await api.get(`/workspaces/${workspace}/files/${file}`));
}

function contentOf({ content, encoding }: { content: unknown; encoding?: 'base64' }): Content {
  if (encoding === 'base64') return { base64: String(content), isText: false };
  if (typeof content === 'string') return { text: content, isText: true };
  const isDocument = isRecord(content) && Object.keys(content).length === 1 && typeof content.text === 'string';
  return { text: isDocument ? String(content.text) : JSON.stringify(content, null, 2), isText: true };
}

/** Reads a text with its hash. An error with the code `BINARY_FILE` says that it is none. */
export function readText(workspace: string, path: string): Promise<TextFile> {
  return use<TextFile>(workspace, 'system', 'read_file', { path: relative(path) });
}

/** Reads the first bytes of a file. */
export async function readBeginning(workspace: string, path: string, count: number): Promise<Uint8Array> {
  // A range of an empty file cannot be satisfied.
  const response = await send('GET', contentPath(workspace, path), undefined, { headers: { Range: `bytes=0-${count - 1}` } });
  return new Uint8Array(await response.arrayBuffer());
}

export type Written = { path: string; size: number; hash: string; diff: string };

/** Writes a text. With the hash it was read with, a file that changed since is not overwritten (409). */
export function writeText(workspace: string, path: string, content: string, expectedHash?: string): Promise<Written> {
  return use(workspace, 'system', 'write_file', { path: relative(path), content, createDirs: true, ...(expectedHash ? { expectedHash } : {}) });
}

export function writeBase64(workspace: string, path: string, content: string, expectedHash?: string): Promise<Written> {
  const args = { path: relative(path), content, encoding: 'base64', createDirs: true, ...(expectedHash ? { expectedHash } : {}) };
  return use(workspace, 'system', 'write_file', args);
}

export function makeFolder(workspace: string, path: string): Promise<unknown> {
  return use(workspace, 'workspace', 'mkdir', { path });
}

export function remove(workspace: string, path: string, isFolder: boolean): Promise<{ deleted: string[] }> {
  return use(workspace, 'system', 'delete_file', { path: relative(path), ...(isFolder ? { recursive: true } : {}) });
}

export function move(workspace: string, from: string, to: string): Promise<unknown> {
  return use(workspace, 'workspace', 'mv', { source: from, destination: to });
}

const PICTURES: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  avif: 'image/avif',
  bmp: 'image/bmp',
  ico: 'image/x-icon',
  svg: 'image/svg+xml',
};

/** The media type of a picture, by the ending of its name; undefined for other files. */
export function pictureType(path: string): string | undefined {
  return PICTURES[endingOf(path)];
}

export function endingOf(path: string): string {
  const name = nameOf(path);
  return name.includes('.') ? name.slice(name.lastIndexOf('.') + 1).toLowerCase() : '';
}
