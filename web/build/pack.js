// Compresses the files of the console when they are built, so that the server compresses nothing.

import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

/** Pictures and fonts are compressed already, and in very small files the headers cost more than is saved. */
const COMPRESSIBLE = /\.(js|css|svg|json)$/;
const MIN_BYTES = 512;

/** A plugin that writes a `.br` and a `.gz` beside every file, and reports the size of what the first page loads. */
export function pack() {
  let folder = '';
  return {
    name: 'pack',
    apply: 'build',
    configResolved(config) {
      folder = join(config.build.outDir, 'assets');
    },
    async closeBundle() {
      const sizes = new Map();
      for (const name of await readdir(folder)) {
        const bytes = await readFile(join(folder, name));
        if (!COMPRESSIBLE.test(name) || bytes.length < MIN_BYTES) continue;
        const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
        const brotli = brotliCompressSync(bytes, { params });
        await writeFile(join(folder, `${name}.br`), brotli);
        await writeFile(join(folder, `${name}.gz`), gzipSync(bytes, { level: 9 }));
        sizes.set(name, brotli.length);
      }
      const page = await readFile(join(folder, '..', 'index.html'), 'utf8');
      const first = [...sizes].filter(([name]) => page.includes(name)).reduce((sum, [, size]) => sum + size, 0);
      console.log(`The first page loads ${(first / 1000).toFixed(1)} kB, compressed with Brotli.`);
      if (first > SHELL_BYTES) throw new Error(`The first page loads more than ${SHELL_BYTES / 1000} kB`);
    },
  };
}

/** Maximum size of what the first page loads, compressed. */
const SHELL_BYTES = 60_000;
