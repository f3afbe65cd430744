// Reads comma-separated values (RFC 4180), also with semicolons or tabs.

export type Csv = { head: string[]; rows: string[][]; isCut: boolean };

/** Rows that are shown at most. */
const MAX_ROWS = 100_000;
const MAX_COLUMNS = 200;

export function parseCsv(text: string): Csv {
  const separator = separatorOf(text);
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = '';
  let isQuoted = false;
  let isCut = false;
  const endRow = () => {
    row.push(cell);
    if (row.length > MAX_COLUMNS) isCut = true;
    rows.push(row.slice(0, MAX_COLUMNS));
    row = [];
    cell = '';
  };
  const start = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  for (let i = start; i < text.length; i++) {
    const char = text[i];
    if (isQuoted) {
      if (char !== '"') cell += char;
      else if (text[i + 1] === '"') cell += text[i++];
      else isQuoted = false;
    } else if (char === '"' && cell === '') isQuoted = true;
    else if (char === separator) {
      row.push(cell);
      cell = '';
    } else if (char === '\n' || (char === '\r' && text[i + 1] !== '\n')) {
      endRow();
      if (rows.length > MAX_ROWS) {
        isCut = true;
        break;
      }
    } else if (char !== '\r') cell += char;
  }
  if (!isCut && (cell !== '' || row.length > 0)) endRow();
  const [head = [], ...body] = rows;
  const width = body.reduce((most, one) => Math.max(most, one.length), head.length);
  return { head: Array.from({ length: width }, (_, i) => head[i] ?? ''), rows: body, isCut };
}

/** The separator that occurs most often in the first line. */
function separatorOf(text: string): string {
  const line = text.slice(0, 4_000).split(/\r?\n/, 1)[0] ?? '';
  const count = (char: string) => line.split(char).length;
  return [',', ';', '\t'].reduce((best, one) => (count(one) > count(best) ? one : best));
}
