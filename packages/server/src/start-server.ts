import { isIP } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { openApp } from "./app.js";
import { loadEngineKit } from "./engine-host/load-engine-kit.js";
import type { AppOptions } from "./options.js";

/** How the server is set up and where it listens. */
export interface StartServerOptions extends AppOptions {
  /** Addresses other than loopback need an API key. @default "127.0.0.1" */
  readonly host?: string;
  /** 0 picks a free one. @default 8080 */
  readonly port?: number;
}

/** A server that listens. */
export interface RunningServer {
  readonly url: string;
  /** Stops listening, finishes or leaves in the journal what runs, and lets go of the data directory. */
  close(): Promise<void>;
}

/** Longer than clients keep idle connections, so that none is closed under a request. */
const keepAliveMs = 75_000;

/** Starts a Tinker API server. */
export async function startServer(options: StartServerOptions = {}): Promise<RunningServer> {
  const { host = "127.0.0.1", port = 8080 } = options;
  if (!isLoopback(host) && (options.apiKeys ?? []).length === 0) {
    throw new RangeError(
      `host: ${host} can be reached from other machines; set apiKeys, or listen on 127.0.0.1`,
    );
  }
  const app = await openApp(options, {
    allowAnyModel: false,
    logLevel: "info",
    closesOldSessions: false,
    loadKit: loadEngineKit,
  });
  const server = createAdaptorServer({ fetch: (request) => app.handle(request) });
  if ("keepAliveTimeout" in server) server.keepAliveTimeout = keepAliveMs;
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, resolve);
    });
  } catch (error) {
    await app.close();
    throw error;
  }
  const url = urlOf(host, server.address());
  app.announce(url);
  return {
    url,
    async close() {
      const stopped = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      await app.close();
      if ("closeAllConnections" in server) server.closeAllConnections();
      await stopped;
    },
  };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

function urlOf(host: string, address: ReturnType<import("node:net").Server["address"]>): string {
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
