/** A client of Toolrest. The types are made from the OpenAPI description of the server (`api.ts`). */

import type { components, paths } from "./api.js";

export type { components, paths } from "./api.js";

/** The types of the interface, by name. */
export type Schemas = components["schemas"];
/** The names of the toolsets. */
export type Toolset = keyof Schemas extends infer K ? (K extends `${infer S}.${string}.args` ? S : never) : never;
/** The tools of a toolset, with `_` for the dots of their names. */
export type Tool<S extends Toolset> = keyof Schemas extends infer K ? (K extends `${S}.${infer N}.args` ? N : never) : never;
/** The arguments of a tool. */
export type Args<S extends Toolset, N extends Tool<S>> = Schemas[`${S}.${N}.args` & keyof Schemas];
/** The result of a tool. */
export type Result<S extends Toolset, N extends Tool<S>> = Schemas[`${S}.${N}.result` & keyof Schemas];

type Method = "get" | "post" | "put" | "patch" | "delete";
type PathsWith<M extends Method> = { [P in keyof paths]: paths[P] extends Record<M, object> ? P : never }[keyof paths];
type Operation<M extends Method, P extends PathsWith<M>> = paths[P] extends Record<M, infer O> ? O : never;
type Parameter<O, Place extends string> = O extends { parameters: { [K in Place]?: infer T } } ? T : never;
type Body<O> = O extends { requestBody?: { content: { "application/json": infer T } } } ? T : never;
type Reply<O> = O extends { responses: { 200: { content: { "application/json": infer T } } } } ? T : unknown;

/** What a request has besides its method and path. */
export interface Options<O> {
  path?: Parameter<O, "path">;
  query?: Parameter<O, "query">;
  body?: Body<O>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** What a call has besides its arguments. */
export interface CallOptions {
  /** Seconds to wait for a person's decision. */
  wait?: number;
  /** Why the call is made, for the person who decides. */
  reason?: string;
  /** The label of the session, to which grants are limited. */
  session?: string;
  /** The caller's id for the call. */
  correlationId?: string;
  signal?: AbortSignal;
}

/** An error that the server answered. */
export class ToolrestError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly body: unknown,
  ) {
    super(message);
    this.name = "ToolrestError";
  }
}

/** The call waits for a person. The same call again waits on and never runs twice. */
export class ApprovalRequired extends ToolrestError {
  constructor(
    message: string,
    body: unknown,
    readonly approval: { id: string; url: string },
  ) {
    super(message, 202, "APPROVAL_REQUIRED", body);
    this.name = "ApprovalRequired";
  }
}

/** The answer of a tool of the toolset `workspace`. */
export interface ToolResponse<T> {
  success: true;
  result: T;
  error: null;
}

export class ToolsClient {
  constructor(
    private readonly baseUrl: string,
    private readonly accessToken?: string,
  ) {}

  /** Signs in, and returns a client with the access token. */
  static async signIn(baseUrl: string, email: string, password: string): Promise<ToolsClient> {
    const session = await new ToolsClient(baseUrl).request("post", "/api/v1/auth/login", { body: { email, password } });
    return new ToolsClient(baseUrl, session.access_token);
  }

