import { svelte } from '@sveltejs/vite-plugin-svelte';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';
import { pack } from './build/pack.js';

/** The server that `npm run dev` passes requests on to. */
const server = process.env.TOOLREST_URL ?? 'http://127.0.0.1:3000';

export default defineConfig({
  plugins: [svelte(), pack()],
  resolve: { alias: { $lib: fileURLToPath(new URL('./src/lib', import.meta.url)), $components: fileURLToPath(new URL('./src/components', import.meta.url)) } },
  build: {
    target: 'es2022',
    outDir: fileURLToPath(new URL('./dist/site', import.meta.url)),
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  // Libraries that are loaded late are known from the start, so that the server for development never loads a page anew.
  optimizeDeps: { entries: ['index.html', 'src/**/*.{ts,svelte}'] },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/mcp', '/sign-in'].map((path) => [
        path,
        {
          target: server,
          changeOrigin: true,
          configure: (proxy) => {
            proxy.on('proxyReq', (request) => {
              if (request.hasHeader('origin')) request.setHeader('origin', server);
            });
          },
        },
      ]),
    ),
  },
});
