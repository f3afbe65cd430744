// One approval: as the person sees it, what happens to it meanwhile, and the decision.

import { ApiError, api, isRecord, messageOf } from '$lib/api';
import { parseDiff } from '$lib/diff';
import { feed } from '$lib/feed.svelte';
import { plural } from '$lib/format';
import { pending } from '$lib/pending.svelte';
import { toasts } from '$lib/toasts.svelte';
import type { Approval, ApprovalEvent, ApprovalPreview, Decision, Offers } from '$lib/types';
import { type Draft, forgetDraft, keepDraft, newDraft, readDraft } from './drafts';

type Answer = { approval: Approval; events: ApprovalEvent[] };
/** A preview, and the arguments that it is of; null if the files have changed since. */
type Preview = ApprovalPreview & { of: string | null };

/** Time without a key press after which edited arguments are previewed. */
const PREVIEW_DELAY_MS = 350;

export class OpenApproval {
  /** What the person sees. A newer revision does not replace it until the person asks for it. */
  shown = $state.raw<Approval | null>(null);
  latest = $state.raw<Approval | null>(null);
  events = $state.raw<ApprovalEvent[]>([]);
  error = $state('');
  /** Paths of the diff that changed since it was shown. */
  changed = $state.raw<string[]>([]);
  draft = $state<Draft>(newDraft());
  /** What the edited arguments would do. */
  #preview = $state.raw<Preview | null>(null);
  previewError = $state('');
  #isClosed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly workspace: string,
    readonly id: string,
  ) {
    this.draft = readDraft(id);
  }

  isOutdated = $derived(this.shown !== null && this.latest !== null && this.latest.revision !== this.shown.revision);
  canDecide = $derived(this.latest?.state === 'pending' && !this.isOutdated);
  args = $derived.by((): Record<string, unknown> | null => parseArgs(this.draft.args));
  isEdited = $derived(this.draft.args !== null && JSON.stringify(this.args) !== JSON.stringify(this.shown?.args));
  preview = $derived(this.isEdited && this.#preview?.of === this.draft.args ? this.#preview : null);
  /** What would happen: with the arguments as they are edited, if they are. None until that is known. */
  effect = $derived<Offers | null>(this.isEdited ? this.preview : this.shown);
  /** The same or, until it is known, what was known before. */
  lastEffect = $derived<Offers | null>(this.effect ?? this.#preview ?? this.shown);

  /** Reads the approval and follows it. Returns the end of it, for `$effect`. */
  follow(): () => void {
    void this.read();
    const ends = [
      feed.on('ready', () => void this.read()),
      feed.on('gap', () => void this.read()),
      feed.on('approval', (event) => {
        if (event.id === this.id) void this.read();
      }),
      feed.on('commit', (commit) => this.#noteChanges(commit.call_id, commit.changes.flatMap((change) => [change.path, change.from ?? '']))),
      feed.on('file', (file) => this.#noteChanges('', [file.path])),
    ];
    if (this.isEdited) this.#previewSoon();
    return () => {
      this.#isClosed = true;
      clearTimeout(this.#timer);
      ends.forEach((end) => end());
    };
  }

  async read(query = '') {
    try {
      this.#take(await api.get<Answer>(this.#path(query)));
      this.error = '';
    } catch (error) {
      this.error = messageOf(error);
    }
  }

  #path(rest = ''): string {
    return `/workspaces/${this.workspace}/approvals/${this.id}${rest}`;
  }

  #take({ approval, events }: Answer) {
    if (this.latest && approval.revision < this.latest.revision) return;
    const isFirst = this.shown === null;
    this.latest = approval;
    this.events = events;
    if (isFirst || approval.revision === this.shown?.revision) this.shown = approval;
    if (isFirst && this.isEdited) this.#previewSoon();
    if (approval.state !== 'pending') forgetDraft(this.id);
  }

  /** Shows the newest revision. */
  update() {
    this.shown = this.latest;
    this.changed = [];
    if (this.isEdited) this.#previewSoon();
  }

  #noteChanges(call: string, paths: string[]) {
    if (this.latest?.state !== 'pending' || call === this.latest.step_id) return;
    const own = new Set(parseDiff(this.effect?.diff ?? '').flatMap((file) => [file.from, file.to]));
    const hit = paths.filter((path) => path && own.has(path));
    if (hit.length === 0) return;
    this.changed = [...new Set([...this.changed, ...hit])];
    if (this.isEdited) this.#previewSoon();
  }

  /** Changes the draft. */
  change(changes: Partial<Draft>) {
    Object.assign(this.draft, changes);
    keepDraft(this.id, this.draft);
    if (changes.args !== undefined) this.#previewSoon();
  }

  edit() {
    this.change({ verdict: 'approve', args: JSON.stringify(this.shown?.args ?? {}, null, 2) });
  }

  /** Asks what the edited arguments would do. */
  #previewSoon() {
    clearTimeout(this.#timer);
    this.previewError = '';
    if (this.#preview) this.#preview = { ...this.#preview, of: null };
    const [of, args] = [this.draft.args, this.args];
    if (of === null || !this.isEdited) return;
    if (args === null) {
      this.previewError = 'The arguments are no JSON object.';
      return;
    }
    this.#timer = setTimeout(async () => {
      try {
        const found = await api.post<ApprovalPreview>(this.#path('/preview'), { args });
        if (this.draft.args === of) this.#preview = { ...found, of };
      } catch (error) {
        if (this.draft.args === of) this.previewError = messageOf(error);
      }
    }, PREVIEW_DELAY_MS);
  }

  /** Reads until an approved call has ended or asks again, where no event would say so. */
  async #awaitEnd() {
    const TRIES = 60;
    for (let tries = 0; tries < TRIES && feed.state !== 'live'; tries++) {
      if (this.#isClosed || this.error || !['approved', 'executing'].includes(this.latest?.state ?? '')) return;
      await this.read('?wait=2');
    }
  }

  /** Sends a decision about what is shown. */
  async decide(decision: Omit<Decision, 'revision'>) {
    const shown = this.shown;
    if (!shown || !this.canDecide) return;
    this.error = '';
    const edited = decision.decision === 'approve' && this.isEdited;
    if (edited && !this.preview) return;
    const body = { ...decision, revision: shown.revision, ...(edited ? { args: this.args, preview: this.preview?.preview } : {}) };
    try {
      const { released } = await api.post<{ released: string[] }>(this.#path('/decision'), body);
      if (released.length) toasts.ok(`The same is allowed now, so ${plural(released.length, 'other call goes', 'other calls go')} on too.`);
      forgetDraft(this.id);
      this.draft = newDraft();
      await this.read();
      void this.#awaitEnd();
    } catch (reason) {
      const message = messageOf(reason);
      const isConflict = reason instanceof ApiError && reason.status === 409;
      if (isConflict) {
        await this.read();
        this.#previewSoon();
      }
      this.error = `Nothing was decided. ${message}`;
    }
    void pending.read();
  }
}

function parseArgs(text: string | null): Record<string, unknown> | null {
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
