// Reads unified diffs, and finds the words that differ between two lines.

export type DiffLine = { kind: 'same' | 'add' | 'remove' | 'note'; text: string; old?: number; new?: number; marks?: Mark[] };
/** A part of a line that differs: from one character to another. */
export type Mark = { from: number; to: number };
export type Hunk = { header: string; lines: DiffLine[] };
export type FileDiff = { from: string; to: string; hunks: Hunk[]; notes: string[]; added: number; removed: number };

/** Parses a unified diff of any number of files. Lines that are none of a diff are kept as notes. */
export function parseDiff(text: string): FileDiff[] {
  const files: FileDiff[] = [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  let place = { old: 0, new: 0, oldLeft: 0, newLeft: 0 };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? '';
    const file = files.at(-1);
    const hunk = file?.hunks.at(-1);
    const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (file && hunk && place.oldLeft + place.newLeft > 0 && /^[ +-]|^$/.test(line)) {
      addLine(file, hunk, line, place);
    } else if (line.startsWith('--- ') && lines[i + 1]?.startsWith('+++ ')) {
      files.push(newFile(pathOf(line), pathOf(lines[++i] ?? '')));
    } else if (head && file) {
      file.hunks.push({ header: line, lines: [] });
      place = {
        old: Number(head[1]),
        new: Number(head[3]),
        oldLeft: Number(head[2] ?? 1),
        newLeft: Number(head[4] ?? 1),
      };
    } else if (line.startsWith('\\') && hunk) {
      hunk.lines.push({ kind: 'note', text: line.slice(2) });
    } else if (line !== '') {
      if (!file) files.push(newFile('', ''));
      files.at(-1)?.notes.push(line);
    }
  }
  for (const { hunks } of files) for (const { lines } of hunks) markWords(lines);
  return files;
}

type Place = { old: number; new: number; oldLeft: number; newLeft: number };

function addLine(file: FileDiff, hunk: Hunk, line: string, place: Place) {
  const text = line.slice(1);
  if (line[0] === '+') {
    hunk.lines.push({ kind: 'add', text, new: place.new++ });
    place.newLeft -= 1;
    file.added += 1;
  } else if (line[0] === '-') {
    hunk.lines.push({ kind: 'remove', text, old: place.old++ });
    place.oldLeft -= 1;
    file.removed += 1;
  } else {
    hunk.lines.push({ kind: 'same', text, old: place.old++, new: place.new++ });
    place.oldLeft -= 1;
    place.newLeft -= 1;
  }
}

function newFile(from: string, to: string): FileDiff {
  return { from, to, hunks: [], notes: [], added: 0, removed: 0 };
}

function pathOf(line: string): string {
  const path = line.slice(4).split('\t')[0] ?? '';
  return path === '/dev/null' ? '' : path.replace(/^[ab]\//, '/');
}

/** The longest line whose words are compared. */
const MAX_CHARS = 2_000;

/** Marks what differs in lines that replace others, where as many were removed as added. */
function markWords(lines: DiffLine[]) {
  for (let i = 0; i < lines.length; ) {
    const removed = count(lines, i, 'remove');
    const added = count(lines, i + removed, 'add');
    if (removed > 0 && removed === added) {
      for (let n = 0; n < removed; n++) {
        const [before, after] = [lines[i + n], lines[i + removed + n]];
        if (before && after) mark(before, after);
      }
    }
    i += Math.max(1, removed + added);
  }
}

function count(lines: DiffLine[], from: number, kind: DiffLine['kind']): number {
  let n = 0;
  while (lines[from + n]?.kind === kind) n += 1;
  return n;
}

function mark(before: DiffLine, after: DiffLine) {
  const [a, b] = [before.text, after.text];
  if (a.length > MAX_CHARS || b.length > MAX_CHARS) return;
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  // Lines with little in common are clearer without marks.
  if (start + end < Math.min(a.length, b.length) * 0.3) return;
  if (a.length - end > start) before.marks = [{ from: start, to: a.length - end }];
  if (b.length - end > start) after.marks = [{ from: start, to: b.length - end }];
}
