// Files: the tree, the editor, the history, the trash, the search, and what files of agents can do to the page.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PYTHON_DIR, assertAccessible, call, makeAccount, makeWorkspace, openPage, readFile, signIn, useServer } from './harness.mjs';

const running = useServer({ env: { TOOLREST__RUN__PYTHON_DIR: PYTHON_DIR } });

/** Opens a page of the files of a new workspace with these files. */
async function opened(files = {}) {
  const account = await makeAccount(running.server);
  const workspace = await makeWorkspace(running.server, account);
  for (const [path, content] of Object.entries(files)) await write(workspace, path, content);
  const page = await openPage(running);
  await signIn(page, account);
  const address = (path = '', query = '') => `/w/${workspace.id}/files${path.split('/').map(encodeURIComponent).join('/')}${query}`;
  const goTo = (path, query) => page.goto(address(path, query));
  const now = (path) => readFile(running.server, account.token, workspace.id, path);
  const editor = (name) => page.getByRole('textbox', { name: `Content of ${name}` });
  const item = (name) => page.getByRole('treeitem', { name, exact: true });
  return { account, workspace, page, goTo, now, editor, item };
}

async function write(workspace, path, content) {
  const { status, body } = Buffer.isBuffer(content)
    ? await workspace.agent('system', 'write_file', { path: path.slice(1), content: content.toString('base64'), encoding: 'base64' })
    : await workspace.agent('workspace', 'write', { path, content });
  assert.equal(status, 200, JSON.stringify(body));
}

