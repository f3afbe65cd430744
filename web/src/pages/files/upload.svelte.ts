// Uploading files, one after the other.

import { messageOf } from '$lib/api';
import { plural } from '$lib/format';
import { toasts } from '$lib/toasts.svelte';
import { join, list, writeBase64 } from './files';

/** A file to upload, with its path below the folder. */
export type Upload = { path: string; file: File };

/** Files that are uploaded at once, at most. */
const MAX_FILES = 1_000;

/** Returns the files that were dropped, with what is in dropped folders. It must be called while the event is handled. */
export async function droppedFiles(data: DataTransfer): Promise<Upload[]> {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry !== null && entry !== undefined);
  if (entries.length === 0) return [...data.files].map((file) => ({ path: file.name, file }));
  const found: Upload[] = [];
  const visit = async (entry: FileSystemEntry, above: string): Promise<void> => {
    if (found.length > MAX_FILES) return;
    const path = above + entry.name;
    if (entry.isFile) {
      const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
      found.push({ path, file });
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
      if (some.length === 0) return;
      for (const one of some) await visit(one, `${path}/`);
    }
  };
  for (const entry of entries) await visit(entry, '');
  return found;
}

class Uploads {
  /** What is uploaded now. */
  progress = $state<{ done: number; of: number } | null>(null);

  /** Returns the names that are in the folder already. */
  async taken(workspace: string, folder: string, uploads: Upload[]): Promise<string[]> {
    const names = new Set((await list(workspace, folder).catch(() => [])).map((entry) => entry.name));
    return [...new Set(uploads.map((upload) => upload.path.split('/')[0] ?? ''))].filter((name) => names.has(name));
  }

  async send(workspace: string, folder: string, uploads: Upload[]) {
    if (uploads.length > MAX_FILES) {
      toasts.error(`These are more than ${plural(MAX_FILES, 'file')}. Upload fewer at once.`);
      return;
    }
    this.progress = { done: 0, of: uploads.length };
    let done = 0;
    try {
      for (const { path, file } of uploads) {
        await writeBase64(workspace, join(folder, path), await base64Of(file));
        done += 1;
        this.progress = { done, of: uploads.length };
      }
      toasts.ok(uploads.length === 1 ? `Uploaded ${uploads[0]?.path}` : `Uploaded ${plural(done, 'file')}`);
    } catch (error) {
      const name = uploads[done]?.path;
      toasts.error(`${name} was not uploaded: ${messageOf(error)}${done > 0 ? ` ${plural(done, 'file')} before it were.` : ''}`);
    } finally {
      this.progress = null;
    }
  }
}

export const uploads = new Uploads();

function base64Of(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(',', 2)[1] ?? '');
    reader.onerror = () => reject(reader.error ?? new Error('The file could not be read'));
    reader.readAsDataURL(file);
  });
}
