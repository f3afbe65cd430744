// The playground: a tool's form, dry runs, runs, and the call as a program makes it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { assertAccessible, call, makeAccount, makeWorkspace, openPage, readFile, signIn, useServer } from './harness.mjs';

const running = useServer();

async function opened(toolset, tool) {
  const account = await makeAccount(running.server);
  const workspace = await makeWorkspace(running.server, account);
  const page = await openPage(running);
  await signIn(page, account);
  await page.goto(`/w/${workspace.id}/playground?toolset=${toolset}&tool=${tool}`);
  await page.getByRole('heading', { name: tool, exact: true }).waitFor();
  const now = (path) => readFile(running.server, account.token, workspace.id, path);
  const result = page.getByRole('region', { name: 'Result' });
  return { account, workspace, page, now, result };
}

test('a dry run shows what a call would do, and the run does it', async () => {
  const { page, now, result } = await opened('system', 'write_file');
  await assertAccessible(page, 'the playground');
  await page.getByLabel('path *').fill('notes/plan.md');
  await page.getByLabel('content *').fill('# Plan\n');
  await page.getByLabel('createDirs').selectOption('true');
  await page.getByRole('button', { name: 'Dry run' }).click();
  await result.getByText('allowed').waitFor();
  await result.getByRole('region', { name: 'What it would change' }).getByText('# Plan').waitFor();
  assert.equal(await now('/notes/plan.md'), null, 'nothing is written');
  await assertAccessible(page, 'a dry run');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await result.getByText('ok', { exact: true }).waitFor();
  assert.equal(await now('/notes/plan.md'), '# Plan\n');
  const answer = result.getByRole('region', { name: 'Answer' });
  assert.match(await answer.textContent(), /notes\/plan\.md/);
  await result.getByRole('button', { name: 'Data' }).click();
  const data = JSON.parse(await answer.textContent());
  assert.equal(data.value.size, 7);
  await assertAccessible(page, 'a result');
  await page.end();
});

test('the form and the JSON are the same arguments, and what is wrong is told at its place', async () => {
  const { workspace, page, now, result } = await opened('workspace', 'edit');
  await workspace.agent('workspace', 'write', { path: '/a.txt', content: 'one two\n' });
  await page.getByLabel('path *').fill('/a.txt');
  await page.getByRole('button', { name: 'JSON' }).click();
  const json = page.getByLabel('Arguments as JSON');
  assert.deepEqual(JSON.parse(await json.inputValue()), { path: '/a.txt' });
  await json.fill('{"path": "/a.txt", "old_string": "two"');
  assert.ok(await page.getByRole('button', { name: 'Run', exact: true }).isDisabled());
  await json.fill('{"path": "/a.txt", "old_string": "two", "new_string": "2", "fuzzy": true}');
  await page.getByRole('button', { name: 'JSON' }).click();
  assert.equal(await page.getByLabel('old_string *').inputValue(), 'two');
  assert.equal(await page.getByLabel('fuzzy').inputValue(), 'true');
  await page.getByLabel('old_string *').fill('three');
  await page.getByRole('button', { name: 'Dry run' }).click();
  await result.getByText('VALIDATION_ERROR').waitFor();
  await page.getByLabel('old_string *').fill('two');
  await page.getByLabel('old_string *').press('Control+Enter');
  await result.getByText('ok', { exact: true }).waitFor();
  assert.equal(await now('/a.txt'), 'one 2\n');
  await page.getByLabel('path *').fill('/missing.txt');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('File not found: /missing.txt').first().waitFor();
  await page.end();
});

test('a command is shown before it runs, and the text for a model beside the data', async () => {
  const { page, result } = await opened('system', 'run_code');
  await page.getByLabel('language *').selectOption('bash');
  await page.getByLabel('code *').fill('echo "<i>hi</i>"; exit 3');
  await page.getByRole('button', { name: 'Dry run' }).click();
  await result.getByRole('region', { name: 'Command' }).getByText('echo "<i>hi</i>"').waitFor();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await result.getByRole('region', { name: 'Answer' }).getByText('[exit code 3]').waitFor();
  assert.equal(await result.locator('i i').count(), 0);
  await page.end();
});

test('a run that is judged like that of an agent waits for approval', async () => {
  const { account, workspace, page, now, result } = await opened('workspace', 'write');
  await call(running.server, 'PUT', `/workspaces/${workspace.id}/rules`, { token: account.token, body: { rules: ['ask write(**)'], approvals: 'spec' } });
  await page.getByLabel('path *').fill('/a.txt');
  await page.getByLabel('content *').fill('x');
  await page.getByRole('button', { name: 'Dry run' }).click();
  await result.getByText('would ask').waitFor();
  await page.getByLabel('Judge the run like the call of an agent').check();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await result.getByText('waits for approval').waitFor();
  assert.equal(await now('/a.txt'), null);
  await page.getByLabel('Judge the run like the call of an agent').uncheck();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await result.getByText('ok', { exact: true }).waitFor();
  assert.equal(await now('/a.txt'), 'x');
  await page.end();
});

test('the call as a program works as it is shown', async () => {
  const { workspace, page, now, result } = await opened('workspace', 'write');
  await page.getByLabel('path *').fill("/it's.txt");
  await page.getByLabel('content *').fill('"quoted" $HOME\n');
  const shown = async (name) => {
    await page.getByLabel('Copy as').selectOption(name);
    return page.getByRole('region', { name: `The call as ${name}` }).textContent();
  };
  const env = { ...process.env, TOOLREST_TOKEN: workspace.secret };
  const curl = await shown('curl');
  await assertAccessible(page, 'the call as a program');
  const { stdout } = await promisify(execFile)('bash', ['-c', curl], { env });
  assert.equal(JSON.parse(stdout).success, true, stdout);
  assert.equal(await now("/it's.txt"), '"quoted" $HOME\n');
  const python = await shown('Python');
  const clients = new URL('../../clients/python', import.meta.url).pathname;
  const ran = await promisify(execFile)('python3', ['-c', python.replace('/it\'s.txt', '/python.txt')], { env: { ...env, PYTHONPATH: clients } });
  assert.match(ran.stdout, /python\.txt/);
  const mcp = await shown('MCP');
  const [head, body] = mcp.replace("/it's.txt", '/mcp.txt').split('\n\n');
  const [first, ...headers] = head.replace('$TOOLREST_TOKEN', workspace.secret).split('\n');
  const response = await fetch(first.replace('POST ', ''), { method: 'POST', headers: Object.fromEntries(headers.map((line) => line.split(': '))), body });
  assert.equal((await response.json()).result?.isError, false);
  assert.equal(await now('/mcp.txt'), '"quoted" $HOME\n');
  assert.match(await shown('TypeScript'), /await client\.call\(/);
  await page.getByLabel('Copy as').selectOption('Result');
  await result.getByText('A dry run says').waitFor();
  await page.end();
});

test('the keyboard finds a tool and runs it', async () => {
  const { page, result } = await opened('workspace', 'ls');
  await page.keyboard.press('/');
  await page.keyboard.type('delete');
  const tools = page.getByRole('navigation', { name: 'Tools' });
  await tools.getByRole('link', { name: /^rm/ }).waitFor();
  assert.equal(await tools.getByRole('link').count(), 1);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'rm', exact: true }).waitFor();
  await page.keyboard.press('x');
  await result.getByText('VALIDATION_ERROR').waitFor();
  await page.end();
});
