// Merges two changed texts that began as the same one.

import { Chunk } from '@codemirror/merge';
import { Text } from '@codemirror/state';

/** Lines of the base from `from` to `to`, which became `lines`. */
type Edit = { from: number; to: number; lines: string[] };

export type Merged = { text: string; /** Places that both changed in different ways; there `mine` is kept. */ conflicts: number };

export function merge3(base: string, theirs: string, mine: string): Merged {
  const baseLines = base.split('\n');
  const [a, b] = [edits(base, theirs), edits(base, mine)];
  const merged: string[] = [];
  let conflicts = 0;
  let at = 0;
  while (a.length || b.length) {
    const [x, y] = [a[0], b[0]];
    let edit: Edit | undefined;
    if (x && y && touches(x, y)) {
      // Everything that is connected is one place.
      const group = { theirs: [a.shift()!], mine: [b.shift()!] };
      let end = Math.max(x.to, y.to);
      for (;;) {
        if (a[0] && a[0].from <= end) group.theirs.push(a.shift()!);
        else if (b[0] && b[0].from <= end) group.mine.push(b.shift()!);
        else break;
        end = Math.max(end, group.theirs.at(-1)!.to, group.mine.at(-1)!.to);
      }
      const from = Math.min(x.from, y.from);
      const [their, my] = [apply(baseLines, from, end, group.theirs), apply(baseLines, from, end, group.mine)];
      if (their.join('\n') !== my.join('\n')) conflicts += 1;
      edit = { from, to: end, lines: my };
    } else {
      edit = !y || (x && x.from < y.from) ? a.shift() : b.shift();
    }
    if (!edit) break;
    merged.push(...baseLines.slice(at, edit.from), ...edit.lines);
    at = edit.to;
  }
  merged.push(...baseLines.slice(at));
  return { text: merged.join('\n'), conflicts };
}

/** Edits that touch count as one place: neither says what should stand between them. */
function touches(x: Edit, y: Edit): boolean {
  return x.from <= y.to && y.from <= x.to;
}

function apply(base: string[], from: number, to: number, list: Edit[]): string[] {
  const lines: string[] = [];
  let at = from;
  for (const edit of list) {
    lines.push(...base.slice(at, edit.from), ...edit.lines);
    at = edit.to;
  }
  return [...lines, ...base.slice(at, to)];
}

function edits(base: string, changed: string): Edit[] {
  const [a, b] = [Text.of(base.split('\n')), Text.of(changed.split('\n'))];
  const lines = changed.split('\n');
  const index = (text: Text, position: number) => (position > text.length ? text.lines : text.lineAt(position).number - 1);
  return Chunk.build(a, b, { scanLimit: 5_000, timeout: 1_000 }).map((chunk) => ({
    from: index(a, chunk.fromA),
    to: index(a, chunk.toA),
    lines: lines.slice(index(b, chunk.fromB), index(b, chunk.toB)),
  }));
}
