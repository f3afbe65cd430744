// Approvals: what waits, and every way to decide.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PASSWORD, agent, assertAccessible, call, makeAccount, makeWorkspace, openPage, readFile, signIn, useServer } from './harness.mjs';

const running = useServer();
const read = (account, workspace, path) => readFile(running.server, account.token, workspace.id, path);

/** A page with the approvals of a new workspace, in which a file can be overwritten. */
async function opened(options) {
  const account = await makeAccount(running.server);
  const workspace = await makeWorkspace(running.server, account);
  await workspace.agent('workspace', 'write', { path: '/docs/a.md', content: 'one\ntwo\nthree\n' });
  const page = await openPage(running, options);
  await signIn(page, account);
  await page.goto(`/w/${workspace.id}/approvals`);
  await page.getByText('Nothing waits for you').waitFor();
  return { account, workspace, page, ...parts(page) };
}

function parts(page) {
  const detail = page.getByRole('region', { name: 'Call that waits' });
  return {
    detail,
    list: page.getByRole('list', { name: 'Calls' }),
    diff: detail.getByRole('region', { name: 'What the call changes' }),
    approve: detail.getByRole('button', { name: /^Approve/ }),
  };
}

/** An agent that overwrites a file, which asks. Returns the id of the approval. */
async function overwrite(workspace, content = 'one\n2\nthree\n', { path = 'docs/a.md', headers = {} } = {}) {
  const { status, body } = await workspace.agent('system', 'write_file', { path, content }, { headers });
  assert.equal(status, 202, JSON.stringify(body));
  return body.approval.id;
}

/** The same call again, which gets the answer that the first one did not wait for. */
const repeat = (workspace, content = 'one\n2\nthree\n', path = 'docs/a.md') =>
  workspace.agent('system', 'write_file', { path, content }, { wait: 20 });

const show = (account, workspace, id) =>
  call(running.server, 'GET', `/workspaces/${workspace.id}/approvals/${id}`, { token: account.token }).then((answer) => answer.approval);

