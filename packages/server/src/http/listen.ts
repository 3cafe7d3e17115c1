import type { Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";

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
  const server = createAdaptorServer({ fetch: answer }) as Server;
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

function urlOf(host: string, address: ReturnType<Server["address"]>): string {
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
