// Numbers and times as people read them.

const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const timeFormat = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const fullFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });

export function duration(us: number | null): string {
  if (us === null) return '';
  if (us < 1_000) return `${us} µs`;
  if (us < 10_000) return `${(us / 1_000).toFixed(1)} ms`;
  if (us < 1_000_000) return `${Math.round(us / 1_000)} ms`;
  if (us < 60_000_000) return `${(us / 1_000_000).toFixed(1)} s`;
  return span(us / 1_000);
}

/** A length of time, from milliseconds. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.round(ms / 86_400_000)} days`;
}

export function bytes(count: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let value = count;
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** The time of today, or the day of another day. */
export function when(text: string, now = Date.now()): string {
  const date = new Date(text);
  return date.toDateString() === new Date(now).toDateString() ? timeFormat.format(date) : dayFormat.format(date);
}

/** How long ago, or in how long. */
export function relative(text: string, now: number): string {
  const ms = Date.parse(text) - now;
  if (Math.abs(ms) < 5_000) return 'now';
  return ms < 0 ? `${span(-ms)} ago` : `in ${span(ms)}`;
}

export function full(text: string): string {
  return fullFormat.format(new Date(text));
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}
