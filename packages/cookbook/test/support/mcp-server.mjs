// An MCP server that a test starts as a process of its own.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "arithmetic", version: "1.0.0" });
const numbers = { a: z.number(), b: z.number() };
server.registerTool(
  "add",
  { description: "Adds two numbers.", inputSchema: numbers },
  ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }),
);
server.registerTool("divide", { description: "Divides.", inputSchema: numbers }, ({ a, b }) => {
  if (b === 0) throw new Error("cannot divide by 0");
  return { content: [{ type: "text", text: String(a / b) }] };
});
server.registerTool(
  "wait",
  { description: "Never answers.", inputSchema: {} },
  () => new Promise(() => {}),
);
await server.connect(new StdioServerTransport());
