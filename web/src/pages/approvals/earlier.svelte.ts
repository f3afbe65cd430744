// The approvals that wait no more, newest first.

import { api, messageOf } from '$lib/api';
import { feed } from '$lib/feed.svelte';
import type { Approval } from '$lib/types';

const PAGE = 100;

export class Earlier {
  list = $state.raw<Approval[]>([]);
  isLoaded = $state(false);
  error = $state('');
  /** Where the next page begins; null if there is none. */
  next = $state<string | null>(null);

  constructor(readonly workspace: string) {}

  /** Reads the list and follows it. Returns the end of it, for `$effect`. */
  follow(): () => void {
    const read = () => void this.#read(null);
    read();
    const ends = [feed.on('ready', read), feed.on('gap', read), feed.on('approval', read)];
    return () => ends.forEach((end) => end());
  }

  async more() {
    if (this.next) await this.#read(this.next);
  }

  async #read(before: string | null) {
    try {
      const query = { limit: PAGE, before };
      const found = await api.get<{ approvals: Approval[]; truncated: boolean }>(`/workspaces/${this.workspace}/approvals`, { query });
      const read = found.approvals.filter((approval) => approval.state !== 'pending');
      const known = new Set(read.map((approval) => approval.id));
      const last = found.approvals.at(-1)?.id ?? null;
      if (before || !this.isLoaded) this.next = found.truncated ? last : null;
      this.list = [...read, ...this.list.filter((approval) => !known.has(approval.id))].sort((a, b) => (a.id < b.id ? 1 : -1));
      this.error = '';
    } catch (error) {
      this.error = messageOf(error);
    }
    this.isLoaded = true;
  }
}
