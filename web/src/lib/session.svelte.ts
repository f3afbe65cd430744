// Who is signed in.

import { api, forgetSession, noteSession, whenSignedOut } from './api';
import { go, route } from './router.svelte';
import type { User } from './types';

type SignedIn = { user: User; access_token_expires_at: string };

class Session {
  /** `undefined` until it is known. */
  user = $state<User | null | undefined>(undefined);
  /** Why the last session ended. */
  ended = $state('');

  /** Finds out who is signed in. */
  async load() {
    try {
      this.user = (await api.get<{ user: User }>('/auth/me')).user;
    } catch {
      this.user = null;
    }
  }

  async signIn(email: string, password: string) {
    const signedIn = await api.post<SignedIn>('/auth/login', { email, password });
    noteSession(signedIn);
    this.ended = '';
    this.user = signedIn.user;
  }

  async register(email: string, password: string) {
    await api.post('/auth/register', { email, password, confirm_password: password });
    await this.signIn(email, password);
  }

  async signOut() {
    await api.post('/auth/logout').catch(() => {});
    forgetSession();
    // Unfinished decisions are kept for the same person only.
    sessionStorage.clear();
    this.ended = '';
    this.user = null;
    go('/login');
  }
}

export const session = new Session();

whenSignedOut((message) => {
  if (session.user) session.ended = message;
  session.user = null;
});

/** Returns the address to go to after the sign-in. Only addresses of the console count. */
export function afterSignIn(): string {
  const next = route.query.get('next') ?? '';
  return next.startsWith('/w/') ? next : '/';
}