test('the tree opens folders, follows changes, and is used by the keyboard alone', async () => {
  const { account, workspace, page, goTo, item, editor } = await opened({ '/docs/guide/start.md': '# Start\n', '/src/app.py': 'print(1)\n', '/zebra.txt': 'z\n' });
  await page.getByRole('heading', { name: 'Activity' }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('f');
  await item('docs').waitFor();
  await assertAccessible(page, 'the files');
  await page.keyboard.press('t');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  await item('guide').waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await item('start.md').waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Start', exact: true }).waitFor();
  await assertAccessible(page, 'a rendered file');
  await write(workspace, '/docs/guide/next.md', 'next\n');
  await item('next.md').waitFor();
  // An address opens the folders above its file.
  await goTo('/src/app.py');
  await item('app.py').and(page.locator('[aria-selected=true]')).waitFor();
  await editor('app.py').getByText('print').waitFor();
  await assertAccessible(page, 'the editor');
  const { calls } = await call(running.server, 'GET', `/workspaces/${workspace.id}/calls`, { token: account.token });
  assert.deepEqual([...new Set(calls.map((one) => one.tool))].sort(), ['create_key', 'read_file', 'write'], 'folders are listed without records');
  await page.end();
});

test('ten thousand files in a folder are listed, of which only those in view are drawn', async () => {
  const { workspace, page, goTo, item } = await opened();
  const code = 'import pathlib\npathlib.Path("many").mkdir()\nfor i in range(10000): pathlib.Path(f"many/file{i:05}.txt").write_text("x")';
  const { body } = await workspace.agent('system', 'run_code', { language: 'python', code });
  assert.equal(body.value?.exitCode, 0, JSON.stringify(body).slice(0, 500));
  await goTo('/many/file09999.txt');
  await item('file09999.txt').waitFor();
  assert.ok((await page.getByRole('treeitem').count()) < 150);
  await page.getByRole('tree').focus();
  await page.keyboard.press('Home');
  await item('file00000.txt').waitFor();
  // A frame is drawn in time while the list is scrolled from end to end.
  const slowest = await page.getByRole('tree').evaluate(async (tree) => {
    let slowest = 0;
    for (let i = 0; i <= 60; i++) {
      const before = performance.now();
      tree.scrollTop = (tree.scrollHeight * i) / 60;
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      slowest = Math.max(slowest, performance.now() - before);
    }
    return slowest;
  });
  assert.ok(slowest < 500, `a frame took ${slowest} ms`);
  await page.end();
});

test('a file is edited and saved', async () => {
  const { page, goTo, now, editor } = await opened({ '/windows.txt': 'one\r\ntwo\r\n' });
  await goTo('/windows.txt');
  await editor('windows.txt').click();
  await page.keyboard.press('Control+Home');
  await page.keyboard.type('zero ');
  await page.getByText('Not saved').waitFor();
  await page.keyboard.press('Control+s');
  await page.getByText('Saved windows.txt').waitFor();
  // The ends of lines stay as they were.
  assert.equal(await now('/windows.txt'), 'zero one\r\ntwo\r\n');
  await page.end();
});

test('a save over a changed file shows the difference, and saves what the person decides', async () => {
  const text = 'one\ntwo\nthree\nfour\nfive\nsix\n';
  const { workspace, page, goTo, now, editor } = await opened({ '/list.txt': text });
  await goTo('/list.txt');
  await editor('list.txt').click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('mine\n');
  await write(workspace, '/list.txt', text.replace('one', 'theirs'));
  await page.getByText('Changed by somebody else meanwhile').waitFor();
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('list.txt was changed by somebody else since you opened it.').waitFor();
  assert.equal(await now('/list.txt'), text.replace('one', 'theirs'), 'nothing is overwritten');
  await page.getByRole('textbox', { name: 'Their text' }).getByText('theirs').waitFor();
  await page.getByRole('textbox', { name: 'Your text' }).getByText('mine').waitFor();
  await page.getByRole('textbox', { name: 'The result' }).getByText('theirs').waitFor();
  await assertAccessible(page, 'the three-way difference');
  await page.getByRole('button', { name: 'Save the result' }).click();
  await page.getByText('Saved list.txt').waitFor();
  assert.equal(await now('/list.txt'), `${text.replace('one', 'theirs')}mine\n`);

  // Both change the same line: the person's version is offered, and theirs can be taken.
  await editor('list.txt').click();
  await page.keyboard.press('Control+Home');
  await page.keyboard.type('my ');
  await write(workspace, '/list.txt', 'their own\n');
  await page.keyboard.press('Control+s');
  await page.getByText(/Both changed 1 place/).waitFor();
  await page.getByRole('button', { name: 'Take theirs' }).click();
  await editor('list.txt').getByText('their own').waitFor();
  assert.equal(await now('/list.txt'), 'their own\n');
  await page.end();
});

test('any two versions are compared, and one is restored', async () => {
  const { workspace, page, goTo, now } = await opened({ '/plan.txt': 'first\n' });
  await write(workspace, '/plan.txt', 'second\n');
  await write(workspace, '/plan.txt', 'third\n');
  await goTo('/plan.txt');
  await page.getByRole('button', { name: 'History' }).click();
  await page.getByRole('heading', { name: 'Version 2 → version 3' }).waitFor();
  await page.getByRole('radio', { name: 'Compare from version 1' }).check();
  await page.getByRole('heading', { name: 'Version 1 → version 3' }).waitFor();
  await page.getByRole('textbox', { name: 'Version 1' }).getByText('first').waitFor();
  await page.getByRole('textbox', { name: 'Version 3' }).getByText('third').waitFor();
  await assertAccessible(page, 'the history');
  await page.getByRole('radio', { name: 'Compare to version 2' }).check();
  await page.getByRole('button', { name: 'Restore version 2' }).click();
  await page.getByText('Version 2 is restored').waitFor();
  assert.equal(await now('/plan.txt'), 'second\n');
  await page.getByRole('radio', { name: 'Compare from version 3' }).waitFor();
  await page.end();
});

test('a commit is shown and undone', async () => {
  const { workspace, page, goTo, now } = await opened({ '/a.txt': 'old\n' });
  await write(workspace, '/a.txt', 'new\n');
  await goTo('', '?view=commits');
  await page.getByRole('row').filter({ hasText: '/a.txt' }).first().click();
  const panel = page.getByRole('complementary', { name: 'Commit' });
  await panel.getByText('new').waitFor();
  await assertAccessible(page, 'the commits');
  await panel.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('The commit is undone').waitFor();
  assert.equal(await now('/a.txt'), 'old\n');
  await page.getByRole('row').filter({ hasText: 'undone' }).waitFor();
  await page.end();
});

test('a file is removed, and restored from the trash', async () => {
  const { page, goTo, now, item } = await opened({ '/docs/keep.md': 'keep me\n', '/other.md': 'x\n' });
  await goTo('/docs/keep.md');
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog', { name: 'Remove keep.md?' }).getByRole('button', { name: 'Remove' }).click();
  await page.getByText('keep.md is in the trash').waitFor();
  assert.equal(await now('/docs/keep.md'), null);
  await page.getByRole('link', { name: 'Trash' }).click();
  await page.getByRole('row').filter({ hasText: '/docs/keep.md' }).click();
  await page.getByRole('region', { name: 'Its content' }).getByText('keep me').waitFor();
  await assertAccessible(page, 'the trash');
  await page.getByRole('button', { name: 'Restore' }).click();
  await page.getByText('Restored /docs/keep.md').waitFor();
  assert.equal(await now('/docs/keep.md'), 'keep me\n');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await item('keep.md').waitFor();
  await page.end();
});

test('a search result opens the file at its line', async () => {
  const lines = Array.from({ length: 400 }, (_, i) => (i === 311 ? 'let needle = 42;' : `line ${i + 1}`)).join('\n');
  const { page, goTo, editor } = await opened({ '/src/long.rs': lines, '/b.md': 'a needle too\n' });
  await goTo('');
  await page.getByRole('tree').waitFor();
  await page.keyboard.press('/');
  await page.getByRole('searchbox', { name: 'Regular expression' }).fill('needle = \\d+');
  await page.keyboard.press('Enter');
  await page.getByText('1 line in 1 file').waitFor();
  await assertAccessible(page, 'the search');
  await page.getByRole('row').filter({ hasText: 'let needle' }).click();
  await page.waitForURL(/files\/src\/long\.rs\?line=312/);
  const target = editor('long.rs').locator('.cm-target');
  await target.getByText('let needle = 42;').waitFor();
  assert.ok(await target.isVisible());
  const box = await target.boundingBox();
  assert.ok(box.y > 0 && box.y < 760, 'the line is in view');
  await page.end();
});

test('tables, pictures and bytes are shown as what they are', async () => {
  const rows = Array.from({ length: 12_000 }, (_, i) => `${i},"name, ${i}",${i * 2}`).join('\n');
  const { workspace, page, goTo, now } = await opened({ '/sales.csv': `id,name,sum\n${rows}\n`, '/raw.bin': Buffer.from([0, 1, 2, 255, 254, 65, 66, 0]) });
  await goTo('/sales.csv');
  await page.getByRole('gridcell', { name: 'name, 3', exact: true }).waitFor();
  await page.getByText('12,000 rows, 3 columns').waitFor();
  await assertAccessible(page, 'a table');
  await goTo('/raw.bin');
  await page.getByText('000000  00 01 02 ff fe 41 42 00').waitFor();
  const script = "import os, pandas\nfrom matplotlib import pyplot\npandas.read_csv(os.environ['INPUT_FILE']).head(50).plot(x='id', y='sum')\npyplot.savefig(os.environ['OUTPUT_IMAGE'])";
  const plot = { input_file_path: 'sales.csv', visualization_script: script, output_image_path: 'plots/sales.png' };
  const { status, body } = await workspace.agent('backend', 'data_visualize', plot);
  assert.equal(status, 200, JSON.stringify(body));
  await goTo('/plots/sales.png');
  const picture = page.getByRole('img', { name: 'sales.png' });
  await picture.waitFor();
  await page.getByText('640 × 480').waitFor();
  assert.equal(await picture.evaluate((image) => image.naturalWidth), 640);
  await assertAccessible(page, 'a picture');
  assert.ok(await now('/plots/sales.png'));
  await page.end();
});

test('files of agents run no script, whatever they contain or are called', async () => {
  const attack = 'window.parent.attacked = window.attacked = true; document.title = 1';
  const name = `<img src=x onerror="window.attacked=true">.md`;
  const files = {
    '/page.html': `<script>${attack}</script><h1 onclick="${attack}">Hello</h1>`,
    '/drawing.svg': `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload="${attack}"><script>${attack}</script><rect width="40" height="40"/></svg>`,
    [`/${name}`]: `# Title\n\n<script>${attack}</script>\n\n<img src=x onerror="window.attacked=true">\n\n[run](javascript:window.attacked=true) [data](data:text/html,x) [fine](other.md) ![remote](https://example.com/x.png)\n\n| a | b |\n|---|---|\n| <b>1</b> | 2 |\n`,
  };
  const { workspace, page, goTo, item } = await opened(files);
  await page.context().route(/example\.com/, () => assert.fail('a picture of another place was requested'));
  await goTo('/page.html');
  await page.getByRole('textbox', { name: 'Content of page.html' }).getByText('Hello').waitFor();
  await goTo('/drawing.svg');
  await page.getByText('40 × 40').waitFor();
  await goTo(`/${name}`);
  await page.getByRole('heading', { name: 'Title', exact: true }).waitFor();
  await item(name).waitFor();
  const region = page.getByRole('region', { name: 'Rendered text' });
  await region.getByText(`<script>${attack}</script>`).waitFor();
  assert.equal(await region.locator('img, script, b').count(), 0);
  assert.equal(await region.getByRole('link', { name: 'run' }).count(), 0);
  assert.equal(await region.getByRole('link', { name: 'data' }).count(), 0);
  assert.equal(await region.getByRole('link', { name: 'fine' }).getAttribute('href'), `/w/${workspace.id}/files/other.md`);
  assert.equal(await page.evaluate(() => window.attacked), undefined);
  await assertAccessible(page, 'a file with markup in its name');

  // The file's own address is a download, which no browser shows as a page of the server.
  const response = await page.request.get(`/api/v1/workspaces/${workspace.id}/content/page.html`);
  assert.match(response.headers()['content-security-policy'], /^sandbox/);
  assert.equal(response.headers()['x-content-type-options'], 'nosniff');
  assert.equal(response.headers()['content-disposition'], 'attachment');
  assert.equal(response.headers()['content-type'], 'application/octet-stream');
  await page.end();
});

test('files are uploaded, also by dropping them, and downloaded', async () => {
  const { page, goTo, now, item } = await opened({ '/docs/a.md': 'old\n' });
  await goTo('/docs');
  await page.getByRole('row').filter({ hasText: 'a.md' }).waitFor();
  await page.locator('input[type=file]').setInputFiles({ name: 'new.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0, 200, 1]) });
  await page.getByText('Uploaded new.bin').waitFor();
  await item('new.bin').waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download' }).click()]);
  assert.equal(download.suggestedFilename(), 'new.bin');

  const data = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(['dropped\n'], 'a.md'));
    return transfer;
  });
  await item('docs').dispatchEvent('drop', { dataTransfer: data });
  const dialog = page.getByRole('dialog', { name: 'Replace 1 file?' });
  await dialog.getByText('/docs has a.md already').waitFor();
  await assertAccessible(page, 'the question before files are replaced');
  assert.equal(await now('/docs/a.md'), 'old\n');
  await dialog.getByRole('button', { name: 'Replace' }).click();
  await page.getByText('Uploaded a.md').waitFor();
  assert.equal(await now('/docs/a.md'), 'dropped\n');
  await page.end();
});

