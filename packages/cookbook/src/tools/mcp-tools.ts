import { ArgumentError, TinkerError } from "tinker-ts";
import { ToolReply, type Tool } from "./tool.js";

/** What is used of a client of the Model Context Protocol; that of `@modelcontextprotocol/sdk` is one. */
export interface McpClient {
  /** A page of the tools that the server has. */
  listTools(
    params?: { cursor?: string },
    options?: { signal?: AbortSignal },
  ): Promise<{
    tools: { name: string; description?: string | undefined; inputSchema: object }[];
    nextCursor?: string | undefined;
  }>;
  /** Calls one of them. */
  callTool(
    params: { name: string; arguments: Record<string, unknown> },
    resultSchema?: undefined,
    options?: { signal?: AbortSignal },
  ): Promise<Record<string, unknown>>;
}

/** Where an MCP server is: a program to start, or an address. */
export type McpServer =
  | {
      /** The program; it speaks over its standard input and output. */
      readonly command: string;
      /** Its arguments. */
      readonly args?: readonly string[] | undefined;
      /** Its environment. @default a safe part of this process's */
      readonly env?: Readonly<Record<string, string>> | undefined;
      /** Where it runs. @default here */
      readonly cwd?: string | undefined;
    }
  | {
      /** The address of a server that speaks HTTP. */
      readonly url: string | URL;
      /** Sent with every request. */
      readonly headers?: Readonly<Record<string, string>> | undefined;
    };

/** The tools of a server, and the connection that they need. */
export interface McpConnection {
  /** What the server has. */
  readonly tools: readonly Tool[];
  /** Ends the connection, and the program if one was started. */
  close(): Promise<void>;
}

/** Connects to an MCP server by the official client, which has to be installed: `npm install @modelcontextprotocol/sdk`. */
export async function connectMcp(
  server: McpServer,
  options: McpToolsOptions = {},
): Promise<McpConnection> {
  const { Client } = await needSdk(() => import("@modelcontextprotocol/sdk/client/index.js"));
  const client = new Client({ name: "tinker-ts", version: "0.1.0" });
  try {
    const { signal } = options;
    await client.connect(await transportTo(server), signal ? { signal } : {});
    return { tools: await mcpTools(client, options), close: () => client.close() };
  } catch (error) {
    await client.close().catch(() => {});
    throw error;
  }
}

/** How the tools of a server are taken. */
export interface McpToolsOptions {
  /** Only these. @default all of them */
  readonly only?: readonly string[] | undefined;
  /** Stands before every name, so that two servers may have tools of one name. @default "" */
  readonly prefix?: string | undefined;
  /** Milliseconds that a call may take. @default what the caller allows */
  readonly timeoutMs?: number | undefined;
  /** Gives the listing up. */
  readonly signal?: AbortSignal | undefined;
}

/** The tools of an MCP server. The server checks arguments itself; what it calls an error is one here. */
export async function mcpTools(client: McpClient, options: McpToolsOptions = {}): Promise<Tool[]> {
  const { only, prefix = "", timeoutMs, signal } = options;
  const tools: Tool[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listTools(
      cursor === undefined ? {} : { cursor },
      signal ? { signal } : {},
    );
    for (const { name, description = "", inputSchema } of page.tools) {
      if (only && !only.includes(name)) continue;
      tools.push({
        spec: { name: `${prefix}${name}`, description, parameters: { ...inputSchema } },
        timeoutMs,
        async call(args, context) {
          const result = await client.callTool({ name, arguments: { ...args } }, undefined, {
            signal: context.signal,
          });
          const text = textOfContent(result["content"]);
          if (result["isError"] === true) throw new Error(text);
          return new ToolReply(text === "" ? (result["structuredContent"] ?? "") : text);
        },
      });
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  const missing = only?.filter((name) => !tools.some(({ spec }) => spec.name === prefix + name));
  if (missing && missing.length > 0) {
    throw new ArgumentError("only", `the server has no tool ${missing.join(", ")}`);
  }
  return tools;
}

/** Texts unchanged; other content as a note with its type. */
function textOfContent(content: unknown): string {
  const parts = Array.isArray(content) ? (content as { type: string; text?: string }[]) : [];
  return parts.map(({ type, text }) => text ?? `[${type}]`).join("\n");
}

type ClientTransport = Parameters<
  InstanceType<typeof import("@modelcontextprotocol/sdk/client/index.js").Client>["connect"]
>[0];

async function transportTo(server: McpServer): Promise<ClientTransport> {
  if ("url" in server) {
    const { StreamableHTTPClientTransport } = await needSdk(
      () => import("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    );
    const requestInit = server.headers ? { headers: { ...server.headers } } : {};
    return new StreamableHTTPClientTransport(new URL(server.url), {
      requestInit,
    });
  }
  const { StdioClientTransport } = await needSdk(
    () => import("@modelcontextprotocol/sdk/client/stdio.js"),
  );
  const { command, args = [], env, cwd } = server;
  return new StdioClientTransport({
    command,
    args: [...args],
    ...(env ? { env: { ...env } } : {}),
    ...(cwd === undefined ? {} : { cwd }),
  });
}

/** The official client is loaded on demand, because most programs need none. */
async function needSdk<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    throw new TinkerError(
      "MCP servers need the official client. Install it: npm install @modelcontextprotocol/sdk",
      { code: "missing_dependency", cause },
    );
  }
}
