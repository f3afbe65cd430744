// What a person has begun to decide. It is kept per approval in this tab, so that neither a reload nor a look at another
// call loses it.

import type { Scope, Verdict } from '$lib/types';

export type Draft = {
  verdict: Verdict;
  /** How far the decision goes. */
  scope: Scope;
  /** The chosen grant; null for the narrowest. */
  grant: string | null;
  /** The reason of a decision. */
  reason: string;
  /** The answer instead of a result. */
  answer: string;
  /** The edited arguments as JSON; null while they are not edited. */
  args: string | null;
};

export function newDraft(): Draft {
  return { verdict: 'approve', scope: 'once', grant: null, reason: '', answer: '', args: null };
}

const keyOf = (approval: string) => `toolrest.draft.${approval}`;

export function readDraft(approval: string): Draft {
  try {
    return { ...newDraft(), ...JSON.parse(sessionStorage.getItem(keyOf(approval)) ?? '{}') };
  } catch {
    return newDraft();
  }
}

export function keepDraft(approval: string, draft: Draft) {
  try {
    sessionStorage.setItem(keyOf(approval), JSON.stringify(draft));
  } catch {
    // The tab has no room for it; only a reload would lose it.
  }
}

export function forgetDraft(approval: string) {
  sessionStorage.removeItem(keyOf(approval));
}
