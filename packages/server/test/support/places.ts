import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ServiceClient, type ServiceClientOptions } from "tinker-ts";
import { createLocalHandler, startServer, type AppOptions } from "../../src/index.js";
import { realModels } from "./real-models.js";

/** A server with the real engine, reached in one of the ways that clients have. */
export interface Place {
  /** A client of its own session. */
  client(options?: ServiceClientOptions): ServiceClient;
  /** Follows a link that the server has given out, without a key. */
  fetch(url: string, headers?: Readonly<Record<string, string>>): Promise<Response>;
  close(): Promise<void>;
}

type Setting = Pick<AppOptions, "apiKeys">;

const apiKey = "tml-test-key";

/** Every way to reach a server. */
export const places: readonly { name: string; open: (setting?: Setting) => Promise<Place> }[] = [
  { name: "over HTTP in protobuf", open: (setting) => overHttp("proto", setting) },
  { name: "over HTTP in JSON", open: (setting) => overHttp("json", setting) },
  { name: "in process", open: inProcess },
];

async function overHttp(dialect: "proto" | "json", setting: Setting = {}): Promise<Place> {
  const options = appOptions(setting);
  const server = await startServer({ port: 0, ...options });
  const follow: Place["fetch"] = (url, headers = {}) => fetch(url, { headers });
  const connection = { baseUrl: server.url, dialect };
  return makePlace(options.dataDir, connection, follow, () => server.close());
}

async function inProcess(setting: Setting = {}): Promise<Place> {
  const options = appOptions(setting);
  const handler = await createLocalHandler(options);
  const follow: Place["fetch"] = (url, headers = {}) =>
    handler.fetch(new Request(url, { headers }));
  const connection = { baseUrl: "http://local.invalid", fetch: handler.fetch };
  return makePlace(options.dataDir, connection, follow, () => handler.close());
}

function appOptions(setting: Setting) {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-place-"));
  return { dataDir, models: realModels, logLevel: "silent", ...setting } as const;
}

function makePlace(
  dataDir: string,
  connection: ServiceClientOptions & { readonly baseUrl: string },
  follow: Place["fetch"],
  close: () => Promise<void>,
): Place {
  const clients: ServiceClient[] = [];
  return {
    // A path is one of this server's own.
    fetch: (url, headers) => follow(new URL(url, connection.baseUrl).href, headers),
    client(options = {}) {
      const client = new ServiceClient({ apiKey, telemetry: false, ...connection, ...options });
      clients.push(client);
      return client;
    },
    async close() {
      for (const client of clients) await client.close();
      await close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
