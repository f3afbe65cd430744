// The first minute of a new person, and signing in.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PASSWORD, assertAccessible, makeAccount, makeWorkspace, openPage, signIn, useServer } from './harness.mjs';

const running = useServer();

test('a new person makes an account and a workspace, and sees the first call arrive', async () => {
  const page = await openPage(running);
  await page.goto('/');
  await page.getByRole('link', { name: 'Make an account' }).click();
  await page.getByLabel('Email').fill('ada@example.com');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Make the account' }).click();
  await page.getByRole('heading', { name: 'Your first workspace' }).waitFor();
  await assertAccessible(page, 'the page of the first workspace');
  await page.getByRole('button', { name: 'Make the workspace' }).click();
  const setup = await page.getByRole('region', { name: 'Set-up for Claude Code' }).textContent();
  assert.match(setup, /^claude mcp add --transport http toolrest http:\/\/127\.0\.0\.1:\d+\/mcp --header "Authorization: Bearer trk_\S+"$/);
  await page.getByText('Waiting for the first call').waitFor();
  await assertAccessible(page, 'the page that connects an agent');

  // The line for a terminal is run as it is shown.
  const line = await page.getByRole('region', { name: 'First call' }).textContent();
  const { execFile } = await import('node:child_process');
  const { promisify } = await import('node:util');
  const { stdout } = await promisify(execFile)('bash', ['-c', line]);
  assert.equal(JSON.parse(stdout).success, true, stdout);
  await page.getByText('arrived, and took').waitFor();
  await page.getByRole('link', { name: 'Show it in the activity' }).click();
  await page.getByRole('complementary', { name: 'Call' }).getByText('/notes/hello.md').first().waitFor();
  await page.end();
});

test('a wrong password is told, and a link leads to its page after the sign-in', async () => {
  const account = await makeAccount(running.server);
  const workspace = await makeWorkspace(running.server, account);
  const page = await openPage(running);
  await page.goto(`/w/${workspace.id}/activity?outcome=ok`);
  await page.waitForURL(/\/login\?next=/);
  await page.getByLabel('Email').fill(account.email);
  await page.getByLabel('Password').fill('a wrong password');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('Invalid email or password').waitFor();
  await assertAccessible(page, 'the sign-in');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(`**/w/${workspace.id}/activity?outcome=ok`);
  await page.end();
});

test('signing out ends the session', async () => {
  const account = await makeAccount(running.server);
  await makeWorkspace(running.server, account);
  const page = await openPage(running);
  await signIn(page, account);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL('**/login');
  await page.goto('/workspaces');
  await page.waitForURL(/\/login/);
  await page.end();
});
