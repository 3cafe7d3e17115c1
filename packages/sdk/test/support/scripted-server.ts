import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { routes, type RouteName } from "tinker-ts/wire";

/** A request as the server saw it. */
export interface SeenRequest {
  readonly endpoint: RouteName | undefined;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The parsed body; undefined when it is not JSON. */
  readonly json: Record<string, unknown> | undefined;
}

/** Writes an answer, or does something worse to the connection. */
export type Reply = (response: ServerResponse, request: SeenRequest) => void | Promise<void>;

/** Answers an endpoint. */
export type Handler = (request: SeenRequest) => Reply | Promise<Reply>;

/** A JSON answer. */
export function json(
  body: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return bytes(Buffer.from(JSON.stringify(body)), status, {
    "content-type": "application/json",
    ...headers,
  });
}

/** An answer of raw bytes. */
export function bytes(
  body: Uint8Array,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return (response) => {
    response.writeHead(status, { "content-length": body.byteLength, ...headers });
    response.end(body);
  };
}

/** A protobuf answer. */
export function proto(body: Uint8Array): Reply {
  return bytes(body, 200, { "content-type": "application/x-protobuf" });
}

/** A status without a body. */
export function bare(status: number, headers: Readonly<Record<string, string>> = {}): Reply {
  return bytes(new Uint8Array(), status, headers);
}

/** Ends the connection: before the answer, or in the middle of its body. */
export function drop(when: "before" | "inBody"): Reply {
  return (response) => {
    if (when === "inBody") {
      response.writeHead(200, { "content-length": 1000, "content-type": "application/json" });
      response.write('{"request_id"');
      setImmediate(() => response.destroy());
    } else {
      response.destroy();
    }
  };
}

/** Never answers; the connection stays open until the client or the test gives up. */
export const hang: Reply = () => {};

/** Sends the head and then nothing. */
export const stall: Reply = (response) => {
  response.writeHead(200, { "content-length": 100, "content-type": "application/json" });
  response.write("{");
};

/**
 * A real HTTP server on loopback with responses written by a test: `handle` answers an endpoint for good,
 * `script` its next requests. Every request is kept.
 */
export class ScriptedServer {
  readonly seen: SeenRequest[] = [];
  readonly #server: Server;
  readonly #handlers = new Map<RouteName, Handler>();
  readonly #scripts = new Map<RouteName, Reply[]>();
  readonly #watchers = new Set<() => void>();
  readonly #paths = new Map<string, Reply[]>();
  readonly #brokenUploads: RouteName[] = [];

  private constructor(server: Server) {
    this.#server = server;
    server.on("request", (request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<ScriptedServer> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new ScriptedServer(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  handle(endpoint: RouteName, handler: Handler): void {
    this.#handlers.set(endpoint, handler);
  }

  script(endpoint: RouteName, ...replies: readonly Reply[]): void {
    this.#scripts.set(endpoint, [...(this.#scripts.get(endpoint) ?? []), ...replies]);
  }

  /** Answers requests to a path that is no endpoint of the API, one after the other. */
  answerPath(method: string, path: string, ...replies: readonly Reply[]): void {
    this.#paths.set(`${method} ${path}`, [...replies]);
  }

  /** Ends the connection of the next request to an endpoint while its body is still arriving. */
  breakUpload(endpoint: RouteName): void {
    this.#brokenUploads.push(endpoint);
  }

  /** Requests to one endpoint, in order of arrival. */
  requestsTo(endpoint: RouteName): SeenRequest[] {
    return this.seen.filter((request) => request.endpoint === endpoint);
  }

  /** Waits until a condition about what was seen holds. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#watchers.add(resolve);
      });
    }
  }

  connectionCount(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
    });
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#breaksUpload(incoming)) return;
    const request = await readRequest(incoming);
    this.seen.push(request);
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    for (const watcher of watchers) watcher();
    const scripted =
      this.#paths.get(`${request.method} ${request.path}`)?.shift() ??
      (request.endpoint && this.#scripts.get(request.endpoint)?.shift());
    const handler = request.endpoint && this.#handlers.get(request.endpoint);
    const reply =
      scripted ?? (await handler?.(request)) ?? json({ error: "no such endpoint" }, 404);
    await reply(response, request);
  }

  #breaksUpload(incoming: IncomingMessage): boolean {
    const endpoint = endpointOf(incoming.method ?? "", incoming.url ?? "/");
    const index = endpoint ? this.#brokenUploads.indexOf(endpoint) : -1;
    if (index < 0) return false;
    this.#brokenUploads.splice(index, 1);
    incoming.once("data", () => incoming.destroy());
    return true;
  }
}

async function readRequest(incoming: IncomingMessage): Promise<SeenRequest> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  const body = Buffer.concat(parts);
  const path = incoming.url ?? "/";
  const method = incoming.method ?? "";
  const isJson = incoming.headers["content-type"] === "application/json" && body.length > 0;
  return {
    endpoint: endpointOf(method, path),
    method,
    path,
    headers: incoming.headers as Record<string, string>,
    body,
    json: isJson ? (JSON.parse(body.toString("utf8")) as Record<string, unknown>) : undefined,
  };
}

const patterns = Object.entries(routes).map(([name, route]) => ({
  name: name as RouteName,
  method: route.method,
  // Checkpoint ids hold one slash, all other parameters none.
  pattern: new RegExp(
    `${route.path.replace("{checkpointId}", "[^/]+/[^/]+").replace(/\{\w+\}/g, "[^/]+")}$`,
  ),
}));

function endpointOf(method: string, path: string): RouteName | undefined {
  const [pathname = ""] = path.split("?");
  return patterns.find((entry) => entry.method === method && entry.pattern.test(pathname))?.name;
}
