// The address of the page: its path, its query, and going elsewhere without loading the page anew.

/** Where the browser is. Everything that depends on it is updated when it changes. */
class Location {
  path = $state(location.pathname);
  query = $state.raw(new URLSearchParams(location.search));

  read() {
    this.path = location.pathname;
    this.query = new URLSearchParams(location.search);
  }
}

export const route = new Location();

/** Asks before a page with unsaved work is left. It returns the question, or null if nothing would be lost. */
type LeaveCheck = () => string | null;
const leaveChecks = new Set<LeaveCheck>();

/** Registers a check before the page is left, for as long as the component lives. Call it within `$effect`. */
export function checkBeforeLeaving(check: LeaveCheck): () => void {
  leaveChecks.add(check);
  return () => leaveChecks.delete(check);
}

function mayLeave(): boolean {
  for (const check of leaveChecks) {
    const question = check();
    if (question && !confirm(question)) return false;
  }
  return true;
}

/** Counts the entries of the history, so that an unwanted step back can be taken again. */
let position: number = history.state?.position ?? 0;
history.replaceState({ position }, '');

/** Goes to an address of the console. */
export function go(address: string, how: 'push' | 'replace' = 'push') {
  const isSamePage = new URL(address, location.href).pathname === location.pathname;
  if (!isSamePage && !mayLeave()) return;
  if (how === 'push') position += 1;
  history[how === 'push' ? 'pushState' : 'replaceState']({ position }, '', address);
  route.read();
  if (!isSamePage) scrollTo(0, 0);
}

/** Changes parameters of the query; null removes one. The history gets no new entry. */
export function setQuery(changes: Record<string, string | null>) {
  const query = new URLSearchParams(route.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(route.path + (text ? `?${text}` : ''), 'replace');
}

/** Returns the address of a page of a workspace. */
export function pageAddress(
  workspace: string,
  page: string,
  rest: readonly string[] = [],
  query: Record<string, string> = {},
): string {
  const parts = [workspace, page, ...rest].map(encodeURIComponent).join('/');
  const search = new URLSearchParams(query).toString();
  return `/w/${parts}${search ? `?${search}` : ''}`;
}

/** The workspace and the page that a path names. */
export type Place = { workspace: string; page: string; rest: string[] };

export function placeOf(path: string): Place | null {
  const [, w, ...parts] = path.split('/');
  if (w !== 'w' || !parts[0]) return null;
  const names = parts.filter((part) => part !== '').map(decode);
  return { workspace: names[0] ?? '', page: names[1] ?? '', rest: names.slice(2) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Follows links and the buttons of the browser. */
export function startRouter(): () => void {
  const onClick = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest('a');
    if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (link.hash && link.pathname === location.pathname) return;
    if (!isOfConsole(link.pathname)) return;
    event.preventDefault();
    go(link.pathname + link.search);
  };
  const onPopState = (event: PopStateEvent) => {
    const before = position;
    const now: number = event.state?.position ?? 0;
    if (now === before) return;
    if (location.pathname !== route.path && !mayLeave()) {
      history.go(before - now);
      return;
    }
    position = now;
    route.read();
  };
  const onUnload = (event: BeforeUnloadEvent) => {
    if ([...leaveChecks].some((check) => check() !== null)) event.preventDefault();
  };
  addEventListener('click', onClick);
  addEventListener('popstate', onPopState);
  addEventListener('beforeunload', onUnload);
  return () => {
    removeEventListener('click', onClick);
    removeEventListener('popstate', onPopState);
    removeEventListener('beforeunload', onUnload);
  };
}

/** Whether a path is one of the console's, and not of the API. The server has the same list. */
function isOfConsole(path: string): boolean {
  return ['/', '/login', '/register', '/welcome', '/workspaces'].includes(path) || path.startsWith('/w/');
}
