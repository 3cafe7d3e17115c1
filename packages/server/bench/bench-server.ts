import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ServiceClient } from "tinker-ts";
import type { StartServerOptions } from "../src/index.js";
import { ServerProcess } from "../test/support/server-process.js";
import type { BenchModel } from "./bench-model.js";

const apiKey = "tml-bench-key";

/** What clients say of waiting is not what is measured. */
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** A server in a process of its own, and the way to it. */
export interface BenchServer {
  client(apiKey?: string): ServiceClient;
  /** Sends bytes to an endpoint. */
  post(
    endpoint: string,
    body: Uint8Array<ArrayBuffer>,
    headers: Readonly<Record<string, string>>,
  ): Promise<Response>;
  /** Asks for anything. */
  ask(path: string, init: RequestInit): Promise<Response>;
  /** Asks for a chat completion. */
  chat(body: object): Promise<Response>;
  /** Reads numbers that the server keeps about itself. */
  metrics(...names: readonly string[]): Promise<number[]>;
}

/** Does `work` with a server that has the model under the name `bench`. */
export async function withServer(
  model: BenchModel,
  options: StartServerOptions,
  work: (server: BenchServer) => Promise<void>,
): Promise<void> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-bench-"));
  const models = { bench: model.folder };
  const server = new ServerProcess({ dataDir, models, logLevel: "warn", ...options });
  const clients: ServiceClient[] = [];
  try {
    await server.start();
    const baseUrl = `http://127.0.0.1:${server.port}`;
    await work({
      client(key = apiKey) {
        const client = new ServiceClient({ baseUrl, apiKey: key, telemetry: false, logger: quiet });
        clients.push(client);
        return client;
      },
      post: (endpoint, body, headers) =>
        fetch(`${baseUrl}/api/v1/${endpoint}`, {
          method: "POST",
          body,
          headers: { "x-api-key": apiKey, ...headers },
        }),
      ask: (page, init) => fetch(`${baseUrl}${page}`, init),
      chat: (body) =>
        fetch(`${baseUrl}/v1/chat/completions`, {
          method: "POST",
          body: JSON.stringify(body),
          headers: { "x-api-key": apiKey, "content-type": "application/json" },
        }),
      async metrics(...names) {
        const response = await fetch(`${baseUrl}/metrics`, { headers: { "x-api-key": apiKey } });
        const text = await response.text();
        return names.map((name) => Number(new RegExp(`^${name} (.+)$`, "m").exec(text)?.[1]));
      },
    });
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}
