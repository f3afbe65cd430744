// The pages of a workspace. A page is a folder in `pages/` and one line here.

import type { Component } from 'svelte';
import type { Workspace } from './lib/types';

/** What a page gets: the workspace, and the parts of the path after the name of the page. */
export type PageProps = { workspace: Workspace; rest: string[] };

export type Page = {
  /** Its name in the address. */
  name: string;
  title: string;
  /** The letter after `g` that opens it. */
  key: string;
  /** Where it stands in the navigation: what agents do, or how the workspace is set up. */
  group: 'work' | 'setup';
  load: () => Promise<{ default: Component<PageProps> }>;
};

export const pages: Page[] = [
  { name: 'activity', title: 'Activity', key: 'a', group: 'work', load: () => import('./pages/activity/Activity.svelte') },
  { name: 'approvals', title: 'Approvals', key: 'p', group: 'work', load: () => import('./pages/approvals/Approvals.svelte') },
  { name: 'files', title: 'Files', key: 'f', group: 'work', load: () => import('./pages/files/Files.svelte') },
  { name: 'programs', title: 'Programs', key: 'o', group: 'work', load: () => import('./pages/programs/Programs.svelte') },
  { name: 'playground', title: 'Playground', key: 't', group: 'work', load: () => import('./pages/playground/Playground.svelte') },
  { name: 'metrics', title: 'Metrics', key: 'm', group: 'work', load: () => import('./pages/metrics/Metrics.svelte') },
  { name: 'connect', title: 'Connect', key: 'c', group: 'setup', load: () => import('./pages/connect/Connect.svelte') },
  { name: 'keys', title: 'Keys', key: 'k', group: 'setup', load: () => import('./pages/keys/Keys.svelte') },
  { name: 'rules', title: 'Rules', key: 'r', group: 'setup', load: () => import('./pages/rules/Rules.svelte') },
  { name: 'secrets', title: 'Secrets', key: 's', group: 'setup', load: () => import('./pages/secrets/Secrets.svelte') },
  { name: 'members', title: 'Members', key: 'u', group: 'setup', load: () => import('./pages/members/Members.svelte') },
  { name: 'settings', title: 'Settings', key: ',', group: 'setup', load: () => import('./pages/settings/Settings.svelte') },
];
