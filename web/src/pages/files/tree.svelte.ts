// The tree of files. A folder is read when it is opened, and again when something in it changes.

import { messageOf } from '$lib/api';
import { feed } from '$lib/feed.svelte';
import { SvelteMap, SvelteSet } from 'svelte/reactivity';
import { type Entry, list, parentOf } from './files';

export type Row = Entry & { depth: number; isOpen: boolean; note?: string };

/** Changes that arrive within this time are read together. */
const COLLECT_MS = 200;

export class Tree {
  #folders = new SvelteMap<string, Entry[] | { error: string } | null>();
  #open = new SvelteSet<string>(['/']);
  #stale = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly workspace: string) {}

  /** The rows that are shown, from top to bottom. */
  rows = $derived.by(() => {
    const rows: Row[] = [];
    const add = (folder: string, depth: number) => {
      const entries = this.#folders.get(folder);
      if (entries === undefined) return;
      if (entries === null) return void rows.push(note(folder, depth, 'Loading…'));
      if (!Array.isArray(entries)) return void rows.push(note(folder, depth, entries.error));
      if (entries.length === 0 && depth > 0) rows.push(note(folder, depth, 'empty'));
      for (const entry of entries) {
        const isOpen = entry.kind === 'directory' && this.#open.has(entry.path);
        rows.push({ ...entry, depth, isOpen });
        if (isOpen) add(entry.path, depth + 1);
      }
    };
    add('/', 0);
    return rows;
  });

  /** Whether the workspace has no files; undefined until it is known. */
  isEmpty = $derived.by(() => {
    const root = this.#folders.get('/');
    return Array.isArray(root) ? root.length === 0 : undefined;
  });

  entries(folder: string): Entry[] | undefined {
    const entries = this.#folders.get(folder);
    return Array.isArray(entries) ? entries : undefined;
  }

  error(folder: string): string | undefined {
    const entries = this.#folders.get(folder);
    return entries && !Array.isArray(entries) ? entries.error : undefined;
  }

  /** Reads the tree and follows what changes in it. Returns the end of it, for `$effect`. */
  follow(): () => void {
    void this.read('/');
    const again = () => [...this.#folders.keys()].forEach((folder) => this.#note(folder));
    const ends = [
      feed.on('commit', (commit) => {
        if (commit.more_changes > 0) return again();
        for (const change of commit.changes) {
          // Folders above may be new too.
          for (const path of [change.path, change.from]) if (path) this.#noteAbove(path);
        }
      }),
      feed.on('file', (event) => {
        if (event.event === 'unknown') return again();
        if (event.event === 'changed') return;
        for (const path of [event.path, event.from]) if (path) this.#noteAbove(path);
      }),
      feed.on('gap', again),
      feed.on('ready', again),
    ];
    return () => {
      clearTimeout(this.#timer);
      ends.forEach((end) => end());
    };
  }

  async read(folder: string) {
    if (!this.#folders.has(folder)) this.#folders.set(folder, null);
    try {
      this.#folders.set(folder, await list(this.workspace, folder));
    } catch (error) {
      this.#folders.set(folder, { error: messageOf(error) });
    }
  }

  isOpen(folder: string): boolean {
    return this.#open.has(folder);
  }

  async open(folder: string) {
    this.#open.add(folder);
    if (!this.entries(folder)) await this.read(folder);
  }

  close(folder: string) {
    this.#open.delete(folder);
    // It is read again when it is opened, so a closed folder costs nothing when it changes.
    for (const known of [...this.#folders.keys()]) if (known !== '/' && (known === folder || known.startsWith(`${folder}/`))) this.#folders.delete(known);
  }

  toggle(folder: string) {
    if (this.isOpen(folder)) this.close(folder);
    else void this.open(folder);
  }

  /** Opens the folders above a path. */
  async reveal(path: string) {
    const above: string[] = [];
    for (let folder = parentOf(path); folder !== '/'; folder = parentOf(folder)) above.unshift(folder);
    for (const folder of above) {
      if (this.#open.has(folder) && this.entries(folder)) continue;
      await this.open(folder);
      if (!this.entries(folder)) return;
    }
  }

  #noteAbove(path: string) {
    for (let folder = parentOf(path); ; folder = parentOf(folder)) {
      this.#note(folder);
      if (folder === '/') return;
    }
  }

  #note(folder: string) {
    if (!this.#folders.has(folder)) return;
    this.#stale.add(folder);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const stale = [...this.#stale];
      this.#stale.clear();
      for (const one of stale) void this.read(one);
    }, COLLECT_MS);
  }
}

function note(folder: string, depth: number, text: string): Row {
  return { path: `${folder}\0`, name: text, kind: 'file', size: 0, modified: '', depth, isOpen: false, note: text };
}