test('from a new account to an edited, approved and undone call', async () => {
  const page = await openPage(running);
  const { detail, diff, approve } = parts(page);
  await page.goto('/register');
  await page.getByLabel('Email').fill('grace@example.com');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Make the account' }).click();
  await page.getByRole('button', { name: 'Make the workspace' }).click();
  const setup = await page.getByRole('region', { name: 'Set-up for Claude Code' }).textContent();
  const id = new URL(page.url()).pathname.split('/')[2];
  const workspace = { id, agent: agent(running.server, id, /Bearer (\S+)"/.exec(setup)[1]) };
  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await page.getByText('Live', { exact: true }).waitFor();
  await workspace.agent('system', 'write_file', { path: 'a.md', content: 'one\ntwo\n' });
  await page.getByRole('row').filter({ hasText: 'write_file' }).getByText('ok').waitFor();

  const headers = { 'X-Toolrest-Reason': 'The second line is wrong', 'X-Toolrest-Session': 'cleanup' };
  await overwrite(workspace, 'one\n2\n', { path: 'a.md', headers });
  await page.getByRole('link', { name: /Approvals 1 waiting/ }).waitFor();
  assert.match(await page.title(), /^\(1\) /);
  await page.keyboard.press('g');
  await page.keyboard.press('p');
  await diff.getByText('two').waitFor();
  await detail.getByText('The second line is wrong').waitFor();
  await detail.getByText('the system toolset asks before it overwrites').waitFor();
  await detail.getByText('cleanup').waitFor();
  await assertAccessible(page, 'a call that waits');

  await page.keyboard.press('e');
  await page.getByLabel('content').fill('one\nsecond\n');
  await diff.getByText('second').waitFor();
  await assertAccessible(page, 'a call with edited arguments');
  await detail.getByRole('button', { name: 'Approve the edited call' }).click();
  await detail.getByText('It has run and changed files').waitFor();
  await assertAccessible(page, 'a call that has run');
  const token = (await call(running.server, 'POST', '/auth/login', { body: { email: 'grace@example.com', password: PASSWORD } })).access_token;
  assert.equal(await readFile(running.server, token, id, '/a.md'), 'one\nsecond\n');
  await page.getByText('Nothing waits for you').waitFor();
  assert.doesNotMatch(await page.title(), /^\(/);
  const answer = await workspace.agent('system', 'write_file', { path: 'a.md', content: 'one\n2\n' }, { wait: 20, headers });
  assert.match(JSON.stringify(answer.body), /changed the arguments/);

  await detail.getByRole('button', { name: 'Undo this' }).click();
  await page.getByText('Undone: /a.md').waitFor();
  assert.equal(await readFile(running.server, token, id, '/a.md'), 'one\ntwo\n');
  assert.equal(await approve.count(), 0);
  await page.end();
});

test('a denial tells the agent the reason', async () => {
  const { account, workspace, page, detail } = await opened();
  await overwrite(workspace);
  await detail.getByRole('button', { name: 'Deny…' }).click();
  await page.getByLabel(/Reason, which the agent gets/).fill('Keep the second line');
  await assertAccessible(page, 'a denial');
  await detail.getByRole('button', { name: 'Deny the call' }).click();
  await detail.getByText(/Denied by/).waitFor();
  const { status, body } = await repeat(workspace);
  assert.equal(status, 403);
  assert.match(JSON.stringify(body), /Keep the second line/);
  assert.equal(await read(account, workspace, '/docs/a.md'), 'one\ntwo\nthree\n');
  await page.end();
});

test('an answer instead of a result reaches the agent, and nothing runs', async () => {
  const { account, workspace, page, detail } = await opened();
  await overwrite(workspace);
  await detail.getByText('expires in').waitFor();
  await page.keyboard.press('r');
  await page.getByRole('button', { name: 'Respond', exact: true }).isDisabled();
  await page.keyboard.type('Use docs/b.md');
  await page.keyboard.press('Control+Enter');
  await detail.getByText(/Answered by/).waitFor();
  const { body } = await repeat(workspace);
  assert.match(JSON.stringify(body), /Use docs\/b\.md/);
  assert.equal(await read(account, workspace, '/docs/a.md'), 'one\ntwo\nthree\n');
  await page.end();
});

test('a decision for the session shows exactly the grant, which then holds', async () => {
  const { account, workspace, page, detail, approve } = await opened();
  const headers = { 'X-Toolrest-Session': 'cleanup' };
  await workspace.agent('workspace', 'write', { path: '/docs/b.md', content: 'x\n' });
  await overwrite(workspace, undefined, { headers });
  const other = await overwrite(workspace, 'z\n', { path: 'docs/b.md', headers });
  await detail.getByText('This session').click();
  const offers = await detail.getByLabel('What it covers').locator('option').allTextContents();
  assert.deepEqual(offers, ['write(docs/a.md)', 'write(docs/**)', 'write(**)'], 'the narrowest first');
  await detail.getByText('write(docs/a.md) of agent for 8 hours, in the session cleanup').waitFor();
  await detail.getByLabel('What it covers').selectOption('write(docs/**)');
  await detail.getByText('write(docs/**) of agent for 8 hours').waitFor();
  await assertAccessible(page, 'a grant');
  await approve.click();
  await detail.getByText('It has run').waitFor();
  const { grants } = await call(running.server, 'GET', `/workspaces/${workspace.id}/grants`, { token: account.token });
  assert.deepEqual(grants.map((grant) => [grant.action, grant.pattern, grant.session]), [['write', 'docs/**', 'cleanup']]);
  await page.getByText('The same is allowed now, so 1 other call goes on too.').waitFor();
  await page.getByText('Nothing waits for you').waitFor();
  assert.equal((await show(account, workspace, other)).decided.via, 'rule');
  const { status } = await workspace.agent('system', 'write_file', { path: 'docs/b.md', content: 'y\n' }, { headers });
  assert.equal(status, 200);
  await page.end();
});

test('edited arguments show the grants of what they do', async () => {
  const { account, workspace, page, detail } = await opened();
  await workspace.agent('workspace', 'write', { path: '/docs/b.md', content: 'x\n' });
  await overwrite(workspace);
  await detail.getByText('Always').click();
  await detail.getByText('allow write(docs/a.md)').waitFor();
  await detail.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('path').fill('docs/b.md');
  await detail.getByText('allow write(docs/b.md)').waitFor();
  await detail.getByRole('button', { name: 'Approve the edited call' }).click();
  await detail.getByText('It has run').waitFor();
  const { short } = await call(running.server, 'GET', `/workspaces/${workspace.id}/rules`, { token: account.token });
  assert.deepEqual(short, ['allow write(docs/b.md)']);
  assert.equal(await read(account, workspace, '/docs/a.md'), 'one\ntwo\nthree\n');
  assert.equal(await read(account, workspace, '/docs/b.md'), 'one\n2\nthree\n');
  await page.end();
});

test('a remembered denial refuses the same without asking', async () => {
  const { workspace, page, detail } = await opened();
  await overwrite(workspace);
  await detail.getByRole('button', { name: 'Deny…' }).click();
  await detail.getByText('For 8 hours').click();
  await detail.getByText('without asking write(docs/a.md) of agent for 8 hours').waitFor();
  await detail.getByRole('button', { name: 'Deny the call' }).click();
  await detail.getByText(/Denied by/).waitFor();
  const { status } = await workspace.agent('system', 'write_file', { path: 'docs/a.md', content: 'other\n' }, { headers: { 'X-Toolrest-Session': 'next' } });
  assert.equal(status, 403);
  await page.end();
});

test('a denial can become a rule, which only owners make', async () => {
  const { account, workspace, page, detail } = await opened();
  const editor = await makeAccount(running.server);
  const member = { email: editor.email, role: 'editor' };
  await call(running.server, 'POST', `/workspaces/${workspace.id}/members`, { token: account.token, body: member });
  const id = await overwrite(workspace);
  const second = await openPage(running);
  await signIn(second, editor);
  await second.goto(`/w/${workspace.id}/approvals/${id}`);
  await second.getByText('Only owners change the rules of the workspace.').waitFor();
  assert.ok(await second.getByLabel('Always').isDisabled());
  await detail.getByRole('button', { name: 'Deny…' }).click();
  await detail.getByText('Always').click();
  await detail.getByText('deny write(docs/a.md)').waitFor();
  await detail.getByRole('button', { name: 'Deny the call' }).click();
  await detail.getByText(/Denied by/).waitFor();
  await second.getByText(/Denied by/).waitFor();
  const { short } = await call(running.server, 'GET', `/workspaces/${workspace.id}/rules`, { token: account.token });
  assert.deepEqual(short, ['deny write(docs/a.md)']);
  await second.end();
  await page.end();
});

test('wrong arguments cannot be approved, and what is typed survives a reload', async () => {
  const { account, workspace, page, detail, diff } = await opened();
  const id = await overwrite(workspace);
  await detail.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('content').fill('typed\n');
  await diff.getByText('typed').waitFor();
  assert.match(page.url(), new RegExp(`/approvals/${id}$`));
  await page.reload();
  await diff.getByText('typed').waitFor();
  assert.equal(await page.getByLabel('content').inputValue(), 'typed\n');

  await detail.getByRole('button', { name: 'As JSON' }).click();
  await page.getByLabel('Arguments as JSON').fill('{"path": "docs/a.md"');
  await detail.getByText('The arguments are no JSON object').waitFor();
  assert.ok(await detail.getByRole('button', { name: 'Approve the edited call' }).isDisabled());
  await page.getByLabel('Arguments as JSON').fill('{"path": "docs/a.md", "contents": "x"}');
  await detail.getByRole('alert').getByText(/content/).waitFor();
  assert.ok(await detail.getByRole('button', { name: 'Approve the edited call' }).isDisabled());
  await detail.getByRole('button', { name: 'Discard the changes' }).click();
  await diff.getByText('2', { exact: true }).first().waitFor();
  await detail.getByRole('button', { name: 'Approve', exact: false }).click();
  await detail.getByText('It has run').waitFor();
  assert.equal(await read(account, workspace, '/docs/a.md'), 'one\n2\nthree\n');
  await page.end();
});

test('of two windows that decide at once, one decides and the other says so', async () => {
  const { account, workspace, page, detail, approve } = await opened();
  const second = await openPage(running);
  const other = parts(second);
  await signIn(second, account);
  // The second window does not hear of what happens.
  await second.route('**/api/v1/workspaces/*/events*', (route) => route.abort());
  const id = await overwrite(workspace);
  await second.goto(`/w/${workspace.id}/approvals/${id}`);
  await other.detail.getByRole('button', { name: 'Deny…' }).click();
  await second.getByLabel(/Reason, which the agent gets/).fill('too late');
  await approve.click();
  await detail.getByText('It has run').waitFor();
  await other.detail.getByRole('button', { name: 'Deny the call' }).click();
  await other.detail.getByText('Nothing was decided.').waitFor();
  await other.detail.getByText(/Approved by/).waitFor();
  assert.equal((await show(account, workspace, id)).state, 'done');

  const next = await overwrite(workspace, 'again\n');
  for (const each of [page, second]) await each.goto(`/w/${workspace.id}/approvals/${next}`);
  await Promise.all([approve.waitFor(), other.approve.waitFor()]);
  await Promise.all([approve, other.approve].map((button) => button.evaluate((element) => element.click())));
  await detail.getByText('It has run').waitFor();
  await other.detail.getByText('It has run').waitFor();
  const { events } = await call(running.server, 'GET', `/workspaces/${workspace.id}/approvals/${next}`, { token: account.token });
  assert.equal(events.filter((event) => event.kind === 'approved').length, 1);
  const { commits } = await call(running.server, 'GET', `/workspaces/${workspace.id}/commits`, { token: account.token });
  assert.equal(commits.filter((commit) => commit.tool === 'write_file').length, 2);
  await second.end();
  await page.end();
});

test('a file that changes under an open call makes it ask again, and nothing is decided blindly', async () => {
  const { account, workspace, page, detail, diff, approve } = await opened();
  await overwrite(workspace);
  await diff.getByText('two').waitFor();
  await workspace.agent('workspace', 'write', { path: '/docs/a.md', content: 'one\nTWO\nthree\n' });
  await detail.getByText('/docs/a.md changed after this was shown').waitFor();
  await assertAccessible(page, 'a call whose file has changed');
  await approve.click();
  await detail.getByText('This call asks again, as revision 2.').waitFor();
  assert.ok(await approve.isDisabled());
  await diff.getByText('two').waitFor();
  assert.equal(await read(account, workspace, '/docs/a.md'), 'one\nTWO\nthree\n');
  await assertAccessible(page, 'a newer revision');
  await detail.getByRole('button', { name: 'Show revision 2' }).click();
  await diff.getByText('TWO').waitFor();
  await approve.click();
  await detail.getByText('It has run').waitFor();
  assert.equal(await read(account, workspace, '/docs/a.md'), 'one\n2\nthree\n');
  await page.end();
});

test('a preview that the files have outrun is not approved', async () => {
  const { account, workspace, page, detail, diff } = await opened();
  // The window does not hear of the change, so the server has to notice it.
  await page.route('**/api/v1/workspaces/*/events*', (route) => route.abort());
  const id = await overwrite(workspace);
  await page.goto(`/w/${workspace.id}/approvals/${id}`);
  await detail.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('content').fill('mine\n');
  await diff.getByText('mine').waitFor();
  await workspace.agent('workspace', 'write', { path: '/docs/a.md', content: 'changed\n' });
  await detail.getByRole('button', { name: 'Approve the edited call' }).click();
  await detail.getByText('Nothing was decided.').waitFor();
  assert.equal(await read(account, workspace, '/docs/a.md'), 'changed\n');
  await diff.getByText('changed').waitFor();
  await detail.getByRole('button', { name: 'Approve the edited call' }).click();
  await detail.getByText('It has run').waitFor();
  assert.equal(await read(account, workspace, '/docs/a.md'), 'mine\n');
  await page.end();
});

test('a name with markup is a text, and hidden characters of a command are seen', async () => {
  const { account, workspace, page, detail, diff, list } = await opened();
  const path = 'docs/<img src=x onerror="document.title=1">.md';
  await workspace.agent('workspace', 'write', { path: `/${path}`, content: 'old\n' });
  await overwrite(workspace, '<script>document.title = 2</script>\n', { path });
  await diff.getByText('<script>document.title = 2</script>').waitFor();
  await list.getByText(path).waitFor();
  assert.equal(await page.locator('main img, main script').count(), 0);

  const rules = { rules: ['ask exec'], approvals: 'spec' };
  await call(running.server, 'PUT', `/workspaces/${workspace.id}/rules`, { token: account.token, body: rules });
  const command = 'echo safe # \u202e\u001b[8m\nrm -r docs';
  const { body } = await workspace.agent('backend', 'executeShellCommand', { command });
  await page.goto(`/w/${workspace.id}/approvals/${body.approval.id}`);
  const shown = await detail.getByRole('region', { name: 'Command' }).textContent();
  assert.match(shown, /echo safe # \\u\{202e\}\\u\{1b\}\[8m\nrm -r docs/);
  const args = await detail.getByRole('region', { name: 'Arguments' }).textContent();
  assert.ok(!args.includes('\u202e'), 'the arguments show no hidden character as it is');
  await detail.getByRole('button', { name: 'Edit' }).click();
  assert.match(await page.getByRole('textbox', { name: 'command' }).inputValue(), /\\u001b/);
  await page.end();
});

test('several calls are decided at once, each as it was shown', async () => {
  const { account, workspace, page, list, detail } = await opened();
  for (const name of ['b', 'c', 'd']) await workspace.agent('workspace', 'write', { path: `/docs/${name}.md`, content: 'old\n' });
  for (const name of ['b', 'c', 'd']) await overwrite(workspace, `new ${name}\n`, { path: `docs/${name}.md` });
  await list.getByRole('listitem').nth(2).waitFor();
  for (const name of ['b', 'c']) await list.getByRole('checkbox', { name: new RegExp(`docs/${name}.md`) }).check();
  await page.getByText('2 calls selected').waitFor();
  await page.keyboard.press('b');
  const dialog = page.getByRole('dialog', { name: 'Decide about 2 calls' });
  await dialog.getByText('new b').waitFor();
  await dialog.getByText('new c').waitFor();
  await assertAccessible(page, 'the dialog about several calls');
  // It is not closed by accident.
  await page.keyboard.press('Escape');
  await page.mouse.click(5, 5);
  await dialog.getByRole('button', { name: 'Approve 2 once' }).click();
  await dialog.getByText('2 calls were decided.').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await list.getByText('docs/b.md').waitFor({ state: 'detached' });
  await list.getByText('docs/d.md').waitFor();
  assert.equal(await detail.count(), 1);
  for (let tries = 0; (await read(account, workspace, '/docs/c.md')) !== 'new c\n'; tries++) assert.ok(tries < 200, 'the call has run');
  assert.equal(await read(account, workspace, '/docs/d.md'), 'old\n');
  await page.end();
});

test('the keyboard is enough, and no single key decides', async () => {
  const { account, workspace, page, list, detail } = await opened();
  await workspace.agent('workspace', 'write', { path: '/docs/b.md', content: 'old\n' });
  const first = await overwrite(workspace, 'a\n');
  const second = await overwrite(workspace, 'b\n', { path: 'docs/b.md' });
  await list.getByRole('listitem').nth(1).waitFor();
  await page.waitForURL(`**/approvals/${first}`);
  await page.keyboard.press('j');
  await page.waitForURL(`**/approvals/${second}`);
  await detail.getByText('docs/b.md').first().waitFor();
  await page.keyboard.press('k');
  await page.waitForURL(`**/approvals/${first}`);
  await page.keyboard.press('n');
  await page.keyboard.type('no');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.keyboard.press('y');
  assert.equal((await show(account, workspace, first)).state, 'pending');
  await page.keyboard.press('Enter');
  await detail.getByText('It has run').waitFor();
  await page.keyboard.press('j');
  await page.waitForURL(`**/approvals/${second}`);
  assert.equal((await show(account, workspace, second)).state, 'pending');
  await page.end();
});

test('an ended session is renewed, and after a new sign-in the draft is still there', async () => {
  const { account, workspace, page, detail } = await opened();
  const id = await overwrite(workspace);
  await detail.getByText('expires in').waitFor();
  await page.context().clearCookies({ name: 'access_token' });
  await page.keyboard.press('n');
  await page.keyboard.type('not now');
  assert.equal((await page.context().cookies()).filter((cookie) => cookie.name === 'access_token').length, 0);
  await page.reload();
  await page.getByLabel(/Reason, which the agent gets/).waitFor();
  assert.equal((await page.context().cookies()).filter((cookie) => cookie.name === 'access_token').length, 1, 'the session was renewed');
  await page.context().clearCookies();
  await detail.getByRole('button', { name: 'Deny the call' }).click();
  await page.waitForURL(/\/login\?next=/);
  await page.getByLabel('Email').fill(account.email);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(`**/approvals/${id}`);
  assert.equal(await page.getByLabel(/Reason, which the agent gets/).inputValue(), 'not now');
  await detail.getByRole('button', { name: 'Deny the call' }).click();
  await detail.getByText(/Denied by/).waitFor();
  assert.equal((await show(account, workspace, id)).decided.reason, 'not now');
  await page.end();
});

test('a small screen shows the list or one call, and decides', async () => {
  const { workspace, page, list, detail, approve } = await opened({ viewport: { width: 390, height: 740 } });
  await overwrite(workspace);
  await list.getByText('docs/a.md').click();
  await approve.waitFor();
  assert.ok(!(await list.isVisible()));
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, 'nothing is wider than the screen');
  await assertAccessible(page, 'a call on a small screen');
  await detail.getByRole('link', { name: '← All' }).click();
  await list.getByText('docs/a.md').click();
  await approve.click();
  await detail.getByText('It has run').waitFor();
  await page.end();
});

test('a hidden page gets a notification, and earlier calls stay listed', async () => {
  const account = await makeAccount(running.server);
  const workspace = await makeWorkspace(running.server, account);
  await workspace.agent('workspace', 'write', { path: '/docs/a.md', content: 'one\n' });
  const page = await openPage(running);
  await page.context().grantPermissions(['notifications']);
  await page.addInitScript(() => {
    window.notes = [];
    window.Notification = class {
      static permission = 'granted';
      constructor(title, options) {
        window.notes.push(options.body);
      }
      close() {}
    };
    Object.defineProperty(document, 'hidden', { get: () => true });
  });
  await signIn(page, account);
  await page.goto(`/w/${workspace.id}/approvals`);
  await page.getByText('Nothing waits for you').waitFor();
  const id = await overwrite(workspace);
  await page.waitForFunction(() => window.notes.length === 1);
  assert.deepEqual(await page.evaluate(() => window.notes), ['write_file waits for your decision']);
  const decision = { decision: 'deny', revision: 1, reason: 'not this one' };
  await call(running.server, 'POST', `/workspaces/${workspace.id}/approvals/${id}/decision`, { token: account.token, body: decision });
  await page.getByText('Nothing waits for you').waitFor();
  await page.getByRole('link', { name: 'Earlier' }).click();
  await page.getByRole('list', { name: 'Calls' }).getByText('denied').waitFor();
  await page.getByRole('list', { name: 'Calls' }).getByText('docs/a.md').click();
  await page.getByText('“not this one”').waitFor();
  await assertAccessible(page, 'an earlier call');
  await page.end();
});

test('a viewer looks and does not decide', async () => {
  const account = await makeAccount(running.server);
  const workspace = await makeWorkspace(running.server, account);
  await workspace.agent('workspace', 'write', { path: '/docs/a.md', content: 'one\n' });
  const viewer = await makeAccount(running.server);
  const body = { email: viewer.email, role: 'viewer' };
  await call(running.server, 'POST', `/workspaces/${workspace.id}/members`, { token: account.token, body });
  const id = await overwrite(workspace);
  const page = await openPage(running);
  await signIn(page, viewer);
  await page.goto(`/w/${workspace.id}/approvals/${id}`);
  await page.getByText('Viewers can look').waitFor();
  assert.equal(await page.getByRole('button', { name: /Approve|Deny|Edit/ }).count(), 0);
  await page.end();
});