test('files and folders are made, renamed, and not overwritten by it', async () => {
  const { page, goTo, now, item } = await opened({ '/a.txt': 'a\n', '/b.txt': 'b\n' });
  await goTo('/a.txt');
  await page.getByRole('textbox', { name: 'Content of a.txt' }).waitFor();
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByLabel('New path').fill('/b.txt');
  await page.keyboard.press('Enter');
  await page.getByText('/b.txt exists already').waitFor();
  await page.getByLabel('New path').fill('/notes/c.txt');
  await page.keyboard.press('Enter');
  await page.waitForURL(/files\/notes\/c\.txt/);
  assert.equal(await now('/notes/c.txt'), 'a\n');
  await page.getByRole('button', { name: 'New file' }).click();
  await page.getByRole('textbox', { name: 'Path', exact: true }).fill('/notes/d.txt');
  await page.keyboard.press('Enter');
  await item('d.txt').waitFor();
  assert.equal(await now('/notes/d.txt'), '');
  await page.end();
});

test('a viewer reads, and is offered nothing that changes files', async () => {
  const { account, workspace } = await opened({ '/a.txt': 'a\n' });
  const viewer = await makeAccount(running.server);
  await call(running.server, 'POST', `/workspaces/${workspace.id}/members`, { token: account.token, body: { email: viewer.email, role: 'viewer' } });
  const page = await openPage(running);
  await signIn(page, viewer);
  await page.goto(`/w/${workspace.id}/files/a.txt`);
  await page.getByRole('textbox', { name: 'Content of a.txt' }).getByText('a').waitFor();
  for (const name of ['New file', 'Upload', 'Rename', 'Remove']) assert.equal(await page.getByRole('button', { name }).count(), 0, name);
  await page.end();
});
