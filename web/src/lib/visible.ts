// Makes characters visible that a person would not see: control characters, and those that change the direction or the
// width of what follows. Somebody who approves a command must see all of it.

export type Piece = { text: string; name?: string };

const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]|\p{Cs}/gu;

/** Splits a text into what can be shown as it is and hidden characters with their names. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > end) found.push({ text: text.slice(end, match.index) });
    found.push({ text: match[0], name: nameOf(match[0]) });
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end) });
  return found;
}

export function hasHidden(text: string): boolean {
  HIDDEN.lastIndex = 0;
  return HIDDEN.test(text);
}

function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code === 0x1b) return 'ESC';
  if (code === 0x0d) return 'CR';
  if (code === 0x00) return 'NUL';
  if (code === 0x08) return 'BS';
  if (code < 0x20) return `^${String.fromCharCode(code + 64)}`;
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}
