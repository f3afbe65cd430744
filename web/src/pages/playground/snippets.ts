// A call as a program makes it. Keys are named by a variable, never written out.

import type { Args } from './schema';

export type Snippet = { name: string; text: string };

export function snippets(origin: string, workspace: string, toolset: string, tool: string, args: Args): Snippet[] {
  const body = JSON.stringify({ tool, args, ...(toolset === 'backend' ? { correlationId: 'my-1' } : {}) });
  const pretty = JSON.stringify(args, null, 2);
  const underscored = tool.replaceAll('.', '_');
  return [
    {
      name: 'curl',
      text: [
        `curl -s ${origin}/api/v1/workspaces/${workspace}/toolsets/${toolset}`,
        `-H "Authorization: Bearer $TOOLREST_TOKEN"`,
        `-H 'Content-Type: application/json'`,
        `-d ${shellQuoted(body)}`,
      ].join(' \\\n  '),
    },
    {
      name: 'Python',
      text: [
        'import os',
        'from toolrest import ToolsClient',
        '',
        `client = ToolsClient(${JSON.stringify(origin)}, os.environ["TOOLREST_TOKEN"])`,
        `result = client.call(${JSON.stringify(workspace)}, ${JSON.stringify(toolset)}, ${JSON.stringify(underscored)}, ${python(args, 0)})`,
        'print(result)',
      ].join('\n'),
    },
    {
      name: 'TypeScript',
      text: [
        'import { ToolsClient } from "toolrest";',
        '',
        `const client = new ToolsClient(${JSON.stringify(origin)}, process.env.TOOLREST_TOKEN!);`,
        `const result = await client.call(${JSON.stringify(workspace)}, ${JSON.stringify(toolset)}, ${JSON.stringify(underscored)}, ${pretty});`,
        'console.log(result);',
      ].join('\n'),
    },
    {
      name: 'MCP',
      text: [
        `POST ${origin}/mcp?toolset=${toolset}`,
        'Authorization: Bearer $TOOLREST_TOKEN',
        'Accept: application/json, text/event-stream',
        'Content-Type: application/json',
        '',
        JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: underscored, arguments: args } }, null, 2),
      ].join('\n'),
    },
  ];
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A value in Python's syntax. Strings of JSON are strings of Python too. */
function python(value: unknown, depth: number): string {
  if (value === null) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  const [inner, outer] = ['    '.repeat(depth + 1), '    '.repeat(depth)];
  if (Array.isArray(value)) return value.length ? `[\n${value.map((one) => `${inner}${python(one, depth + 1)},\n`).join('')}${outer}]` : '[]';
  if (typeof value === 'object') {
    const entries = Object.entries(value as Args);
    return entries.length ? `{\n${entries.map(([name, one]) => `${inner}${JSON.stringify(name)}: ${python(one, depth + 1)},\n`).join('')}${outer}}` : '{}';
  }
  return JSON.stringify(value);
}
