// A workspace with something on every page, for the pictures.

import { call, makeAccount, makeWorkspace } from './harness.mjs';

/** Fills a workspace and returns the pictures to take: a name, an address, and what to do there first, also with an agent. */
export async function demo(server, account) {
  const workspace = await makeWorkspace(server, account, 'handbook');
  await fill(workspace.agent);
  await setUp(server, account, workspace);
  const waiting = await ask(server, account, workspace);
  const at = (page) => `/w/${workspace.id}/${page}`;
  const shots = [
    { name: 'sign-in', path: '/login', isSignedOut: true },
    { name: 'register', path: '/register', isSignedOut: true },
    { name: 'welcome', path: '/welcome' },
    { name: 'workspaces', path: '/workspaces' },
    {
      name: 'activity',
      path: at('activity'),
      prepare: (page) => page.getByRole('row').nth(9).waitFor(),
    },
    {
      name: 'call',
      path: at('activity?tool=edit'),
      prepare: async (page) => {
        await page.getByRole('row').filter({ hasText: '/docs/deploy.md' }).first().click();
        await page.getByRole('region', { name: 'What the call changed' }).waitFor();
      },
    },
    ...filePages(at),
    ...approvalPages(at, waiting),
    ...setupPages(at),
    {
      name: 'programs',
      path: at('programs'),
      prepare: async (page) => {
        await page.getByRole('row').filter({ hasText: 'serve.sh' }).click();
        await page.getByRole('log', { name: 'Output' }).getByText('GET /style.css').waitFor();
      },
    },
    {
      name: 'playground',
      path: at('playground?toolset=workspace&tool=edit'),
      prepare: async (page) => {
        await page.getByLabel('path *').fill('/docs/deploy.md');
        await page.getByLabel('old_string *').fill('2. Push it');
        await page.getByLabel('new_string *').fill('2. Push it to the registry');
        await page.getByRole('button', { name: 'Dry run' }).click();
        await page.getByRole('region', { name: 'What it would change' }).waitFor();
      },
    },
    {
      name: 'playground-result',
      path: at('playground?toolset=agent&tool=grep'),
      prepare: async (page) => {
        await page.getByLabel('pattern *').fill('Deploy|rota');
        await page.getByRole('button', { name: 'Run', exact: true }).click();
        await page.getByRole('region', { name: 'Answer' }).waitFor();
      },
    },
    { name: 'metrics', path: at('metrics?hours=1'), prepare: (page) => page.locator('canvas').nth(1).waitFor() },
    {
      name: 'connect',
      path: at('connect'),
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Make a key' }).click();
        await page.getByRole('region', { name: 'First call' }).waitFor();
      },
    },
  ];
  return shots.map((shot) => ({ ...shot, prepare: (page) => shot.prepare?.(page, workspace.agent) }));
}

