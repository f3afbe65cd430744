// Requests to the REST interface. Cookies carry the session; an expired one is renewed and the request repeated.

/** An error of the server, with its message for people. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** The HTTP status; 0 if the server could not be reached. */
    readonly status: number,
    readonly code: string = '',
    /** What is wrong with single arguments. */
    readonly fields: Record<string, string> = {},
    readonly requestId: string = '',
    /** The whole answer. */
    readonly body: unknown = null,
  ) {
    super(message);
  }
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export type Options = {
  query?: Query;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};

const BASE = '/api/v1';

/** What is done when the session has ended for good. */
let onSignedOut: (message: string) => void = () => {};
export function whenSignedOut(action: (message: string) => void) {
  onSignedOut = action;
}

/** Returns the address of a route with its query. */
export function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return BASE + path + (text ? `?${text}` : '');
}

/** Sends a request and returns the response, if it is a success. */
export async function send(method: string, path: string, body?: unknown, options: Options = {}): Promise<Response> {
  const sentAt = Date.now();
  let response = await once(method, path, body, options);
  const isSignIn = path === '/auth/login' || path === '/auth/register' || path === '/auth/refresh';
  if (response.status === 401 && !isSignIn) {
    const refusal = await renewSession(sentAt);
    if (refusal) {
      onSignedOut(refusal);
      throw await errorOf(response);
    }
    response = await once(method, path, body, options);
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

async function once(method: string, path: string, body: unknown, options: Options): Promise<Response> {
  const headers: Record<string, string> = { 'X-Requested-With': 'toolrest', ...options.headers };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  try {
    return await fetch(address(path, options.query), {
      method,
      headers,
      credentials: 'same-origin',
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: options.signal,
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError('The server cannot be reached. Check that it runs, then try again.', 0);
  }
}

async function errorOf(response: Response): Promise<ApiError> {
  const requestId = response.headers.get('X-Request-Id') ?? '';
  const body: unknown = await response.json().catch(() => null);
  const { message, code, fields } = readError(body);
  return new ApiError(message || `The server answered ${response.status}`, response.status, code, fields, requestId, body);
}

/** Reads an error in the form of the REST interface or of any toolset. */
export function readError(body: unknown): { message: string; code: string; fields: Record<string, string> } {
  const top = isRecord(body) ? body : {};
  const inner = isRecord(top.error) ? top.error : top;
  const text = [inner.message, top.error, top.message].find((value) => typeof value === 'string');
  const code = [inner.code, top.code].find((value) => typeof value === 'string');
  const fields = isRecord(top.fields) ? top.fields : {};
  return { message: (text as string) ?? '', code: (code as string) ?? '', fields: fields as Record<string, string> };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns what went wrong, for people. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function json<T>(method: string, path: string, body?: unknown, options?: Options): Promise<T> {
  const response = await send(method, path, body, options);
  return (await response.json()) as T;
}

export const api = {
  get: <T>(path: string, options?: Options) => json<T>('GET', path, undefined, options),
  post: <T>(path: string, body: unknown = {}, options?: Options) => json<T>('POST', path, body, options),
  put: <T>(path: string, body: unknown, options?: Options) => json<T>('PUT', path, body, options),
  patch: <T>(path: string, body: unknown, options?: Options) => json<T>('PATCH', path, body, options),
  delete: <T>(path: string, options?: Options) => json<T>('DELETE', path, undefined, options),
  bytes: async (path: string, options?: Options) => (await send('GET', path, undefined, options)).blob(),
};

/** The last time that a tab of this browser renewed the session. */
const RENEWED_AT = 'toolrest.session.renewed_at';
/** When the access token ends, as the last answer said. */
const ENDS_AT = 'toolrest.session.ends_at';

type Renewal = { access_token_expires_at: string };

/** Remembers the end of the access token, so that it is renewed in time for downloads and pictures. */
export function noteSession(session: Renewal) {
  localStorage.setItem(RENEWED_AT, String(Date.now()));
  localStorage.setItem(ENDS_AT, session.access_token_expires_at);
}

export function forgetSession() {
  localStorage.removeItem(RENEWED_AT);
  localStorage.removeItem(ENDS_AT);
}

let renewal: Promise<string | null> | null = null;

/**
 * Renews the session, once for all requests and all tabs. A refresh token can be used once, and the server ends the
 * session if it sees it twice. Returns why it could not be renewed, or null.
 */
export function renewSession(since: number): Promise<string | null> {
  const locked = async (work: () => Promise<string | null>): Promise<string | null> =>
    navigator.locks ? await navigator.locks.request('toolrest.session', work) : await work();
  renewal ??= locked(async () => {
    // Another tab may have renewed it since the request was sent.
    if (Number(localStorage.getItem(RENEWED_AT) ?? 0) > since) return null;
    const response = await once('POST', '/auth/refresh', undefined, {});
    if (!response.ok) return (await errorOf(response)).message;
    noteSession((await response.json()) as Renewal);
    return null;
  })
    .catch(messageOf)
    .finally(() => {
      renewal = null;
    });
  return renewal;
}

/** Renews the session shortly before it ends, for as long as the page is open. */
export function keepSession(): () => void {
  const MARGIN_MS = 60_000;
  const timer = setInterval(() => {
    const ends = Date.parse(localStorage.getItem(ENDS_AT) ?? '');
    const left = ends - Date.now();
    if (left > 0 && left < MARGIN_MS) void renewSession(ends - MARGIN_MS);
  }, 15_000);
  return () => clearInterval(timer);
}
