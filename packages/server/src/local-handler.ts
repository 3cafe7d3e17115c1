import { openApp } from "./app.js";
import { loadEngineKit } from "./engine-host/load-engine-kit.js";
import type { AppOptions } from "./options.js";

/** The API in this process, without a port. */
export interface LocalHandler {
  readonly fetch: (request: Request) => Promise<Response>;
  /** Finishes what runs and lets go of the data directory. */
  close(): Promise<void>;
}

/** Longest time a timer can be set to. */
const foreverMs = 2 ** 31 - 1;

/**
 * Opens the API in this process; this is what `baseUrl: "local:"` stands for.
 *
 * - Checkpoints and runs are kept in the data directory, so the next program finds them; sessions end
 *   with the process.
 * - The process stays alive while a request is under way and not longer.
 */
export async function createLocalHandler(options: AppOptions = {}): Promise<LocalHandler> {
  const app = await openApp(options, {
    allowAnyModel: true,
    logLevel: "warn",
    closesOldSessions: true,
    loadKit: loadEngineKit,
  });
  return {
    async fetch(request) {
      const staysAlive = setTimeout(() => {}, foreverMs);
      try {
        return await app.handle(request);
      } finally {
        clearTimeout(staysAlive);
      }
    },
    close: () => app.close(),
  };
}
