// The calls that wait for a person, for the count in the navigation and in the title, and for the page of approvals.

import { api } from './api';
import { feed } from './feed.svelte';
import { go, pageAddress } from './router.svelte';
import type { Approval } from './types';

class Pending {
  /** The oldest first: it expires first. */
  list = $state.raw<Approval[]>([]);
  isLoaded = $state(false);
  #workspace = '';
  #isReading = false;
  #readsAgain = false;

  /** Follows the approvals of a workspace. Returns the end of it, for `$effect`. */
  follow(workspace: string): () => void {
    this.#workspace = workspace;
    this.list = [];
    this.isLoaded = false;
    const read = () => void this.read();
    read();
    const ends = [feed.on('ready', read), feed.on('gap', read), feed.on('approval', read)];
    return () => ends.forEach((end) => end());
  }

  /** Reads the list again. Events that arrive meanwhile cause one more read, not one each. */
  async read() {
    this.#readsAgain = true;
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#readsAgain) {
      this.#readsAgain = false;
      await this.#readOnce(this.#workspace);
    }
    this.#isReading = false;
  }

  async #readOnce(workspace: string) {
    const found = await api
      .get<{ approvals: Approval[] }>(`/workspaces/${workspace}/approvals`, { query: { state: 'pending' } })
      .catch(() => null);
    if (!found || workspace !== this.#workspace) return;
    const known = new Set(this.list.map((approval) => approval.id));
    const added = found.approvals.filter((approval) => !known.has(approval.id));
    if (this.isLoaded && added.length > 0) notify(workspace, added);
    this.list = found.approvals;
    this.isLoaded = true;
  }
}

export const pending = new Pending();

/** Tells of new approvals outside of the page, if the person allowed it and does not see the page. */
function notify(workspace: string, added: Approval[]) {
  if (!document.hidden || !('Notification' in window) || Notification.permission !== 'granted') return;
  const first = added[0];
  const text = added.length === 1 && first ? `${first.tool} waits for your decision` : `${added.length} calls wait for your decision`;
  const note = new Notification('Toolrest', { body: text, tag: 'toolrest-approvals' });
  note.onclick = () => {
    window.focus();
    go(pageAddress(workspace, 'approvals', added.length === 1 && first ? [first.id] : []));
    note.close();
  };
}
