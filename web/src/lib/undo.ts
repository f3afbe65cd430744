// Undoing a commit.

import { ApiError, api, messageOf } from './api';
import { toasts } from './toasts.svelte';
import type { Commit } from './types';

/** Undoes a commit and says so. Where the server wants to be sure, the message has a button to undo it anyway. */
export async function undoCommit(workspace: string, commit: string, force = false): Promise<void> {
  try {
    const body = force ? { force } : {};
    const undone = await api.post<{ commit: Commit }>(`/workspaces/${workspace}/commits/${commit}/undo`, body);
    toasts.ok(`Undone: ${undone.commit.changes.map((change) => change.path).join(', ')}`);
  } catch (reason) {
    const canForce = !force && reason instanceof ApiError && reason.status === 409 && reason.message.includes('force');
    const anyway = { title: 'Undo anyway', run: () => void undoCommit(workspace, commit, true) };
    toasts.show('error', messageOf(reason), canForce ? anyway : undefined);
  }
}
