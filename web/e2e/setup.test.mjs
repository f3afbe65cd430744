// The pages on which a workspace is set up: keys, members, secrets, rules and settings.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agent, assertAccessible, call, makeAccount, makeWorkspace, openPage, signIn, useServer } from './harness.mjs';

const running = useServer();
const get = (account, workspace, path) => call(running.server, 'GET', `/workspaces/${workspace.id}${path}`, { token: account.token });

async function opened(name) {
  const account = await makeAccount(running.server);
  const workspace = await makeWorkspace(running.server, account);
  const page = await openPage(running);
  await signIn(page, account);
  await page.goto(`/w/${workspace.id}/${name}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  return { account, workspace, page, row: (text) => page.getByRole('row').filter({ hasText: text }) };
}

test('a key is made with a scope, suspended, resumed and revoked', async () => {
  const { account, workspace, page, row } = await opened('keys');
  await row('agent').getByText('never').waitFor();
  await workspace.agent('workspace', 'write', { path: '/a.md', content: 'x' });
  await page.keyboard.press('n');
  await page.getByLabel('Name').fill('reader');
  await page.getByLabel('Expires in').selectOption('1 day');
  for (const action of ['write', 'delete', 'move', 'exec', 'fetch', 'github', 'memory']) await page.getByRole('checkbox', { name: new RegExp(`^${action} `) }).uncheck();
  for (const toolset of ['coding', 'system', 'backend', 'agent']) await page.getByRole('checkbox', { name: toolset, exact: true }).uncheck();
  await assertAccessible(page, 'the form of a new key');
  await page.getByRole('button', { name: 'Make the key' }).click();
  const secret = await page.getByRole('region', { name: 'Secret of the key' }).textContent();
  assert.match(secret, /^trk_\S+$/);
  await assertAccessible(page, 'the secret of a key');
  // The secret is not closed by accident.
  await page.keyboard.press('Escape');
  await page.getByRole('region', { name: 'Secret of the key' }).waitFor();
  await page.getByRole('button', { name: 'Done' }).click();
  await row('reader').getByText('active').waitFor();
  await row('reader').getByText('in 24 h').waitFor();
  await row('reader').getByText('read with').waitFor();
  const made = (await get(account, workspace, '/keys')).keys.find((key) => key.name === 'reader');
  assert.deepEqual([made.actions, made.toolsets.toSorted()], [['read'], ['file', 'workspace']]);
  await assertAccessible(page, 'the keys');

  const reader = agent(running.server, workspace.id, secret);
  assert.equal((await reader('workspace', 'read', { path: '/a.md' })).status, 200);
  assert.equal((await reader('workspace', 'write', { path: '/a.md', content: 'y' })).status, 403);
  await page.getByRole('button', { name: 'Suspend reader' }).click();
  await row('reader').getByText('suspended').waitFor();
  assert.equal((await reader('workspace', 'read', { path: '/a.md' })).status, 403);
  await page.getByRole('button', { name: 'Resume reader' }).click();
  await row('reader').getByText('active').waitFor();
  assert.equal((await reader('workspace', 'read', { path: '/a.md' })).status, 200);
  await page.getByRole('button', { name: 'Revoke reader' }).click();
  await page.getByRole('dialog', { name: 'Revoke reader?' }).waitFor();
  await assertAccessible(page, 'the question before a key is revoked');
  await page.getByRole('button', { name: 'Revoke the key' }).click();
  await row('reader').waitFor({ state: 'detached' });
  assert.equal((await reader('workspace', 'read', { path: '/a.md' })).status, 403);
  await page.getByRole('button', { name: 'Show 1 revoked or expired' }).click();
  await row('reader').getByText('revoked').waitFor();
  assert.equal((await get(account, workspace, '/keys')).count, 2);
  await page.end();
});

test('members are added, get another role and are removed', async () => {
  const { account, workspace, page, row } = await opened('members');
  const other = await makeAccount(running.server);
  await page.getByLabel('Email of the new member').fill('nobody@example.com');
  await page.getByRole('button', { name: 'Add' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Email of the new member').fill(other.email);
  await page.getByLabel('Role of the new member').selectOption('viewer');
  await page.getByRole('button', { name: 'Add' }).click();
  await row(other.email).waitFor();
  await assertAccessible(page, 'the members');
  await page.getByLabel(`Role of ${other.email}`).selectOption('editor');
  await page.getByText(`${other.email} is editor now.`).waitFor();
  const roles = (await get(account, workspace, '/members')).members.map((member) => [member.email, member.role]);
  assert.deepEqual(new Map(roles).get(other.email), 'editor');
  // The last owner stays.
  await page.getByLabel(`Role of ${account.email}`).selectOption('viewer');
  await page.getByText('Error.').waitFor();
  await page.waitForFunction((label) => document.querySelector(`[aria-label="${label}"]`).value === 'owner', `Role of ${account.email}`);

  const second = await openPage(running);
  await signIn(second, other);
  await second.goto(`/w/${workspace.id}/members`);
  await second.getByRole('button', { name: 'Leave…' }).waitFor();
  assert.equal(await second.getByRole('button', { name: 'Add' }).count(), 0);
  await page.getByRole('button', { name: `Remove ${other.email}` }).click();
  await page.getByRole('button', { name: 'Remove the member' }).click();
  await row(other.email).waitFor({ state: 'detached' });
  await second.reload();
  await second.getByText('you are not a member of it').waitFor();
  await second.end();
  await page.end();
});

test('a secret is set and deleted, and its value is nowhere', async () => {
  const { account, workspace, page, row } = await opened('secrets');
  await page.getByText('There is no secret yet').waitFor();
  await assertAccessible(page, 'no secrets');
  await page.getByRole('button', { name: 'New secret' }).click();
  await page.getByLabel('Name').fill('npm-token');
  await page.getByRole('textbox', { name: 'Value' }).fill('npm_0123456789');
  await assertAccessible(page, 'the form of a secret');
  await page.getByRole('button', { name: 'Set the secret' }).click();
  await page.getByText(/capital letter/i).nth(1).waitFor();
  await page.getByLabel('Name').fill('NPM_TOKEN');
  await page.getByRole('button', { name: 'Set the secret' }).click();
  await row('NPM_TOKEN').waitFor();
  assert.ok(!(await page.content()).includes('npm_0123456789'));
  await assertAccessible(page, 'the secrets');
  await page.getByRole('button', { name: 'New value for NPM_TOKEN' }).click();
  await page.getByRole('textbox', { name: 'Value' }).fill('npm_9876543210');
  await page.getByRole('button', { name: 'Set the secret' }).click();
  await page.getByText('NPM_TOKEN is set.').first().waitFor();
  await page.getByRole('button', { name: 'Delete NPM_TOKEN' }).click();
  await page.getByRole('button', { name: 'Delete the secret' }).click();
  await page.getByText('There is no secret yet').waitFor();
  assert.equal((await get(account, workspace, '/secrets')).count, 0);
  await page.end();
});

test('rules are edited as lines, in the short form and as objects', async () => {
  const { account, workspace, page } = await opened('rules');
  const rules = page.getByLabel('Rules, one a line');
  const object = '{"effect":"ask","action":"write","match":["docs/**"],"except":["docs/drafts/**"],"because":"Docs publish on merge"}';
  await rules.fill(`deny read(**/.env)\nask wrte(docs/**)`);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('alert').getByText("'wrte' is not an action").waitFor();
  await assertAccessible(page, 'a wrong rule');
  await rules.fill('deny read(**/.env)\n{"effect": "ask"');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('alert').getByText('Line 2 is neither').waitFor();
  await rules.fill(`deny read(**/.env)\n${object}\n`);
  await page.getByLabel('What waits for a person').selectOption('all');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('The rules are saved.').waitFor();
  assert.equal(await rules.inputValue(), `deny read(**/.env)\n${object}`);
  await page.reload();
  await rules.waitFor();
  assert.equal(await rules.inputValue(), `deny read(**/.env)\n${object}`);
  const stored = await get(account, workspace, '/rules');
  assert.equal(stored.approvals, 'all');
  assert.deepEqual(stored.rules[1].except, ['docs/drafts/**']);
  await assertAccessible(page, 'the rules');

  // Somebody else saves meanwhile.
  await rules.fill('allow write');
  await call(running.server, 'PUT', `/workspaces/${workspace.id}/rules`, { token: account.token, body: { rules: ['deny delete'], approvals: 'spec' } });
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Somebody else saved these rules meanwhile').waitFor();
  await page.getByText('deny delete').waitFor();
  await assertAccessible(page, 'rules that were changed meanwhile');
  assert.deepEqual((await get(account, workspace, '/rules')).short, ['deny delete']);
  await page.getByRole('button', { name: 'Replace them by mine' }).click();
  await page.getByText('The rules are saved.').waitFor();
  assert.deepEqual((await get(account, workspace, '/rules')).short, ['allow write']);

  await page.getByRole('button', { name: 'Read only' }).click();
  await page.getByRole('button', { name: 'Replace the rules' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal(await rules.inputValue(), 'deny *\nallow read');
  assert.equal((await workspace.agent('workspace', 'write', { path: '/a.md', content: 'x' })).status, 403);
  await page.end();
});

test('rules that are not saved are not left by accident', async () => {
  const { page } = await opened('rules');
  const rules = page.getByLabel('Rules, one a line');
  await rules.fill('deny delete');
  // To try a call is no leaving.
  await page.getByRole('link', { name: 'Try a call' }).click();
  await page.getByText('The rules that you typed are not saved').waitFor();
  await page.getByRole('link', { name: /^Rules •/ }).click();
  assert.equal(await rules.inputValue(), 'deny delete');
  let asked = 0;
  page.on('dialog', (dialog) => {
    asked += 1;
    void dialog.dismiss();
  });
  await page.getByRole('link', { name: /^Keys/ }).click();
  assert.equal(asked, 1);
  assert.match(page.url(), /\/rules/);
  assert.equal(await rules.inputValue(), 'deny delete');
  await page.end();
});

test('the tester says what would happen to a call, and does nothing', async () => {
  const { account, workspace, page } = await opened('rules');
  await workspace.agent('workspace', 'write', { path: '/docs/a.md', content: 'old\n' });
  const body = { rules: ['deny write(*.key)', { effect: 'ask', action: 'write', match: ['docs/**'], because: 'Docs publish on merge' }], approvals: 'spec' };
  await call(running.server, 'PUT', `/workspaces/${workspace.id}/rules`, { token: account.token, body });
  await page.getByRole('link', { name: 'Try a call' }).click();
  await page.getByLabel('Tool', { exact: true }).selectOption('write_file');
  const args = page.getByLabel('Arguments, as JSON');
  const result = page.getByRole('status').filter({ has: page.locator('p') });
  const attempt = async (value) => {
    await args.fill(JSON.stringify(value));
    await page.getByRole('button', { name: 'What would happen?' }).click();
  };
  await attempt({ path: 'docs/a.md', content: 'new\n' });
  await result.getByText('It would wait for a person').waitFor();
  await result.getByText('Docs publish on merge').waitFor();
  await result.getByRole('region', { name: 'What it would change' }).getByText('new').waitFor();
  await assertAccessible(page, 'a call that would ask');
  await attempt({ path: 'notes.md', content: 'new\n' });
  await result.getByText('It would run').waitFor();
  await attempt({ path: 'a.key', content: 'new\n' });
  await result.getByText('It would be refused').waitFor();
  await result.getByText('deny write(*.key)').first().waitFor();
  await attempt({ path: 'notes.md' });
  await result.getByText(/content/).waitFor();
  await args.fill('{');
  await page.getByRole('button', { name: 'What would happen?' }).click();
  await result.getByText('The arguments are no JSON').waitFor();
  const { commits } = await get(account, workspace, '/commits');
  assert.equal(commits.length, 1, 'nothing was done');
  await page.end();
});

test('grants are listed and ended', async () => {
  const { account, workspace, page, row } = await opened('rules?show=grants');
  await page.getByText('No grant is in force').waitFor();
  const headers = { 'X-Toolrest-Session': 'night' };
  for (const name of ['a', 'b']) {
    await workspace.agent('workspace', 'write', { path: `/${name}.md`, content: 'old\n' });
    const { body } = await workspace.agent('system', 'write_file', { path: `${name}.md`, content: 'new\n' }, { headers });
    const decision = name === 'a' ? { decision: 'approve', scope: 'session' } : { decision: 'deny', remember: true };
    const path = `/workspaces/${workspace.id}/approvals/${body.approval.id}/decision`;
    await call(running.server, 'POST', path, { token: account.token, body: decision });
  }
  await row('write(a.md)').getByText('allows').waitFor();
  await row('write(a.md)').getByText('night').waitFor();
  await row('write(b.md)').getByText('refuses').waitFor();
  await row('write(b.md)').getByText('agent').waitFor();
  await assertAccessible(page, 'the grants');
  await page.getByRole('button', { name: 'End write(a.md)' }).click();
  await row('write(a.md)').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'End all' }).click();
  await page.getByText('No grant is in force').waitFor();
  assert.equal((await get(account, workspace, '/grants')).count, 0);
  await page.end();
});

test('the settings of a workspace are changed, and it is deleted', async () => {
  const { account, workspace, page } = await opened('settings');
  await page.getByLabel('Name of the workspace').fill('handbook');
  await page.getByLabel('Run time').fill('12.5');
  await page.getByLabel('Memory').fill('x');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('A number above 0').waitFor();
  await page.getByLabel('Memory').fill('300');
  await page.getByLabel('Hosts that programs may reach').fill('pypi.org');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('alert').getByText('the operator allows no hosts').waitFor();
  await assertAccessible(page, 'the settings');
  await page.getByLabel('Hosts that programs may reach').fill('');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('The settings are saved.').waitFor();
  const { workspace: saved } = await get(account, workspace, '');
  assert.equal(saved.name, 'handbook');
  assert.deepEqual([saved.settings.run.timeout_ms, saved.settings.run.memory_bytes], [12_500, 300_000_000]);
  await page.getByLabel('Memory').fill('');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Save' }).isDisabled();
  await page.getByText('The settings are saved.').nth(1).waitFor();
  assert.equal((await get(account, workspace, '')).workspace.settings.run.memory_bytes ?? null, null);

  await page.getByRole('button', { name: 'Delete…' }).click();
  const remove = page.getByRole('button', { name: 'Delete the workspace' });
  assert.ok(await remove.isDisabled());
  await assertAccessible(page, 'the question before a workspace is deleted');
  await page.getByLabel('Type handbook to be sure').fill('handbook');
  await remove.click();
  await page.getByRole('heading', { name: 'Workspaces' }).waitFor();
  const { workspaces } = await call(running.server, 'GET', '/workspaces', { token: account.token });
  assert.equal(workspaces.length, 0);
  await page.end();
});

test('a viewer sees the set-up and changes nothing', async () => {
  const { workspace, account, page } = await opened('keys');
  const viewer = await makeAccount(running.server);
  await call(running.server, 'POST', `/workspaces/${workspace.id}/members`, { token: account.token, body: { email: viewer.email, role: 'viewer' } });
  const second = await openPage(running);
  await signIn(second, viewer);
  for (const [name, absent] of [['keys', 'Make a key'], ['members', 'Add'], ['secrets', 'New secret'], ['rules', 'Save'], ['settings', 'Save']]) {
    await second.goto(`/w/${workspace.id}/${name}`);
    await second.getByRole('heading', { level: 1 }).waitFor();
    await second.getByRole('main').getByText(/Owners change|Viewers do not see|An agent uses|change files, make keys/).first().waitFor();
    assert.equal(await second.getByRole('button', { name: absent, exact: true }).count(), 0, `${name} has no button ${absent}`);
    await assertAccessible(second, `${name} for a viewer`);
  }
  await second.end();
  await page.end();
});
