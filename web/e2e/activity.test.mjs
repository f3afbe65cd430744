// The activity: calls as they end, filters, and undoing a call.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertAccessible, call, makeAccount, makeWorkspace, openPage, readFile, signIn, useServer } from './harness.mjs';

const running = useServer();

async function opened() {
  const account = await makeAccount(running.server);
  const workspace = await makeWorkspace(running.server, account);
  const page = await openPage(running);
  await signIn(page, account);
  return { account, workspace, page, row: (text) => page.getByRole('row').filter({ hasText: text }) };
}

test('calls appear as they end, and a change is shown and undone', async () => {
  const { account, workspace, page, row } = await opened();
  const { workspace: empty } = await call(running.server, 'POST', '/workspaces', { token: account.token, body: { name: 'empty' } });
  await page.goto(`/w/${empty.id}/activity`);
  await page.getByText('Nothing was called yet').waitFor();
  await assertAccessible(page, 'the empty activity');
  await page.goto(`/w/${workspace.id}/activity`);
  await page.getByText('Live', { exact: true }).waitFor();
  await workspace.agent('workspace', 'write', { path: '/a.md', content: 'one\n' });
  await workspace.agent('workspace', 'write', { path: '/a.md', content: 'two\n' });
  await workspace.agent('workspace', 'read', { path: '/missing.md' });
  await row('/missing.md').getByText('not_found').waitFor();
  await row('/a.md').first().click();
  const panel = page.getByRole('complementary', { name: 'Call' });
  await panel.getByText('Correlation id').waitFor();
  await panel.getByRole('region', { name: 'What the call changed' }).getByText('two').waitFor();
  await assertAccessible(page, 'the activity with a call');
  await panel.getByRole('button', { name: 'Undo this' }).click();
  await page.getByText('Undone: /a.md').waitFor();
  assert.equal(await readFile(running.server, account.token, workspace.id, '/a.md'), 'one\n');
  await row('undo').first().waitFor();
  await page.end();
});

test('filters are held in the address, and a reload keeps them', async () => {
  const { workspace, page, row } = await opened();
  await workspace.agent('workspace', 'write', { path: '/docs/a.md', content: 'x' });
  await workspace.agent('workspace', 'write', { path: '/src/b.rs', content: 'x' });
  await row('/src/b.rs').waitFor();
  await page.getByRole('searchbox', { name: /Path/ }).fill('/docs');
  await page.keyboard.press('Enter');
  await row('/src/b.rs').waitFor({ state: 'detached' });
  assert.match(page.url(), /path=%2Fdocs/);
  await page.reload();
  await row('/docs/a.md').waitFor();
  assert.equal(await row('/src/b.rs').count(), 0);
  await workspace.agent('workspace', 'write', { path: '/docs/c.md', content: 'x' });
  await row('/docs/c.md').waitFor();
  await page.end();
});

test('a paused list stays as it is and counts what it missed', async () => {
  const { workspace, page, row } = await opened();
  await workspace.agent('workspace', 'write', { path: '/a.md', content: 'x' });
  await row('/a.md').waitFor();
  await page.keyboard.press('p');
  await page.getByText('Paused', { exact: true }).waitFor();
  await workspace.agent('workspace', 'write', { path: '/b.md', content: 'x' });
  await page.getByText('Paused, 1 new').waitFor();
  assert.equal(await row('/b.md').count(), 0);
  await page.getByRole('button', { name: 'Go on' }).click();
  await row('/b.md').waitFor();
  await page.end();
});

test('the keyboard moves through the list and to other pages', async () => {
  const { workspace, page } = await opened();
  for (const name of ['a', 'b', 'c']) await workspace.agent('workspace', 'write', { path: `/${name}.md`, content: name });
  await page.getByRole('row').filter({ hasText: '/c.md' }).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.locator('[role=row][aria-selected=true]', { hasText: '/b.md' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('complementary', { name: 'Call' }).waitFor({ state: 'detached' });
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  await assertAccessible(page, 'the list of keys');
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('c');
  await page.getByRole('heading', { name: 'Connect an agent' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Find a command' }).fill('activity');
  await assertAccessible(page, 'the command palette');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Activity' }).waitFor();
  await page.end();
});
