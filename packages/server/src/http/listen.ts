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
  };
}

/** Hands a body that has arrived as a whole to the adapter, which would make a stream to read it otherwise. */
function takeBody(incoming: IncomingMessage & { rawBody?: Buffer }): void {
  if (incoming.complete && incoming.readableLength > 0)
    incoming.rawBody = incoming.read() as Buffer;
}

function urlOf(host: string, address: ReturnType<Server["address"]>): string {
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
