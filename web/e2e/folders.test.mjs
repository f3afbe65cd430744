// Files of a workspace that is a folder, which others change too.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { call, makeAccount, openPage, signIn, useServer } from './harness.mjs';

const root = await mkdtemp(join(tmpdir(), 'toolrest-e2e-folder-'));
const running = useServer({ extra: ['--allow-root', root] });
after(() => rm(root, { recursive: true, force: true }));

test('the page follows what changes on the disk, and overwrites none of it', async () => {
  const onDisk = (name) => join(root, name);
  await mkdir(onDisk('src'));
  await writeFile(onDisk('src/a.txt'), 'one\n');
  await symlink('a.txt', onDisk('src/link.txt'));
  const account = await makeAccount(running.server);
  const body = { name: 'folder', kind: 'directory', root };
  const { workspace } = await call(running.server, 'POST', '/workspaces', { token: account.token, body });
  const page = await openPage(running);
  await signIn(page, account);
  await page.goto(`/w/${workspace.id}/files/src/a.txt`);
  const editor = page.getByRole('textbox', { name: 'Content of a.txt' });
  await editor.getByText('one').waitFor();
  await page.getByRole('treeitem', { name: 'link.txt' }).getByText('link', { exact: true }).waitFor();
  await writeFile(onDisk('src/a.txt'), 'two\n');
  await editor.getByText('two').waitFor();
  await writeFile(onDisk('src/new.txt'), 'new\n');
  await page.getByRole('treeitem', { name: 'new.txt' }).waitFor();

  await editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('mine');
  await writeFile(onDisk('src/a.txt'), 'zero\ntwo\n');
  await page.getByText('Changed by somebody else meanwhile').waitFor();
  await page.keyboard.press('Control+s');
  await page.getByRole('button', { name: 'Save the result' }).click();
  await page.getByText('Saved a.txt').waitFor();
  assert.equal(await readFile(onDisk('src/a.txt'), 'utf8'), 'zero\ntwo\nmine');

  await page.getByRole('button', { name: 'History' }).click();
  const restore = page.getByRole('button', { name: /^Restore version/ });
  await page.getByRole('heading', { name: 'Version 1 → version 2' }).waitFor();
  assert.ok(await restore.isDisabled(), 'the file has this content now');
  await page.getByRole('radio', { name: 'Compare to version 1' }).check();
  // Somebody writes between the look and the decision.
  await writeFile(onDisk('src/a.txt'), 'theirs\n');
  await restore.click();
  await page.getByText(/has changed since it was read/).waitFor();
  assert.equal(await readFile(onDisk('src/a.txt'), 'utf8'), 'theirs\n');
  await page.end();
});
