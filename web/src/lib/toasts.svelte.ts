// Short messages at the edge of the page.

export type Toast = { id: number; kind: 'ok' | 'error'; text: string; action?: { title: string; run: () => void } };

class Toasts {
  list = $state<Toast[]>([]);
  #next = 0;

  show(kind: Toast['kind'], text: string, action?: Toast['action']) {
    const id = this.#next++;
    this.list = [...this.list.slice(-3), { id, kind, text, action }];
    // Errors stay until they are closed.
    if (kind === 'ok') setTimeout(() => this.close(id), 6_000);
  }

  ok(text: string, action?: Toast['action']) {
    this.show('ok', text, action);
  }

  error(text: string) {
    this.show('error', text);
  }

  close(id: number) {
    this.list = this.list.filter((toast) => toast.id !== id);
  }
}

export const toasts = new Toasts();
