// The list of calls, which grows as calls end. The feed says that there is something new; the records are then read, with
// the filter applied by the server.

import { type Query, messageOf } from '$lib/api';
import { readCall, readCalls } from '$lib/calls';
import { feed } from '$lib/feed.svelte';
import type { Call } from '$lib/types';

const PAGE = 200;
/** Calls that end within this time are read together. */
const COLLECT_MS = 150;

export class CallList {
  calls = $state.raw<Call[]>([]);
  isLoaded = $state(false);
  error = $state('');
  /** Calls that ended while the list was paused. */
  missed = $state(0);
  isPaused = $state(false);
  #next: string | null = null;
  #isReading = false;
  #isClosed = false;
  #ended = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly workspace: string,
    readonly filter: Query,
  ) {}

  /** Reads the list and follows the feed. Returns the end of it, for `$effect`. */
  follow(): () => void {
    void this.#read();
    const ends = [
      feed.on('call', (call) => this.#note(call.id)),
      feed.on('gap', () => void this.#read()),
      feed.on('ready', () => void this.#read()),
    ];
    return () => {
      this.#isClosed = true;
      clearTimeout(this.#timer);
      ends.forEach((end) => end());
    };
  }

  resume() {
    this.isPaused = false;
    this.missed = 0;
    void this.#readEnded();
  }

  /** Reads older calls. */
  async more() {
    if (!this.#next || this.#isReading) return;
    await this.#attempt(async () => {
      const page = await readCalls(this.workspace, { ...this.filter, limit: PAGE, before: this.#next });
      this.#next = page.next;
      this.#merge(page.calls);
    });
  }

  #note(id: string) {
    this.#ended.add(id);
    if (this.isPaused) {
      this.missed += 1;
      return;
    }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#readEnded();
    }, COLLECT_MS);
  }

  async #read() {
    if (this.isPaused) return;
    await this.#attempt(async () => {
      const page = await readCalls(this.workspace, { ...this.filter, limit: PAGE });
      // If nothing is known of what lies between, the list begins anew.
      const isConnected = page.calls.some((call) => this.calls.some((known) => known.id === call.id));
      if (!isConnected) {
        this.calls = [];
        this.#next = page.next;
      }
      this.#merge(page.calls);
    });
    this.isLoaded = true;
  }

  async #readEnded() {
    const ended = this.#ended;
    this.#ended = new Set();
    await this.#read();
    // A call that took long is further down, where the first page does not reach.
    const oldest = this.calls.slice(0, PAGE).at(-1)?.id;
    const late = [...ended].filter((id) => oldest && id < oldest && !this.calls.some((call) => call.id === id));
    for (const id of late.slice(0, 20)) {
      const call = await readCall(this.workspace, id, this.filter).catch(() => null);
      if (call) this.#merge([call]);
    }
  }

  #merge(found: Call[]) {
    if (this.#isClosed) return;
    const byId = new Map(this.calls.map((call) => [call.id, call]));
    for (const call of found) byId.set(call.id, call);
    this.calls = [...byId.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
  }

  async #attempt(work: () => Promise<void>) {
    this.#isReading = true;
    try {
      await work();
      this.error = '';
    } catch (error) {
      this.error = messageOf(error);
    } finally {
      this.#isReading = false;
    }
  }
}
