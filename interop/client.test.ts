// Uses the TypeScript client against a server; test_clients.py compiles and runs it.
import { ApprovalRequired, ToolrestError, ToolsClient } from "./index.js";

declare const process: { argv: string[] };

const [url, workspace, key, token] = process.argv.slice(2) as [string, string, string, string];
const client = new ToolsClient(url, key);
const person = new ToolsClient(url, token);

function check(is: boolean, what: string): void {
  if (!is) throw new Error(`it does not hold that ${what}`);
}

async function fails(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error("nothing failed");
}

await client.write(workspace, "/notes/new-file.md", { text: "Hello from Tools API!" });
await client.touch(workspace, "/notes/placeholder.txt");
await client.mkdir(workspace, "/docs");
await client.mv(workspace, "/notes/new-file.md", "/docs/thoughts.md");
await client.edit(workspace, "/docs/thoughts.md", "Hello", "Greetings");
await client.rm(workspace, "/notes/placeholder.txt");
const { result } = await client.ls(workspace, "/", true);
check(result.entries.some((entry) => entry.name === "thoughts.md"), "the file is listed");
check((await client.grep(workspace, "Greetings")).result.matches.length === 1, "the text is found");
const read = await client.call(workspace, "file", "file_read", { path: "docs/thoughts.md" });
check(read.content.includes("Greetings"), "the content is read");

const options = { path: { workspace }, query: { limit: 3 } };
const { commits } = await client.request("get", "/api/v1/workspaces/{workspace}/commits", options);
check(commits.length === 3, "three commits are listed");
const bytes = await client.request("get", "/api/v1/workspaces/{workspace}/content/{path}", {
  path: { workspace, path: "docs/thoughts.md" },
});
check(bytes === "Greetings from Tools API!", "the file is downloaded");

const missing = await fails(client.read(workspace, "/missing.txt"));
check(missing instanceof ToolrestError && missing.status === 404, "a missing file is an error");

const rules = { path: { workspace }, body: { rules: ["ask write"] } };
await person.request("put", "/api/v1/workspaces/{workspace}/rules", rules);
const args = { path: "/a.txt", content: "a" };
const waiting = await fails(client.call(workspace, "workspace", "write", args, { wait: 0, reason: "a test" }));
check(waiting instanceof ApprovalRequired, "the call waits");
const approval = (waiting as ApprovalRequired).approval.id;
const shown = await person.request("get", "/api/v1/workspaces/{workspace}/approvals/{approval}", {
  path: { workspace, approval },
});
check(shown.approval.reason === "a test", "the reason is shown");
