import { createServer, type IncomingMessage, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";

/** A port that is listened on. */
export interface Listening {
  readonly url: string;
  /** Takes no more connections; resolves when all have ended. */
  stop(): Promise<void>;
  /** Ends the connections that are open. */
  hangUp(): void;
  /** Lets the process end although it listens. */
  unref(): void;
  /** Called once after that long without a connection. */
  whenUnused(unusedMs: number, callback: () => void): void;
}

/** Longer than clients keep idle connections, so that none is closed under a request. */
const keepAliveMs = 75_000;

/** Listens on a port; 0 picks a free one. */
export async function listen(
  answer: (request: Request) => Promise<Response>,
  host: string,
  port: number,
): Promise<Listening> {
  const listener = getRequestListener(answer);
  const server = createServer((incoming, outgoing) => {
    // A moment later what came together with the head is there too.
    queueMicrotask(() => {
      takeBody(incoming);
      void listener(incoming, outgoing);
    });
  });
  server.keepAliveTimeout = keepAliveMs;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return {
    url: urlOf(host, server.address()),
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
      }),
    hangUp: () => server.closeAllConnections(),
    unref: () => server.unref(),
    whenUnused: (unusedMs, callback) => watchConnections(server, unusedMs, callback),
  };
}

function watchConnections(server: Server, unusedMs: number, callback: () => void): void {
  let connected = 0;
  let timer = setTimeout(callback, unusedMs);
  server.on("connection", (socket) => {
    connected++;
    clearTimeout(timer);
    socket.once("close", () => {
      connected--;
      if (connected === 0) timer = setTimeout(callback, unusedMs);
    });
  });
}

/** What the adapter knows of a request; it makes no stream of a body that is there. */
type WithBody = IncomingMessage & { rawBody?: Buffer };

/** Takes a body that has arrived as a whole; that it has ended Node says only later. */
function takeBody(incoming: WithBody): void {
  const declaredBytes = Number(incoming.headers["content-length"] ?? 0);
  if (declaredBytes === 0 || incoming.readableLength !== declaredBytes) return;
  incoming.rawBody = incoming.read() as Buffer;
}

function urlOf(host: string, address: ReturnType<Server["address"]>): string {
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
