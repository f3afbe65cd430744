// The workspaces of the account, the one that is shown, and the names of its members and keys.

import { api } from './api';
import type { Key, Member, Workspace } from './types';

class Workspaces {
  list = $state.raw<Workspace[] | null>(null);

  async load() {
    this.list = (await api.get<{ workspaces: Workspace[] }>('/workspaces')).workspaces;
  }

  find(id: string): Workspace | undefined {
    return this.list?.find((workspace) => workspace.id === id);
  }
}

export const workspaces = new Workspaces();

/** Names of the persons and keys of a workspace, by their ids. */
class People {
  #of = '';
  members = $state.raw<Member[]>([]);
  keys = $state.raw<Key[]>([]);
  #names = $derived(
    new Map([
      ...this.members.map((member) => [member.user_id, member.full_name || member.email] as const),
      ...this.keys.map((key) => [key.id, key.name] as const),
    ]),
  );

  async load(workspace: string) {
    if (this.#of !== workspace) {
      this.#of = workspace;
      this.members = [];
      this.keys = [];
    }
    const [members, keys] = await Promise.all([
      api.get<{ members: Member[] }>(`/workspaces/${workspace}/members`),
      api.get<{ keys: Key[] }>(`/workspaces/${workspace}/keys`),
    ]);
    if (this.#of !== workspace) return;
    this.members = members.members;
    this.keys = keys.keys;
  }

  /** The name of the key that called or, without one, of the person. */
  nameOf(user: string | null, key?: string | null): string {
    const id = key ?? user;
    if (!id) return '';
    return this.#names.get(id) ?? `${key ? 'key' : 'person'} …${id.slice(-6)}`;
  }
}

export const people = new People();
