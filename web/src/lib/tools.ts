// Calls of tools by the person's own hand: `deny` rules hold, and nothing asks.

import { ApiError, type Options, address, isRecord, send } from './api';

/** False once the server has said that nobody may allow their own calls (`policy.self_approval`). */
let mayUseOwnHand = true;

/** Calls a tool and returns what its toolset answers. */
export async function callTool(workspace: string, toolset: string, tool: string, args: object, options: Options = {}): Promise<unknown> {
  const body = { tool, args, ...(toolset === 'backend' ? { correlationId: `console-${Date.now().toString(36)}` } : {}) };
  const path = `/workspaces/${workspace}/toolsets/${toolset}`;
  const headers: Record<string, string> = { ...options.headers };
  if (mayUseOwnHand) headers['X-Toolrest-Own-Hand'] = 'true';
  let response: Response;
  try {
    response = await send('POST', path, body, { ...options, headers });
  } catch (error) {
    const isForbidden = error instanceof ApiError && error.status === 403 && error.message.includes('policy.self_approval');
    if (!isForbidden || !mayUseOwnHand) throw error;
    mayUseOwnHand = false;
    return callTool(workspace, toolset, tool, args, options);
  }
  if (response.status === 202) {
    throw new ApiError('This call waits for the approval of another person. See the page Approvals.', 202, 'APPROVAL_REQUIRED');
  }
  return response.json();
}

/** Calls a tool of the toolset `system` or `workspace` and returns its result, without what encloses it. */
export async function use<T>(workspace: string, toolset: 'system' | 'workspace', tool: string, args: object, options: Options = {}): Promise<T> {
  const answer = await callTool(workspace, toolset, tool, args, options);
  const result = isRecord(answer) ? (toolset === 'system' ? answer.value : answer.result) : undefined;
  if (result === undefined) throw new ApiError('The server answered without a result', 200);
  return result as T;
}

/** Returns the address of a file's bytes, for a download. */
export function contentPath(workspace: string, path: string): string {
  return `/workspaces/${workspace}/content${path.split('/').map(encodeURIComponent).join('/')}`;
}

export function downloadAddress(workspace: string, path: string): string {
  return address(contentPath(workspace, path));
}
