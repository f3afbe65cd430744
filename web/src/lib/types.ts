// The answers of the REST interface, as docs/api.md describes them.

export type User = { id: string; email: string; full_name: string | null; created_at: string; updated_at: string };

export type Role = 'owner' | 'editor' | 'viewer';

export type RunSettings = {
  timeout_ms?: number;
  memory_bytes?: number;
  processes?: number;
  disk_bytes?: number;
  output_bytes?: number;
  network?: string[];
};

export type Workspace = {
  id: string;
  name: string;
  owner_id: string;
  role: Role;
  kind: 'database' | 'directory';
  /** The folder, for a workspace of the kind `directory`. */
  root?: string;
  settings: { run: RunSettings } | null;
  created_at: string;
  updated_at: string;
};

export type Member = { user_id: string; email: string; full_name: string | null; role: Role; created_at: string };

export const ACTIONS = ['read', 'write', 'delete', 'move', 'exec', 'fetch', 'github', 'memory'] as const;
export type Action = (typeof ACTIONS)[number];

export type Key = {
  id: string;
  user_id: string;
  name: string;
  toolsets: string[];
  actions: Action[];
  created_at: string;
  expires_at: string;
  suspended_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
};

export type NewKey = { name: string; toolsets?: string[]; actions?: Action[]; expires_in_hours?: number };

export type Secret = { name: string; created_at: string; updated_at: string };

export type Call = {
  id: string;
  correlation_id: string;
  user_id: string;
  key_id: string | null;
  toolset: string;
  tool: string;
  path: string | null;
  args: unknown;
  /** `ok`, `interrupted` or the kind of an error; null while the call runs. */
  outcome: string | null;
  error: string | null;
  started_at: string;
  duration_us: number | null;
  commit_id: string | null;
};

export type ChangeKind = 'create' | 'update' | 'touch' | 'move' | 'remove' | 'restore';

export type Change = { op: ChangeKind; path: string; from?: string };

export type Commit = {
  id: string;
  call_id: string;
  toolset: string;
  tool: string;
  author: string;
  created_at: string;
  undoes: string | null;
  changes: Change[];
};

export type ApprovalState = 'pending' | 'approved' | 'executing' | 'done' | 'failed' | 'denied' | 'expired' | 'cancelled';

export type Ask = {
  action: Action;
  /** The path, the command or the host. */
  subject: string;
  /** The rule that asks; null if the specification of the tool asks. */
  rule: string | null;
  because: string;
  grant: string | null;
  approvers: string[];
};

export type Verdict = 'approve' | 'deny' | 'respond';

export type Approval = {
  id: string;
  revision: number;
  state: ApprovalState;
  toolset: string;
  tool: string;
  args: unknown;
  reason: string | null;
  session: string;
  asks: Ask[];
  asks_count: number;
  diff: string;
  diff_truncated?: boolean;
  command: string | null;
  command_truncated?: boolean;
  /** What a decision for the session can grant, the narrowest first. */
  grants_offered: string[];
  /** The same for a decision that adds rules to the workspace. */
  rules_offered: string[];
  requested_by: { user_id: string; key_id: string | null };
  step_id: string;
  correlation_id: string;
  decided: { verdict: Verdict; by: string | null; via: string; reason: string | null } | null;
  result?: unknown;
  error?: string;
  outcome: string | null;
  commit_id: string | null;
  created_at: string;
  expires_at: string;
  changed_at: string;
};

export type ApprovalEvent = { seq: number; kind: string; at: string; revision: number; by: string | null; via: string | null };

/** What a call would do, and what can be granted with it. */
export type Offers = Pick<Approval, 'diff' | 'command' | 'asks' | 'grants_offered' | 'rules_offered'>;

/** What a call would do with other arguments. */
export type ApprovalPreview = Offers & {
  /** The token that a decision with these arguments must name. */
  preview: string;
};

export type Scope = 'once' | 'session' | 'workspace';

export type Decision = {
  decision: Verdict;
  revision: number;
  scope?: Scope;
  grant?: string;
  args?: unknown;
  preview?: string;
  reason?: string;
  remember?: boolean;
};

export type Rules = {
  rules: Rule[];
  /** The rules in their short form. */
  short: string[];
  approvals: ApprovalMode | null;
  revision: number;
  /** The waiting calls that go on because of the new rules. */
  released?: string[];
};

export type ApprovalMode = 'spec' | 'all' | 'off' | 'never';

export type Rule = {
  effect: 'allow' | 'ask' | 'deny';
  action?: Action | '*';
  tool?: string;
  match?: string[];
  except?: string[];
  when?: { overwrite?: boolean };
  because?: string;
  approvers?: string[];
};

export type PolicyCheck =
  | { decision: 'allow' | 'ask'; asks: Ask[]; diff: string; command: string | null }
  | { decision: 'deny'; reason: string; rule: string | null };

export type Grant = {
  id: string;
  /** The key or the person whose calls it covers. */
  principal: string;
  session: string;
  action: Action;
  pattern: string;
  /** Whether it refuses instead of allowing. */
  is_denial: boolean;
  expires_at: string;
  approval: string | null;
  granted_by: string;
  created_at: string;
};

export type Toolset = { name: string; tools: string[] };

/** What the feed sends (docs/events.md). */
export type FeedEvents = {
  ready: Record<string, never>;
  gap: Record<string, never>;
  call: {
    id: string;
    toolset: string;
    tool: string;
    user_id: string;
    key_id: string | null;
    started_at: string;
    duration_us: number;
    outcome: string;
    commit_id: string | null;
  };
  commit: Commit & { more_changes: number };
  approval: {
    id: string;
    kind: string;
    state: ApprovalState;
    revision: number;
    call_id: string;
    toolset: string;
    tool: string;
    user_id: string;
    key_id: string | null;
    at: string;
  };
  file: { event: 'created' | 'changed' | 'removed' | 'moved' | 'unknown'; path: string; from?: string };
};
