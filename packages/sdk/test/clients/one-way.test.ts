import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import * as tar from "tar";
import { ServiceClient } from "tinker-ts";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { bare, json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

/*
 * There is one path to the network: the options of a client apply to all of its requests, downloads
 * and uploads included.
 */

const checkpoint = "tinker://run/weights/final";
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-one-way-"));
  writeFileSync(path.join(folder, "adapter_config.json"), '{"r":4}');
  writeFileSync(path.join(folder, "adapter_model.safetensors"), Buffer.alloc(200_000, 7));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("a custom certificate authority", () => {
  const fixture = (name: string) =>
    readFileSync(new URL(`../fixtures/${name}`, import.meta.url), "utf8");
  const ca = fixture("loopback-certificate.pem");
  let storage: Server;
  beforeEach(async () => {
    tar.c({ file: path.join(folder, "a.tar"), cwd: folder, sync: true }, ["adapter_config.json"]);
    const archive = readFileSync(path.join(folder, "a.tar"));
    storage = createServer({ cert: ca, key: fixture("loopback-key.pem") }, (request, response) => {
      const isAddress = request.url?.endsWith("/archive");
      response.end(
        isAddress
          ? JSON.stringify({ url: "/signed", expires: "2030-01-01T00:00:00Z" })
          : request.url === "/signed"
            ? archive
            : "{}",
      );
    });
    storage.listen(0, "127.0.0.1");
    await once(storage, "listening");
  });
  afterEach(async () => {
    storage.closeAllConnections();
    storage.close();
    await once(storage, "close");
  });

  it("applies to downloads", async () => {
    const baseUrl = `https://localhost:${(storage.address() as AddressInfo).port}`;
    const service = new ServiceClient({
      baseUrl,
      apiKey: "tml-x",
      telemetry: false,
      sockets: { ca },
    });
    const directory = path.join(folder, "target");
    const downloaded = await service
      .createRestClient()
      .downloadCheckpoint(checkpoint, { directory });
    expect(downloaded.files).toEqual(["adapter_config.json"]);
    await service.close();
  });
});

describe("an upload", () => {
  const upload = "/api/v1/training_runs/run/checkpoints/weights/final/archive";
  const uploads = (seen: readonly { method: string; path: string }[]) =>
    seen.filter((request) => request.method === "PUT" && request.path === upload);

  it("carries the output of a credential command, and all files", async ({ service }) => {
    service.server.answerPath("PUT", upload, bare(200));
    const rest = service
      .client({ apiKey: undefined, env: { TINKER_CREDENTIAL_CMD: "echo tml-from-command" } })
      .createRestClient();
    let sentBytes = 0;
    await rest.uploadCheckpoint(checkpoint, {
      directory: folder,
      onProgress: (progress) => ({ sentBytes } = progress),
    });
    const [request] = uploads(service.server.seen) as (typeof service.server.seen)[number][];
    expect(request!.headers).toMatchObject({
      "x-api-key": "tml-from-command",
      "content-type": "application/x-tar",
    });
    expect(request!.body.length).toBe(sentBytes);
    writeFileSync(path.join(folder, "received.tar"), request!.body);
    const names: string[] = [];
    await tar.t({
      file: path.join(folder, "received.tar"),
      onReadEntry: ({ path: name }) => void names.push(name),
    });
    expect(names).toEqual(["adapter_config.json", "adapter_model.safetensors"]);
  });

  it("is restarted after a server error", async ({ service }) => {
    service.server.answerPath("PUT", upload, bare(503), bare(200));
    await service.client().createRestClient().uploadCheckpoint(checkpoint, { directory: folder });
    const [first, second] = uploads(service.server.seen) as (typeof service.server.seen)[number][];
    expect(second!.body).toEqual(first!.body);
  });

  it("uses the caller's fetch if there is one", async ({ service }) => {
    let received = 0;
    const rest = service
      .client({
        fetch: async (request) => {
          if (request.method !== "PUT") return Response.json({});
          received = (await request.arrayBuffer()).byteLength;
          return new Response();
        },
      })
      .createRestClient();
    await rest.uploadCheckpoint(checkpoint, { directory: folder });
    expect(received).toBeGreaterThan(200_000);
  });

  it("that is refused fails at once with the reason", async ({ service }) => {
    service.server.answerPath("PUT", upload, json({ error: "exists already" }, 409));
    await expect(
      service.client().createRestClient().uploadCheckpoint(checkpoint, { directory: folder }),
    ).rejects.toMatchObject({ status: 409, body: { error: "exists already" } });
    expect(uploads(service.server.seen)).toHaveLength(1);
  });

  it("of a folder without an adapter is refused before anything is sent", async ({ service }) => {
    rmSync(path.join(folder, "adapter_config.json"));
    await expect(
      service.client().createRestClient().uploadCheckpoint(checkpoint, { directory: folder }),
    ).rejects.toThrow(/^directory: .*adapter_config.json/);
    expect(uploads(service.server.seen)).toEqual([]);
  });
});

it("a trace appears as a whole or not at all", async ({ service }) => {
  const { server } = service;
  const file = path.join(folder, "deep", "trace.pftrace");
  server.handle("exportSessionTrace", () => json({ status: "ready", url: `${server.url}/trace` }));
  server.answerPath("GET", "/trace", bare(404), (response) => void response.end("events"));
  const rest = service.client().createRestClient();
  await expect(rest.downloadSessionTrace("s", { file })).rejects.toMatchObject({ status: 404 });
  expect(() => readFileSync(file)).toThrow(/ENOENT/);
  expect(await rest.downloadSessionTrace("s", { file })).toEqual({ file, sizeBytes: 6 });
  expect(readFileSync(file, "utf8")).toBe("events");
});

it("two clients of one process keep their keys apart", async ({ service }) => {
  const [one, two] = ["tml-one", "tml-two"].map((apiKey) => service.client({ apiKey }));
  service.server.handle("getServerCapabilities", () => json({ supported_models: [] }));
  const samplings = await Promise.all(
    [one!, two!].map((client) => client.createSamplingClient({ baseModel: "m" })),
  );
  await Promise.all(
    samplings.flatMap((client) => [1, 2, 3].map(() => client.sample({ prompt: [1] }))),
  );
  await Promise.all([one!, two!].map((client) => client.getServerCapabilities()));
  const keysOf = (sampler: string) =>
    service.server
      .requestsTo("sample")
      .filter(({ json: body }) => body?.["sampling_session_id"] === sampler)
      .map(({ headers }) => headers["x-api-key"]);
  const owners = samplings.map(({ samplingSessionId }) => new Set(keysOf(samplingSessionId)));
  expect(owners.map((keys) => keys.size)).toEqual([1, 1]);
  expect(new Set(owners.flatMap((keys) => [...keys]))).toEqual(new Set(["tml-one", "tml-two"]));
  expect(samplings[0]!.samplingSessionId).not.toBe(samplings[1]!.samplingSessionId);
});
