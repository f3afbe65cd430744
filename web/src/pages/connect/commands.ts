// What connects an agent to a workspace over the Model Context Protocol.

type Client = { name: string; hint: string; text: (origin: string, secret: string) => string };

export const clients: [Client, ...Client[]] = [
  {
    name: 'Claude Code',
    hint: 'Run this in a terminal:',
    text: (origin, secret) => `claude mcp add --transport http toolrest ${origin}/mcp --header "Authorization: Bearer ${secret}"`,
  },
  {
    name: 'Cursor, Windsurf and others',
    hint: 'Add this to the list of MCP servers of the agent, such as .cursor/mcp.json:',
    text: (origin, secret) =>
      JSON.stringify(
        { mcpServers: { toolrest: { type: 'http', url: `${origin}/mcp`, headers: { Authorization: `Bearer ${secret}` } } } },
        null,
        2,
      ),
  },
  {
    name: 'An agent that starts its servers',
    hint: 'Have the agent run this command, which passes every message on to the server:',
    text: (origin, secret) => `TOOLREST_TOKEN=${secret} toolrest mcp --server ${origin}`,
  },
];

export function curlCommand(origin: string, workspace: string, secret: string): string {
  const body = JSON.stringify({ tool: 'write', args: { path: '/notes/hello.md', content: '# Hello\n' } });
  return [
    `curl -s ${origin}/api/v1/workspaces/${workspace}/tools`,
    `-H 'Authorization: Bearer ${secret}'`,
    `-H 'Content-Type: application/json'`,
    `-d '${body}'`,
  ].join(' \\\n  ');
}
