// Reading records of calls.

import { api, type Query } from './api';
import type { Call } from './types';

export type CallPage = { calls: Call[]; next: string | null };

export function readCalls(workspace: string, query: Query): Promise<CallPage> {
  return api.get<CallPage>(`/workspaces/${workspace}/calls`, { query });
}

/** Reads one call. The list is by id, so the call is the first one before the id that follows its own. */
export async function readCall(workspace: string, id: string, filter: Query = {}): Promise<Call | null> {
  const { calls } = await readCalls(workspace, { ...filter, before: nextId(id), limit: 1 });
  return calls[0]?.id === id ? calls[0] : null;
}

function nextId(id: string): string {
  const digits = (BigInt(`0x${id.replaceAll('-', '')}`) + 1n).toString(16).padStart(32, '0');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** What a call is about: its path, or else the most telling of its arguments. */
export function subjectOf(call: Call): string {
  if (call.path) return call.path;
  const args = typeof call.args === 'object' && call.args !== null ? (call.args as Record<string, unknown>) : {};
  for (const name of ['command', 'pattern', 'query', 'url', 'code', 'key', 'name']) {
    const value = args[name];
    if (typeof value === 'string' && value) return value;
  }
  return '';
}

/** The outcomes that a record can have, besides `ok`. */
export const OUTCOMES = [
  'already_applied', 'already_exists', 'approval_denied', 'approval_required', 'binary', 'cancelled', 'conflict',
  'execution_failed', 'find_not_found', 'find_not_unique', 'forbidden', 'internal', 'interrupted', 'invalid_argument',
  'invalid_path', 'invalid_pattern', 'is_directory', 'network_error', 'not_configured', 'not_found', 'outside_workspace',
  'patch_syntax', 'quota_exceeded', 'rate_limited', 'response_too_large', 'sandbox_unavailable', 'stale', 'timeout',
  'unavailable', 'unknown_tool',
];
