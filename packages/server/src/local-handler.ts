import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { openApp, type App } from "./app.js";
import { loadEngineKit } from "./engine-host/load-engine-kit.js";
import { listen, type Listening } from "./http/listen.js";
import { joinLocalServer } from "./local/join-local-server.js";
import type { AppOptions } from "./options.js";
import { DataDirectoryInUseError } from "./store/data-lock.js";

/** The API in this process, without a port. */
export interface LocalHandler {
  readonly fetch: (request: Request) => Promise<Response>;
  /** Finishes what runs and releases the data directory. */
  close(): Promise<void>;
}

/** Options of `createLocalHandler`. */
export interface LocalHandlerOptions extends AppOptions {
  /**
   * Whether the engine must run in this process: a data directory that a server uses is refused then.
   * @default TINKER_TS_IN_PROCESS, else false
   */
  readonly inProcess?: boolean | undefined;
}

/** Longest time a timer can be set to. */
const foreverMs = 2 ** 31 - 1;

/**
 * Opens the API in this process, which then has the data directory for itself.
 *
 * - Checkpoints and runs are kept in the data directory, so the next program finds them; sessions end
 *   with the process.
 * - The data directory `memory` is a temporary one that is removed in the end.
 * - Where `local:` programs or `tinker-ts serve` use the data directory already, requests go to their server, unless
 *   `inProcess` or options besides `dataDir` and those of the log ask for another one.
 * - The process stays alive while a request is under way and not longer.
 */
export async function createLocalHandler(given: LocalHandlerOptions = {}): Promise<LocalHandler> {
  const { inProcess = isOn(process.env["TINKER_TS_IN_PROCESS"]), ...options } = given;
  const isTemporary = (options.dataDir ?? process.env["TINKER_TS_DATA_DIR"]) === "memory";
  if (!isTemporary) return inProcess ? openHandler(options) : openOrJoin(options);
  const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-"));
  const remove = (): void => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  process.once("exit", remove);
  const removeNow = (): void => {
    process.off("exit", remove);
    remove();
  };
  try {
    const handler = await openHandler({ ...options, dataDir });
    return { fetch: handler.fetch, close: () => handler.close().finally(removeNow) };
  } catch (error) {
    removeNow();
    throw error;
  }
}

function isOn(text = ""): boolean {
  return /^(1|true|yes|on)$/i.test(text);
}

const sharable: readonly string[] = ["dataDir", "logger", "logLevel"];

async function openOrJoin(options: AppOptions): Promise<LocalHandler> {
  try {
    return await openHandler(options);
  } catch (error) {
    if (!(error instanceof DataDirectoryInUseError)) throw error;
    const isServer = error.holder !== undefined && error.holder.kind !== "program";
    if (!isServer || !Object.keys(options).every((name) => sharable.includes(name))) throw error;
    return joinedHandler(error.dataDir);
  }
}

/** Sends requests to the server that has the data directory; every request asks anew where it is. */
function joinedHandler(dataDir: string): LocalHandler {
  return {
    async fetch(request) {
      const { signal, method, body } = request;
      const { url, key } = await joinLocalServer({ dataDir, signal });
      const { pathname, search } = new URL(request.url);
      const headers = new Headers(request.headers);
      headers.delete("authorization");
      if (key !== null) headers.set("x-api-key", key);
      const sent = { method, headers, body, signal, redirect: "manual", duplex: "half" } as const;
      return fetch(url + pathname + search, sent);
    },
    close: () => Promise.resolve(),
  };
}

async function openHandler(options: AppOptions): Promise<LocalHandler> {
  const app = await openApp(options, {
    allowAnyModel: true,
    logLevel: "warn",
    closesOldSessions: true,
    kind: "program",
    loadKit: loadEngineKit,
  });
  const studio = await openStudio(app);
  // Node forgets to abort the signal of a request that was collected; a stream holds on to the signal alone.
  const requests = new WeakMap<AbortSignal, Request>();
  return {
    async fetch(request) {
      requests.set(request.signal, request);
      const staysAlive = setTimeout(() => {}, foreverMs);
      try {
        return await app.handle(request);
      } finally {
        clearTimeout(staysAlive);
      }
    },
    async close() {
      const stopped = studio?.stop();
      await app.close();
      studio?.hangUp();
      await stopped;
    },
  };
}

/**
 * Lets a browser look into this process, when `TINKER_TS_STUDIO` is 1 or a port. It does not keep the process
 * alive: the studio is there as long as the program is.
 */
async function openStudio(app: App): Promise<Listening | undefined> {
  const wanted = process.env["TINKER_TS_STUDIO"] ?? "";
  if (wanted === "" || wanted === "0") return undefined;
  const port = wanted === "1" ? 0 : Number(wanted);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new RangeError(`TINKER_TS_STUDIO: must be 1 or a port, got ${wanted}`);
  }
  const listening = await listen((request) => app.handle(request), "127.0.0.1", port);
  listening.unref();
  app.announce(listening.url);
  process.stderr.write(`studio ${listening.url}/studio\n`);
  return listening;
}
