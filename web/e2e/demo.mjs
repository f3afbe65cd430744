// A workspace with something on every page, for the pictures.

import { makeWorkspace } from './harness.mjs';

/** Fills a workspace and returns the pictures to take: a name, an address, and what to do there first. */
export async function demo(server, account) {
  const workspace = await makeWorkspace(server, account, 'handbook');
  await fill(workspace.agent);
  const at = (page) => `/w/${workspace.id}/${page}`;
  return [
    { name: 'sign-in', path: '/login', isSignedOut: true },
    { name: 'register', path: '/register', isSignedOut: true },
    { name: 'welcome', path: '/welcome' },
    { name: 'workspaces', path: '/workspaces' },
    {
      name: 'activity',
      path: at('activity'),
      prepare: (page) => page.getByRole('row').filter({ hasText: 'edit' }).first().waitFor(),
    },
    {
      name: 'call',
      path: at('activity'),
      prepare: async (page) => {
        await page.getByRole('row').filter({ hasText: '/docs/deploy.md' }).first().click();
        await page.getByRole('region', { name: 'What the call changed' }).waitFor();
      },
    },
    {
      name: 'connect',
      path: at('connect'),
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Make a key' }).click();
        await page.getByRole('region', { name: 'First call' }).waitFor();
      },
    },
  ];
}

/** Calls of an agent at work. */
async function fill(agent) {
  const deploy = '# Deploy\n\n1. Build the image\n2. Push it\n3. Apply the manifests\n\n## Rollback\n\nApply the tag before.\n\n## Contacts\n\n- ops@example.com\n- the on-call rota\n';
  await agent('workspace', 'write', { path: '/docs/deploy.md', content: deploy });
  await agent('workspace', 'write', { path: '/src/app.py', content: 'from flask import Flask\n\napp = Flask(__name__)\n' });
  await agent('workspace', 'write', { path: '/README.md', content: '# Handbook\n\nHow we work.\n' });
  for (const path of ['/docs/deploy.md', '/src/app.py', '/README.md', '/missing.md']) await agent('workspace', 'read', { path });
  await agent('workspace', 'ls', { path: '/' });
  await agent('workspace', 'grep', { pattern: 'Deploy', path: '/' });
  await agent('file', 'file.list', { path: 'docs' });
  await agent('file', 'file.search', { pattern: 'rota' });
  for (let i = 0; i < 8; i++) await agent('file', 'file.read', { path: ['README.md', 'src/app.py', 'docs/none.md'][i % 3] });
  await agent('workspace', 'mkdir', { path: '/notes' });
  await agent('workspace', 'write', { path: '/notes/plan.md', content: '- [ ] write the guide\n' });
  await agent('workspace', 'edit', { path: '/docs/deploy.md', old_string: '1. Build the image\n', new_string: '1. Build the image with `make image`\n' });
}
