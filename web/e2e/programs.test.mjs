// Programs: what runs now, live output, and stopping.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertAccessible, call, makeAccount, makeWorkspace, openPage, signIn, useServer } from './harness.mjs';

const running = useServer();

test('the output of a process is shown as it arrives, and the process is stopped', async () => {
  const account = await makeAccount(running.server);
  const workspace = await makeWorkspace(running.server, account);
  const page = await openPage(running);
  await signIn(page, account);
  await page.goto(`/w/${workspace.id}/programs`);
  await page.getByText('No program runs').waitFor();
  await assertAccessible(page, 'the programs, of which there are none');
  const command = 'echo "<b>hello</b>"; until [ -e go ]; do sleep 0.1; done; echo after; touch made; sleep 300';
  const { body } = await workspace.agent('system', 'start_process', { command });
  assert.equal(body.value?.state, 'running', JSON.stringify(body));
  await page.getByRole('row').filter({ hasText: 'sleep 300' }).click();
  const output = page.getByRole('log', { name: 'Output' });
  await output.getByText('<b>hello</b>').waitFor();
  assert.equal(await output.getByText('after').count(), 0);
  await assertAccessible(page, 'a running program');
  await workspace.agent('workspace', 'write', { path: '/go', content: '' });
  await output.getByText('after').waitFor();
  assert.equal(await output.textContent(), '<b>hello</b>\nafter\n');
  const calls = await call(running.server, 'GET', `/workspaces/${workspace.id}/calls?toolset=system`, { token: account.token });
  assert.deepEqual(calls.calls.map((one) => one.tool), ['start_process'], 'looking is not recorded');

  await page.keyboard.press('s');
  const dialog = page.getByRole('dialog', { name: 'Stop this process?' });
  await assertAccessible(page, 'the question before a process is stopped');
  await dialog.getByRole('button', { name: 'Stop the process' }).click();
  await page.getByText('The process is stopped').waitFor();
  const panel = page.getByRole('complementary', { name: 'Program' });
  await panel.getByText('stopped', { exact: true }).waitFor();
  await panel.getByRole('link', { name: 'its changes' }).click();
  await page.getByRole('region', { name: 'What the commit changed' }).getByText('/made').first().waitFor();
  await page.end();
});

test('a call that runs is listed until it ends', async () => {
  const account = await makeAccount(running.server);
  const workspace = await makeWorkspace(running.server, account);
  const page = await openPage(running);
  await signIn(page, account);
  await page.goto(`/w/${workspace.id}/programs`);
  await page.getByText('No program runs').waitFor();
  const ended = workspace.agent('system', 'run_code', { language: 'bash', code: 'sleep 6; echo done' });
  const row = page.getByRole('row').filter({ hasText: 'run_code' });
  await row.waitFor();
  await row.click();
  await page.getByRole('region', { name: 'Arguments' }).getByText('sleep 6').waitFor();
  assert.equal((await ended).body.value.exitCode, 0);
  await row.waitFor({ state: 'detached' });
  await page.end();
});
