// What the tests of the console share: a server of their own, a browser, and an agent.

import violationsIn from './axe.mjs';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const BINARY = process.env.TOOLREST_BINARY ?? fileURLToPath(new URL('../../target/debug/toolrest', import.meta.url));
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
/** The Python environment of the data tools, which `make test` sets up. */
export const PYTHON_DIR = fileURLToPath(new URL('../../target/python', import.meta.url));
export const PASSWORD = 'a long password';

/** Starts the server with a data folder of its own. `extra` are arguments of `toolrest serve`, `env` its variables. */
export async function startServer({ extra = [], env = {} } = {}) {
  assert.ok(existsSync(BINARY), `${BINARY} is missing; build it with: cargo build --package toolrest`);
  const folder = await mkdtemp(join(tmpdir(), 'toolrest-e2e-'));
  const child = spawn(BINARY, ['serve', '--data-dir', join(folder, 'data'), '--listen', '127.0.0.1:0', ...extra], {
    env: { PATH: process.env.PATH, HOME: folder, TOOLREST__TOOL_BACKEND__LISTEN: 'none', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const url = await new Promise((resolve, reject) => {
    const read = (data) => {
      output += data;
      const found = /listening on (http:\S+)/.exec(output);
      if (found && /Stop with Ctrl-C/.test(output)) resolve(found[1]);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', (data) => (output += data));
    child.on('exit', () => reject(new Error(`The server ended:\n${output}`)));
  });
  const dev = process.env.CONSOLE_DEV ? await startVite(url) : null;
  return {
    url,
    /** Where the console is served. */
    page: dev?.url ?? url,
    folder,
    output: () => output,
    async stop() {
      await dev?.stop();
      if (child.exitCode === null) {
        const ended = new Promise((resolve) => child.once('exit', resolve));
        child.kill('SIGTERM');
        await ended;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Serves the console from its sources, so that a change can be tried without building the server (`CONSOLE_DEV=1`). */
async function startVite(url) {
  process.env.TOOLREST_URL = url;
  const { createServer } = await import('vite');
  const vite = await createServer({ root: fileURLToPath(new URL('..', import.meta.url)), server: { port: 0, host: '127.0.0.1', hmr: false }, logLevel: 'warn' });
  await vite.listen();
  return { url: vite.resolvedUrls.local[0].replace(/\/$/, ''), stop: () => vite.close() };
}

/** Starts Chromium. */
export async function startBrowser() {
  assert.ok(existsSync(CHROMIUM), `${CHROMIUM} is missing; install it with: apt-get install chromium`);
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

/** Starts a server and a browser for the tests of a file, and stops them after the last one. */
export function useServer(options) {
  const running = {};
  before(async () => {
    running.server = await startServer(options);
    running.browser = await startBrowser();
  });
  after(async () => {
    await running.browser?.close();
    await running.server?.stop();
  });
  return running;
}

/** Opens a page in a new profile of the browser. Errors of the page fail the test that closes it. */
export async function openPage({ browser, server }, options = {}) {
  const context = await browser.newContext({ baseURL: server.page, viewport: { width: 1280, height: 760 }, reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    const isExpected = /Failed to load resource|net::ERR/.test(message.text());
    if (message.type() === 'error' && !isExpected) errors.push(message.text());
  });
  return Object.assign(page, {
    errors,
    async end() {
      await context.close();
      assert.deepEqual(errors, [], 'errors of the page');
    },
  });
}

let accounts = 0;

/** Makes an account by the REST interface and returns its token. */
export async function makeAccount(server, email = `person${++accounts}@example.com`) {
  await call(server, 'POST', '/auth/register', { body: { email, password: PASSWORD, confirm_password: PASSWORD } });
  const { access_token: token, user } = await call(server, 'POST', '/auth/login', { body: { email, password: PASSWORD } });
  return { email, token, user };
}

/** Makes a workspace of an account, with a key for an agent. */
export async function makeWorkspace(server, account, name = 'demo') {
  const { workspace } = await call(server, 'POST', '/workspaces', { token: account.token, body: { name } });
  const { secret, key } = await call(server, 'POST', `/workspaces/${workspace.id}/keys`, { token: account.token, body: { name: 'agent' } });
  return { ...workspace, key, agent: agent(server, workspace.id, secret), secret };
}

/** An agent that calls tools with its key. It does not wait for approvals unless `wait` says so. */
export function agent(server, workspace, secret) {
  return async (toolset, tool, args, { wait = 0, headers = {} } = {}) => {
    const response = await fetch(`${server.url}/api/v1/workspaces/${workspace}/toolsets/${toolset}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${secret}`, 'Content-Type': 'application/json', Prefer: `wait=${wait}`, ...headers },
      body: JSON.stringify({ tool, args, ...(toolset === 'backend' ? { correlationId: crypto.randomUUID() } : {}) }),
    });
    return { status: response.status, body: await response.json() };
  };
}

/** Sends a request to the REST interface, which must succeed. */
export async function call(server, method, path, { token, body, headers = {} } = {}) {
  const response = await fetch(`${server.url}/api/v1${path}`, {
    method,
    headers: {
      ...(token ? { Authorization: `Bearer ${token}` } : {}),
      ...(body ? { 'Content-Type': 'application/json' } : {}),
      ...headers,
    },
    body: body ? JSON.stringify(body) : undefined,
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

/** Reads a file of a workspace as it is now. */
export async function readFile(server, token, workspace, path) {
  const response = await fetch(`${server.url}/api/v1/workspaces/${workspace}/content${path}`, { headers: { Authorization: `Bearer ${token}` } });
  return response.ok ? response.text() : null;
}

/** Signs in by the form. */
export async function signIn(page, account) {
  await page.goto('/login');
  await page.getByLabel('Email').fill(account.email);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL((url) => url.pathname !== '/login');
}

/** Fails if axe finds something that a person could not perceive or use, in the light or the dark theme. */
export async function assertAccessible(page, what) {
  for (const colorScheme of ['dark', 'light']) {
    await page.emulateMedia({ colorScheme });
    const violations = await violationsIn(page);
    const text = violations.map((one) => `${one.id}: ${one.help}\n${one.nodes.map((node) => `    ${node.html}\n    ${node.failureSummary}`).join('\n')}`);
    assert.equal(text.join('\n'), '', `${what} is not accessible in the ${colorScheme} theme`);
  }
}