/** The pages of files. */
function filePages(at) {
  const editor = (page, name) => page.getByRole('textbox', { name: `Content of ${name}` }).waitFor();
  return [
    { name: 'files', path: at('files/src/app.py'), prepare: (page) => editor(page, 'app.py') },
    { name: 'folder', path: at('files/docs'), prepare: (page) => page.getByRole('gridcell', { name: 'deploy.md' }).waitFor() },
    { name: 'markdown', path: at('files/docs/deploy.md'), prepare: (page) => page.getByRole('heading', { name: 'Rollback' }).waitFor() },
    { name: 'table', path: at('files/data/sales.csv'), prepare: (page) => page.getByText('36 rows').waitFor() },
    { name: 'plot', path: at('files/data/sales.png'), prepare: (page) => page.getByRole('img', { name: 'sales.png' }).waitFor() },
    {
      name: 'history',
      path: at('files/docs/deploy.md?history=1'),
      prepare: (page) => page.getByRole('textbox', { name: 'Version 2' }).waitFor(),
    },
    {
      name: 'conflict',
      path: at('files/notes/plan.md?as=text'),
      prepare: async (page, agent) => {
        await editor(page, 'plan.md');
        await page.getByRole('textbox', { name: 'Content of plan.md' }).click();
        await page.keyboard.press('Control+End');
        await page.keyboard.type('- [ ] ask the team');
        const content = `- [x] write the guide\n- [ ] review it\n- [ ] publish it ${Date.now() % 100}\n`;
        await agent('workspace', 'write', { path: '/notes/plan.md', content });
        await page.getByText('Changed by somebody else meanwhile').waitFor();
        await page.keyboard.press('Control+s');
        await page.getByRole('textbox', { name: 'The result' }).waitFor();
      },
    },
    {
      name: 'search',
      path: at('files?view=search&q=%5Cyimage%7Capp%5Cy'),
      prepare: (page) => page.getByRole('row').filter({ hasText: 'app.py' }).first().waitFor(),
    },
    {
      name: 'commits',
      path: at('files?view=commits'),
      prepare: async (page) => {
        await page.getByRole('row').filter({ hasText: '/docs/deploy.md' }).first().click();
        await page.getByRole('region', { name: 'What the commit changed' }).waitFor();
      },
    },
    {
      name: 'trash',
      path: at('files?view=trash'),
      prepare: async (page) => {
        await page.getByRole('row').filter({ hasText: '/old/setup.sh' }).click();
        await page.getByRole('region', { name: 'Its content' }).waitFor();
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
  const months = Array.from({ length: 36 }, (_, i) => `202${4 + Math.floor(i / 12)}-${String((i % 12) + 1).padStart(2, '0')},${900 + ((i * 137) % 400) + i * 12},${20 + ((i * 31) % 17)}`);
  await agent('workspace', 'write', { path: '/data/sales.csv', content: `month,revenue,orders\n${months.join('\n')}\n` });
  const plot = "import os, pandas\nfrom matplotlib import pyplot\npandas.read_csv(os.environ['INPUT_FILE']).plot(x='month', y='revenue', figsize=(8, 4))\npyplot.savefig(os.environ['OUTPUT_IMAGE'])";
  await agent('backend', 'data_visualize', { input_file_path: 'data/sales.csv', visualization_script: plot, output_image_path: 'data/sales.png' });
  const serve = 'for path in / /style.css /docs /missing; do sleep 0.3; echo "$(date +%T) GET $path"; done; sleep 600';
  await agent('workspace', 'write', { path: '/serve.sh', content: `${serve}\n` });
  await agent('system', 'start_process', { command: 'sh serve.sh' });
  await agent('system', 'start_process', { command: 'wc -l docs/*.md' });
  await agent('workspace', 'write', { path: '/old/setup.sh', content: '#!/bin/sh\nset -eu\napt-get install -y make\n' });
  await agent('workspace', 'rm', { path: '/old/setup.sh' });
  await agent('workspace', 'edit', { path: '/docs/deploy.md', old_string: '1. Build the image\n', new_string: '1. Build the image with `make image`\n' });
}

function approvalPages(at, waiting) {
  return [
    { name: 'approvals', path: at(`approvals/${waiting.edit}`), prepare: (page) => page.getByText('wait for readiness').first().waitFor() },
    {
      name: 'approval-small',
      path: at(`approvals/${waiting.edit}`),
      viewport: { width: 390, height: 760 },
      prepare: (page) => page.getByText('wait for readiness').first().waitFor(),
    },
    {
      name: 'approval-edited',
      path: at(`approvals/${waiting.edit}`),
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Edit' }).click();
        const text = page.getByLabel('content');
        await text.fill((await text.inputValue()).replace('readiness', 'every pod'));
        await page.getByRole('region', { name: 'What the call changes' }).getByText('every pod').waitFor();
        await page.getByText('This session').click();
      },
    },
    { name: 'approval-command', path: at(`approvals/${waiting.command}`), prepare: (page) => page.getByRole('region', { name: 'Command' }).waitFor() },
    {
      name: 'approval-deny',
      path: at(`approvals/${waiting.edit}`),
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Deny…' }).click();
        await page.getByText('For 8 hours').click();
      },
    },
    {
      name: 'approvals-several',
      path: at('approvals'),
      prepare: async (page) => {
        const boxes = page.getByRole('checkbox');
        await boxes.first().waitFor();
        for (let n = 0; n < 2; n++) await boxes.nth(n).check();
        await page.getByRole('button', { name: 'Decide…' }).click();
        await page.getByRole('dialog').getByRole('region').first().waitFor();
      },
    },
    { name: 'approvals-earlier', path: at('approvals?show=earlier'), prepare: (page) => page.getByText('What happened to it').click() },
  ];
}

function setupPages(at) {
  return [
    { name: 'keys', path: at('keys'), prepare: (page) => page.getByRole('row').nth(1).waitFor() },
    {
      name: 'key-new',
      path: at('keys'),
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Make a key' }).click();
        await page.getByLabel('Name').fill('nightly');
      },
    },
    { name: 'rules', path: at('rules'), prepare: (page) => page.getByLabel('Rules, one a line').waitFor() },
    {
      name: 'rules-try',
      path: at('rules?show=try&toolset=system&tool=delete_file'),
      prepare: async (page) => {
        await page.getByLabel('Arguments, as JSON').fill('{\n  "path": "notes/plan.md"\n}');
        await page.getByRole('button', { name: 'What would happen?' }).click();
        await page.getByRole('region', { name: 'What it would change' }).waitFor();
      },
    },
    { name: 'grants', path: at('rules?show=grants'), prepare: (page) => page.getByRole('row').nth(1).waitFor() },
    { name: 'secrets', path: at('secrets'), prepare: (page) => page.getByRole('row').nth(1).waitFor() },
    { name: 'members', path: at('members'), prepare: (page) => page.getByRole('row').nth(1).waitFor() },
    { name: 'settings', path: at('settings') },
  ];
}

