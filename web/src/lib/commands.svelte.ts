// Commands: what the keyboard and the command palette can do. A component registers its own while it is shown.

import { untrack } from 'svelte';

export type Command = {
  title: string;
  /** Keys, such as `j`, `Enter`, `?` or the sequence `g a`. */
  keys?: string;
  group?: string;
  /** Left out of the palette, as for moving in a list. */
  hidden?: boolean;
  run: () => void;
};

class Commands {
  #sources = $state.raw<readonly (() => Command[])[]>([]);
  /** Later components come first: what is on top takes the key. */
  list = $derived.by(() => this.#sources.toReversed().flatMap((source) => source()));

  add(source: () => Command[]): () => void {
    this.#sources = [...this.#sources, source];
    return () => {
      this.#sources = this.#sources.filter((other) => other !== source);
    };
  }
}

export const commands = new Commands();

/** Registers commands for as long as the component is shown. The function may read state. */
export function useCommands(source: () => Command[]) {
  // Registering changes what it reads.
  $effect.pre(() => untrack(() => commands.add(source)));
}

const SEQUENCE_MS = 1_000;

/** Runs the commands of the keyboard. */
export function startKeyboard(): () => void {
  let first = '';
  let firstAt = 0;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    if (document.querySelector('dialog[open]')) return;
    const key = event.key;
    const sequence = first && Date.now() - firstAt < SEQUENCE_MS ? `${first} ${key}` : '';
    const find = (keys: string) => commands.list.find((command) => command.keys === keys);
    const command = (sequence && find(sequence)) || find(key);
    first = '';
    if (command) {
      event.preventDefault();
      command.run();
    } else if (commands.list.some((command) => command.keys?.startsWith(`${key} `))) {
      first = key;
      firstAt = Date.now();
    }
  };
  addEventListener('keydown', onKeyDown);
  return () => removeEventListener('keydown', onKeyDown);
}

/** Whether the key belongs to the element that has the focus. */
function isTyping(event: KeyboardEvent): boolean {
  const element = event.target as HTMLElement;
  const isBox = element.matches('[type="checkbox"], [type="radio"]');
  if (!isBox && element.closest('input, textarea, select, [contenteditable="true"]')) return true;
  const isButton = isBox || element.closest('button, a, summary, [role="tab"]') !== null;
  return isButton && (event.key === 'Enter' || event.key === ' ');
}
