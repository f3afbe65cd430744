// The events of the workspace that is shown (docs/events.md). All pages share one stream.

import { address, api } from './api';
import type { FeedEvents } from './types';

type Listener<Name extends keyof FeedEvents> = (event: FeedEvents[Name]) => void;
type Any = Listener<keyof FeedEvents>;

const NAMES = ['ready', 'gap', 'call', 'commit', 'approval', 'file'] as const satisfies (keyof FeedEvents)[];
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

class Feed {
  state = $state<'connecting' | 'live' | 'lost'>('connecting');
  #workspace: string | null = null;
  #source: EventSource | null = null;
  #last = '';
  #retryMs = FIRST_RETRY_MS;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #listeners = new Map<keyof FeedEvents, Set<Any>>();

  /** Listens to a workspace, and to no other. */
  open(workspace: string) {
    if (this.#workspace === workspace) return;
    this.close();
    this.#workspace = workspace;
    this.#connect();
  }

  close() {
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#source = null;
    this.#workspace = null;
    this.#last = '';
    this.state = 'connecting';
  }

  /**
   * Calls the function with every event of that name; returns the end of it, for `$effect`. After `ready` and `gap`
   * events may be missing, so a list is read again.
   */
  on<Name extends keyof FeedEvents>(name: Name, listener: Listener<Name>): () => void {
    const all = this.#listeners.get(name) ?? new Set<Any>();
    this.#listeners.set(name, all);
    all.add(listener as Any);
    return () => all.delete(listener as Any);
  }

  #connect() {
    if (!this.#workspace) return;
    const source = new EventSource(address(`/workspaces/${this.#workspace}/events`, { after: this.#last }));
    this.#source = source;
    for (const name of NAMES) {
      source.addEventListener(name, (event: MessageEvent<string>) => {
        if (event.lastEventId) this.#last = event.lastEventId;
        this.state = 'live';
        this.#retryMs = FIRST_RETRY_MS;
        const data = JSON.parse(event.data) as FeedEvents[typeof name];
        for (const listener of this.#listeners.get(name) ?? []) listener(data);
      });
    }
    source.onerror = () => {
      this.state = 'lost';
      // The browser reconnects by itself, unless the server refused: then the session may have ended.
      if (source.readyState !== EventSource.CLOSED || this.#source !== source) return;
      this.#retry = setTimeout(() => {
        const again = () => this.#source === source && this.#connect();
        api.get('/auth/me').then(again, again);
      }, this.#retryMs);
      this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS);
    };
  }
}

export const feed = new Feed();
