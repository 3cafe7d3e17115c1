import { isIP } from "node:net";
import { openApp } from "./app.js";
import { loadEngineKit } from "./engine-host/load-engine-kit.js";
import { listen, type Listening } from "./http/listen.js";
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
  let listening: Listening;
  try {
    listening = await listen((request) => app.handle(request), host, port);
  } catch (error) {
    await app.close();
    throw error;
  }
  const { url } = listening;
  app.announce(url);
  return {
    url,
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
