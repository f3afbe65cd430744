// The secret of a key that was just made. The server shows it once, so it is kept until the page is closed.

import { api } from '$lib/api';
import type { Key, NewKey } from '$lib/types';
import { people } from '$lib/workspace.svelte';

class FreshKey {
  workspace = $state('');
  secret = $state('');
  key = $state.raw<Key | null>(null);

  /** Makes a key; without a scope, with all rights of an agent. */
  async make(workspace: string, wanted: NewKey) {
    const made = await api.post<{ key: Key; secret: string }>(`/workspaces/${workspace}/keys`, wanted);
    this.workspace = workspace;
    this.secret = made.secret;
    this.key = made.key;
    void people.load(workspace).catch(() => {});
  }
}

export const freshKey = new FreshKey();