  /** Sends a request of the REST interface. */
  async request<M extends Method, P extends PathsWith<M>>(
    method: M,
    path: P,
    options: Options<Operation<M, P>> = {},
  ): Promise<Reply<Operation<M, P>>> {
    const values = (options.path ?? {}) as Record<string, string>;
    let url = String(path).replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = encodeURIComponent(values[name] ?? "");
      // Only the path of a file has several parts.
      return name === "path" ? value.replaceAll("%2F", "/") : value;
    });
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(options.query ?? {})) {
      if (value !== undefined) query.set(name, String(value));
    }
    if (query.size > 0) url += `?${query}`;
    const { body } = await this.send(method, url, options.body, options.headers, options.signal);
    return body as Reply<Operation<M, P>>;
  }

  /** Calls a tool of any toolset, and returns its result. */
  async call<S extends Toolset, N extends Tool<S>>(
    workspaceId: string,
    toolset: S,
    tool: N,
    args: Args<S, N>,
    options: CallOptions = {},
  ): Promise<Result<S, N>> {
    const correlationId = options.correlationId ?? crypto.randomUUID();
    const headers: Record<string, string> = { "X-Correlation-ID": correlationId };
    if (options.wait !== undefined) headers["Prefer"] = `wait=${options.wait}`;
    if (options.reason !== undefined) headers["X-Toolrest-Reason"] = options.reason;
    if (options.session !== undefined) headers["X-Toolrest-Session"] = options.session;
    const url = `/api/v1/workspaces/${encodeURIComponent(workspaceId)}/toolsets/${encodeURIComponent(toolset)}`;
    const { body } = await this.send("post", url, { tool, args }, headers, options.signal);
    const inside: Record<string, string> = { workspace: "result", backend: "result", system: "value" };
    const member = inside[toolset];
    return (member === undefined ? body : (body as Record<string, unknown>)[member]) as Result<S, N>;
  }

  /** Calls a tool of the toolset `workspace`, and returns the whole answer. */
  async executeTool<N extends Tool<"workspace">>(
    workspaceId: string,
    tool: N,
    args: Args<"workspace", N>,
    options: CallOptions = {},
  ): Promise<ToolResponse<Result<"workspace", N>>> {
    return { success: true, result: await this.call(workspaceId, "workspace", tool, args, options), error: null };
  }

  async ls(workspaceId: string, path: string, recursive = false) {
    return this.executeTool(workspaceId, "ls", { path, recursive });
  }

  async read(workspaceId: string, path: string) {
    return this.executeTool(workspaceId, "read", { path });
  }

  async write(workspaceId: string, path: string, content: Args<"workspace", "write">["content"]) {
    return this.executeTool(workspaceId, "write", { path, content });
  }

  async edit(workspaceId: string, path: string, old_string: string, new_string: string) {
    return this.executeTool(workspaceId, "edit", { path, old_string, new_string });
  }

  async rm(workspaceId: string, path: string) {
    return this.executeTool(workspaceId, "rm", { path });
  }

  async mv(workspaceId: string, source: string, destination: string) {
    return this.executeTool(workspaceId, "mv", { source, destination });
  }

  async touch(workspaceId: string, path: string) {
    return this.executeTool(workspaceId, "touch", { path });
  }

  async mkdir(workspaceId: string, path: string) {
    return this.executeTool(workspaceId, "mkdir", { path });
  }

  async grep(workspaceId: string, pattern: string, path_pattern?: string) {
    return this.executeTool(workspaceId, "grep", path_pattern === undefined ? { pattern } : { pattern, path_pattern });
  }

  private async send(
    method: string,
    url: string,
    body: unknown,
    headers: Record<string, string> = {},
    signal?: AbortSignal,
  ): Promise<{ status: number; body: unknown }> {
    const response = await fetch(this.baseUrl.replace(/\/$/, "") + url, {
      method: method.toUpperCase(),
      headers: {
        ...(this.accessToken === undefined ? {} : { Authorization: `Bearer ${this.accessToken}` }),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await response.text();
    const isJson = response.headers.get("Content-Type")?.startsWith("application/json") ?? false;
    const answer: unknown = isJson ? JSON.parse(text) : text;
    if (response.ok && response.status !== 202) return { status: response.status, body: answer };
    const error = (answer ?? {}) as { error?: unknown; code?: string; message?: string; approval?: { id: string; url: string } };
    // The formats of the toolsets differ: `error` is a text, a code beside `message`, or an object with both.
    const inner = (typeof error.error === "object" ? error.error : null) as { code?: string; message?: string } | null;
    const code = inner?.code ?? error.code ?? (error.message === undefined ? "" : String(error.error));
    const message = inner?.message ?? error.message ?? String(error.error ?? `${method} ${url}: ${response.status}`);
    if (response.status === 202 && error.approval !== undefined) throw new ApprovalRequired(message, answer, error.approval);
    if (response.ok) return { status: response.status, body: answer };
    throw new ToolrestError(message, response.status, code, answer);
  }
}
