// Rules as lines of text: each in its short form or, where that cannot say everything, as an object.

import { isRecord } from '$lib/api';
import type { Rule } from '$lib/types';

/** Writes rules, one a line. */
export function textOf(rules: Rule[], short: string[]): string {
  return rules.map((rule, index) => (fitsShortForm(rule) ? (short[index] ?? '') : JSON.stringify(rule))).join('\n');
}

/** Whether the short form says all that a rule says. */
function fitsShortForm(rule: Rule): boolean {
  const { effect: _, action, tool, match = [], ...more } = rule;
  if (Object.keys(more).length > 0 || (action !== undefined && tool !== undefined)) return false;
  return match.every((pattern) => !/[,()\n]/.test(pattern) && pattern === pattern.trim() && pattern !== '');
}

export type Given = string | Record<string, unknown>;

/** Reads lines. The server reads the short forms; an object must be JSON. */
export function readRules(text: string): { rules: Given[] } | { error: string } {
  const rules: Given[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const rule = line.trim();
    if (rule === '' || rule.startsWith('#')) continue;
    if (!rule.startsWith('{')) {
      rules.push(rule);
      continue;
    }
    try {
      const value: unknown = JSON.parse(rule);
      if (isRecord(value)) rules.push(value);
    } catch {
      return { error: `Line ${index + 1} is neither a rule in the short form nor an object in JSON` };
    }
  }
  return { rules };
}
