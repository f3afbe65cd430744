// The metrics of a workspace.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertAccessible, call, makeAccount, makeWorkspace, openPage, signIn, useServer } from './harness.mjs';

const running = useServer();

test('calls, errors and durations are shown by tool, and lead to the activity', async () => {
  const account = await makeAccount(running.server);
  const workspace = await makeWorkspace(running.server, account);
  const page = await openPage(running);
  await signIn(page, account);
  const { workspace: empty } = await call(running.server, 'POST', '/workspaces', { token: account.token, body: { name: 'empty' } });
  await page.goto(`/w/${empty.id}/metrics`);
  await page.getByText('Nothing was called in this period').waitFor();
  await assertAccessible(page, 'the metrics without calls');
  await page.goto(`/w/${workspace.id}/metrics`);
  for (let i = 0; i < 5; i++) await workspace.agent('workspace', 'write', { path: `/${i}.txt`, content: 'x' });
  await workspace.agent('workspace', 'read', { path: '/missing' });
  const row = (name) => page.getByRole('row').filter({ has: page.getByRole('gridcell', { name, exact: true }) });
  // Records of calls that change nothing are written a little later.
  for (let i = 0; i < 20 && (await row('read').count()) === 0; i++) {
    await page.waitForTimeout(200);
    await page.reload();
    await page.getByRole('heading', { name: 'Metrics' }).waitFor();
    await page.waitForTimeout(200);
  }
  const cells = async (name) => (await row(name).getByRole('gridcell').allTextContents()).slice(0, 5);
  assert.deepEqual(await cells('write'), ['write', 'workspace', '5', '0', '0 %']);
  assert.deepEqual(await cells('read'), ['read', 'workspace', '1', '1', '100 %']);
  await page.getByRole('img', { name: /Calls per minute/ }).locator('canvas').waitFor();
  await assertAccessible(page, 'the metrics');
  await page.keyboard.press('1');
  await page.waitForURL(/hours=1$/);
  await row('read').click();
  await page.waitForURL(/activity\?toolset=workspace&tool=read/);
  await page.getByRole('row').filter({ hasText: '/missing' }).waitFor();
  await page.end();
});