/** Members, keys, secrets and rules. */
async function setUp(server, account, workspace) {
  const send = (method, path, body) => call(server, method, `/workspaces/${workspace.id}${path}`, { token: account.token, body });
  const colleague = await makeAccount(server, 'lin@example.com');
  await send('POST', '/members', { email: colleague.email, role: 'editor' });
  await send('POST', '/keys', { name: 'reviewer', actions: ['read'], toolsets: ['coding', 'file'], expires_in_hours: 24 });
  const { key } = await send('POST', '/keys', { name: 'nightly-build', actions: ['read', 'write', 'exec'] });
  await send('PATCH', `/keys/${key.id}`, { suspended: true });
  for (const name of ['GITHUB_TOKEN', 'NPM_TOKEN']) await send('PUT', `/secrets/${name}`, { value: 'not a real value' });
  const frozen = { effect: 'ask', action: 'write', match: ['docs/**'], except: ['docs/drafts/**'], because: 'Docs publish on merge' };
  await send('PUT', '/rules', { rules: ['deny read(**/.env)', 'ask exec', 'allow exec(ls, git status)', frozen], approvals: 'spec' });
}

/** Calls that wait, and some that were decided. Returns the ids of those that wait. */
async function ask(server, account, { id, agent }) {
  const wait = async (toolset, tool, args, reason, session = 'release') => {
    const { body } = await agent(toolset, tool, args, { headers: { 'X-Toolrest-Session': session, 'X-Toolrest-Reason': reason } });
    return body.approval.id;
  };
  const decide = (approval, decision) =>
    call(server, 'POST', `/workspaces/${id}/approvals/${approval}/decision`, { token: account.token, body: decision });
  const denied = await wait('system', 'delete_file', { path: 'src/app.py' }, 'The application moved to another repository');
  await decide(denied, { decision: 'deny', reason: 'Keep it until the release is out' });
  const plan = { path: 'notes/plan.md', content: '- [x] write the guide\n' };
  await decide(await wait('system', 'write_file', plan, 'The guide is written'), { decision: 'approve', scope: 'session' });
  await decide(await wait('system', 'delete_file', { path: 'notes', recursive: true }, 'Clean up'), { decision: 'deny', remember: true });
  const content = '# Deploy\n\n1. Build the image with `make image`\n2. Push it\n3. Apply the manifests and wait for readiness\n\n## Rollback\n\nApply the tag before.\n\n## Contacts\n\n- ops@example.com\n- the on-call rota\n\nReviewed in March.\n';
  const edit = await wait('system', 'write_file', { path: 'docs/deploy.md', content }, 'The deployment went on before the pods were ready, so the smoke test failed');
  const command = await wait('backend', 'executeShellCommand', { command: 'npm ci && npm run build\u202e && npm publish --tag next' }, 'Publish the release candidate');
  await wait('system', 'delete_file', { path: 'README.md' }, 'It repeats docs/deploy.md', 'cleanup');
  return { edit, command };
}
