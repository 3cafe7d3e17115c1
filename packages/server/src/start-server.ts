import { isIP } from "node:net";
import { openApp, type App, type AppSetting } from "./app.js";
import { loadEngineKit } from "./engine-host/load-engine-kit.js";
import { listen, type Listening } from "./http/listen.js";
import { takeOver } from "./local/take-over.js";
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
  /** Stops listening, finishes or leaves in the journal what runs, and releases the data directory. */
  close(): Promise<void>;
}

/**
 * Starts a Tinker API server. Where programs with `local:` share a server of the data directory, that one ends first,
 * and they go on with this one.
 */
export async function startServer(options: StartServerOptions = {}): Promise<RunningServer> {
  const { host = "127.0.0.1", port = 8080 } = options;
  if (!isLoopback(host) && (options.apiKeys ?? []).length === 0) {
    throw new RangeError(
      `host: ${host} can be reached from other machines; set apiKeys, or listen on 127.0.0.1`,
    );
  }
  const app = await takeOver(() =>
    openApp(options, {
      allowAnyModel: false,
      logLevel: "info",
      closesOldSessions: false,
      kind: "server",
      loadKit: loadEngineKit,
    }),
  );
  return serve(app, host, port);
}

/** A server that programs with `local:` share, on a free port of this machine; see `join-local-server.ts`. */
export async function startLocalServer(
  options: AppOptions,
  unusedMs: number,
  onEnd: () => void,
): Promise<RunningServer> {
  const setting: AppSetting = {
    allowAnyModel: true,
    // Its log is a file; commands show from it which model is fetched.
    logLevel: "info",
    closesOldSessions: false,
    kind: "local",
    handOver: onEnd,
    loadKit: loadEngineKit,
  };
  const server = await serve(await openApp(options, setting), "127.0.0.1", 0);
  server.whenUnused(unusedMs, onEnd);
  return server;
}

async function serve(
  app: App,
  host: string,
  port: number,
): Promise<RunningServer & Pick<Listening, "whenUnused">> {
  let listening: Listening;
  try {
    listening = await listen((request) => app.handle(request), host, port);
  } catch (error) {
    await app.close();
    throw error;
  }
  app.announce(listening.url);
  return {
    url: listening.url,
    whenUnused: (unusedMs, callback) => listening.whenUnused(unusedMs, callback),
    async close() {
      const stopped = listening.stop();
      await app.close();
      listening.hangUp();
      await stopped;
    },
  };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}
