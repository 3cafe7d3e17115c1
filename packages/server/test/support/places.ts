import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ServiceClient, type ServiceClientOptions } from "tinker-ts";
import { createLocalHandler, startServer } from "../../src/index.js";
import { realModels } from "./real-models.js";

/** A server with the real engine, reached in one of the ways that clients have. */
export interface Place {
  /** A client of its own session. */
  client(options?: ServiceClientOptions): ServiceClient;
  close(): Promise<void>;
}

const apiKey = "tml-test-key";

/** Every way to reach a server. */
export const places: readonly { name: string; open: () => Promise<Place> }[] = [
  { name: "over HTTP in protobuf", open: () => overHttp("proto") },
  { name: "over HTTP in JSON", open: () => overHttp("json") },
  { name: "in process", open: inProcess },
];

async function overHttp(dialect: "proto" | "json"): Promise<Place> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-place-"));
  const server = await startServer({ port: 0, dataDir, models: realModels, logLevel: "silent" });
  return makePlace(dataDir, { baseUrl: server.url, dialect }, () => server.close());
}

async function inProcess(): Promise<Place> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-place-"));
  const handler = await createLocalHandler({ dataDir, models: realModels, logLevel: "silent" });
  const connection = { baseUrl: "http://local.invalid", fetch: handler.fetch };
  return makePlace(dataDir, connection, () => handler.close());
}

function makePlace(
  dataDir: string,
  connection: ServiceClientOptions,
  close: () => Promise<void>,
): Place {
  const clients: ServiceClient[] = [];
  return {
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
