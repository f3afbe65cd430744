// Writes a picture of every page in both themes to web/screenshots. Arguments name pages: `npm run screenshots activity`.

import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { PYTHON_DIR, makeAccount, openPage, signIn, startBrowser, startServer } from './harness.mjs';
import { demo } from './demo.mjs';

const folder = fileURLToPath(new URL('../screenshots', import.meta.url));
const wanted = process.argv.slice(2);
await mkdir(folder, { recursive: true });
const server = await startServer({ env: { TOOLREST__RUN__PYTHON_DIR: PYTHON_DIR } });
const browser = await startBrowser();
try {
  const account = await makeAccount(server, 'ada@example.com');
  const shots = await demo(server, account);
  for (const colorScheme of ['light', 'dark']) {
    const page = await openPage({ server, browser }, { colorScheme });
    let isSignedIn = false;
    for (const { name, path, prepare, isSignedOut, viewport } of shots) {
      if (wanted.length > 0 && !wanted.includes(name)) continue;
      if (!isSignedOut && !isSignedIn) {
        await signIn(page, account);
        isSignedIn = true;
      }
      await page.setViewportSize(viewport ?? { width: 1280, height: 760 });
      await page.goto(path);
      await page.waitForLoadState('load');
      await prepare?.(page);
      // What the page still loads is drawn.
      await page.waitForTimeout(400);
      await page.screenshot({ path: `${folder}/${name}-${colorScheme}.png` });
      console.log(`${name}-${colorScheme}.png`);
    }
    await page.end();
  }
} finally {
  await browser.close();
  await server.stop();
}
