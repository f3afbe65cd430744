// What approvals are called in texts.

import type { Approval, ApprovalState, Ask } from '$lib/types';

type Tone = 'ok' | 'bad' | 'wait' | 'idle';

const STATES: Record<ApprovalState, [word: string, tone: Tone]> = {
  pending: ['waiting', 'wait'],
  approved: ['approved', 'wait'],
  executing: ['running', 'wait'],
  done: ['done', 'ok'],
  failed: ['failed', 'bad'],
  denied: ['denied', 'bad'],
  expired: ['expired', 'idle'],
  cancelled: ['withdrawn', 'idle'],
};

/** The state of an approval as a word and its colour. */
export function stateOf(approval: Approval): { word: string; tone: Tone } {
  if (approval.decided?.verdict === 'respond') return { word: 'answered', tone: 'ok' };
  const [word, tone] = STATES[approval.state];
  return { word, tone };
}

/** What a call asks for, in one line. */
export function subjectOf(approval: Approval): string {
  const first = approval.asks[0];
  if (!first) return '';
  const more = approval.asks_count - 1;
  return `${first.action} ${first.subject}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Why a call asks, with the rule if the reason does not name it. */
export function whyOf(ask: Ask): string {
  return ask.rule === null || ask.because.includes(`\`${ask.rule}\``) ? ask.because : `${ask.because} · the rule \`${ask.rule}\``;
}
