import { compressZstd, routes } from "tinker-ts/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createHandlers } from "../src/handlers/index.js";
import { startServer } from "../src/index.js";
import { createLogger } from "../src/log/logger.js";
import { passBody, TestApp } from "./support/test-app.js";

let app: TestApp;
beforeEach(async () => {
  app = await TestApp.open({
    limits: { maxBodyBytes: 100_000, maxDecompressedBytes: 200_000 },
  });
});
afterEach(() => app.dispose());

const post = (
  path: string,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream,
  headers: Record<string, string> = {},
  init = {},
) =>
  app.handle(
    new Request(`http://localhost/api/v1/${path}`, { method: "POST", body, headers, ...init }),
  );

it("has a handler for every route of the table", () => {
  const handlers = createHandlers(
    ...([{ context: {} }, {}, {}] as unknown as Parameters<typeof createHandlers>),
  );
  expect(Object.keys(handlers).toSorted()).toEqual(Object.keys(routes).toSorted());
});

describe("bodies", () => {
  it.each([
    ["no JSON", "{", {}],
    ["a wrong type", '{"tags":3,"user_metadata":{},"sdk_version":"x"}', {}],
    ["broken zstd", "not zstd", { "content-encoding": "zstd" }],
  ])("with %s are a bad request with a message and a length", async (_, body, headers) => {
    const response = await post("create_session", body, headers);
    expect(response.status).toBe(400);
    expect(Number(response.headers.get("content-length"))).toBeGreaterThan(20);
    const answer = (await response.json()) as { error: string };
    expect(answer.error).toMatch(/CreateSessionRequest|zstd/);
    expect(JSON.stringify(answer)).not.toContain(".ts:");
  });

  it("that are nested without end are refused in few words", async () => {
    const depth = 10_000;
    const nested = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
    const body = `{"tags":[],"user_metadata":${nested},"sdk_version":"x"}`;
    const response = await post("create_session", body);
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: string };
    expect(error).toMatch(/^CreateSessionRequest\.user_metadata\.a\.a/);
    expect(error.length).toBeLessThan(1100);
  });

  it("that are no protobuf are a bad request", async () => {
    const headers = { "content-type": "application/x-protobuf" };
    const response = await post("forward_backward", new Uint8Array([255, 255, 255]), headers);
    expect(response.status).toBe(400);
  });

  it("in a form that the endpoint does not have are refused by name", async () => {
    const proto = await post("optim_step", "x", { "content-type": "application/x-protobuf" });
    expect(proto.status).toBe(415);
    const gzip = await post("optim_step", "x", { "content-encoding": "gzip" });
    expect(gzip.status).toBe(415);
  });

  it("may be compressed with zstd, JSON too", async () => {
    const text = '{"tags":[],"user_metadata":{},"sdk_version":"x"}';
    const bytes = (await compressZstd(Buffer.from(text))) as Uint8Array<ArrayBuffer>;
    const response = await post("create_session", bytes, { "content-encoding": "zstd" });
    expect(response.status).toBe(200);
  });

  it("that are too large are refused, declared or not, and compressed ones by their content", async () => {
    const large = "x".repeat(200_000);
    const declared = await post("optim_step", large, { "content-length": "200000" });
    expect(declared.status).toBe(413);
    const chunks = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from(large));
        controller.close();
      },
    });
    expect((await post("optim_step", chunks, {}, { duplex: "half" })).status).toBe(413);
    const bomb = (await compressZstd(Buffer.alloc(10_000_000))) as Uint8Array<ArrayBuffer>;
    expect(bomb.length).toBeLessThan(10_000);
    const zipped = await post("optim_step", bomb, { "content-encoding": "zstd" });
    expect(zipped.status).toBe(400);
    expect(await zipped.text()).toContain("larger than 196608 bytes");
    const pass = await post("forward_backward", bomb, { "content-encoding": "zstd" });
    expect(await pass.text()).toContain("larger than 200000 bytes");
  });
});

it("answers 404 for what is not there, and says what was asked for", async () => {
  const response = await app.handle(new Request("http://localhost/api/v2/thing"));
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: "there is no GET /api/v2/thing" });
});

it("asks for the kind of a checkpoint that is to be deleted", async () => {
  const url = "http://localhost/api/v1/training_runs/a/checkpoints/final";
  const response = await app.handle(new Request(url, { method: "DELETE" }));
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("weights/final or sampler_weights/final");
});

it("says what to do when it is called by an address to listen on", async () => {
  const response = await app.handle(new Request("http://0.0.0.0:8080/api/v1/healthz"));
  expect(response.status).toBe(403);
  expect(await response.text()).toContain("use localhost in the address of the server");
});

it("answers an unexpected error with a reference to the log only", async () => {
  app.engine.isUnreadable = true;
  const response = await app.fetch("getTokenizer", null, { query: { model: "toy" } });
  expect(response.status).toBe(500);
  const { error } = (await response.json()) as { error: string };
  expect(error).not.toContain("secret");
  const [reference] = /[0-9a-f]{8}$/.exec(error) ?? [];
  expect(app.logLines.some((line) => line.includes(`reference=${reference}`))).toBe(true);
});

it("refuses text that cannot be stored instead of cutting it", async () => {
  const response = await app.fetch("getSampler", null, { params: { samplerId: "a%00b" } });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("NUL");
});

describe("keys", () => {
  const alice = { key: "tml-alice-key", owner: "alice" };

  it("are needed once one is set, but not for the health check", async () => {
    await app.dispose();
    app = await TestApp.open({ apiKeys: [alice] });
    expect((await app.fetch("listSessions", null)).status).toBe(401);
    expect((await app.fetch("listSessions", null, { key: "tml-wrong-key" })).status).toBe(401);
    expect((await app.fetch("listSessions", null, { key: alice.key })).status).toBe(200);
    expect((await app.fetch("healthz", null)).status).toBe(200);
    expect((await app.handle(new Request("http://localhost/metrics"))).status).toBe(401);
  });

  it("can be exchanged for a token", async () => {
    await app.dispose();
    app = await TestApp.open({ apiKeys: [alice] });
    const sessionId = await app.session({ key: alice.key });
    const { jwt } = await app.call("authToken", {}, { key: alice.key });
    expect((await app.call("listSessions", null, { key: jwt })).sessions).toEqual([sessionId]);
  });

  it("are not written to disk", async () => {
    await app.dispose();
    app = await TestApp.open({ apiKeys: [alice] });
    await app.session({ key: alice.key });
    await app.stop();
    const { readdirSync, readFileSync } = await import("node:fs");
    const files = readdirSync(app.dataDir, { recursive: true, withFileTypes: true });
    for (const file of files.filter((entry) => entry.isFile())) {
      const content = readFileSync(`${file.parentPath}/${file.name}`);
      expect(content.includes(alice.key)).toBe(false);
    }
  });
});

describe("web pages", () => {
  const from = (origin: string, host = "localhost") =>
    app.handle(new Request(`http://${host}/api/v1/healthz`, { headers: { origin } }));

  it("of other origins are refused unless asked for", async () => {
    const refused = await from("https://evil.example");
    expect(refused.status).toBe(403);
    expect(refused.headers.get("access-control-allow-origin")).toBeNull();
    expect((await from("http://localhost")).status).toBe(200);
    await app.dispose();
    app = await TestApp.open({ corsOrigins: ["https://good.example"] });
    const allowed = await from("https://good.example");
    expect(allowed.headers.get("access-control-allow-origin")).toBe("https://good.example");
    expect((await from("https://evil.example")).status).toBe(403);
  });

  it("cannot reach an open server through a name of their own", async () => {
    expect((await from("http://evil.example", "evil.example")).status).toBe(403);
    const plain = new Request("http://evil.example/api/v1/healthz");
    expect((await app.handle(plain)).status).toBe(403);
  });
});

describe("startServer", () => {
  it("refuses other machines without a key", async () => {
    await expect(startServer({ host: "0.0.0.0", port: 0, dataDir: app.dataDir })).rejects.toThrow(
      "host: 0.0.0.0 can be reached from other machines; set apiKeys, or listen on 127.0.0.1",
    );
  });

  it("refuses a data directory that is in use", async () => {
    await expect(startServer({ port: 0, dataDir: app.dataDir })).rejects.toThrow("is in use by");
  });

  it("refuses limits that do not exist or make no sense", async () => {
    const limits = { maxBodyBites: 3 } as object;
    await expect(startServer({ port: 0, limits })).rejects.toThrow("limits.maxBodyBites");
    await expect(startServer({ port: 0, limits: { longPollMs: 0 } })).rejects.toThrow("positive");
    const tight = { maxBodiesBytes: 1000 };
    await expect(startServer({ port: 0, limits: tight })).rejects.toThrow("limits.maxBodiesBytes");
  });

  it("listens, answers, and releases the port and the directory", async () => {
    await app.stop();
    const options = { port: 0, dataDir: app.dataDir, logLevel: "silent" } as const;
    const server = await startServer(options);
    const response = await fetch(`${server.url}/api/v1/healthz`);
    expect(await response.json()).toEqual({ status: "ok" });
    await server.close();
    await expect(fetch(`${server.url}/api/v1/healthz`)).rejects.toThrow();
    await (await startServer(options)).close();
  });
});

it("logs one line per event at info, from listening to stopped", async () => {
  await app.stop();
  const lines: string[] = [];
  const logger = createLogger("info", (line) => lines.push(line));
  const server = await startServer({ port: 0, dataDir: app.dataDir, logger });
  const body = '{"tags":[],"user_metadata":{},"sdk_version":"x"}';
  await fetch(`${server.url}/api/v1/create_session`, { method: "POST", body });
  await server.close();
  const events = lines.map((line) => /^\S+Z info {2}([a-z ]+?)(?: \w+=|$)/.exec(line)?.[1]);
  expect(events).toEqual(["listening", "session opened", "stopping", "stopped"]);
  expect(lines[0]).toContain(`url=${server.url}`);
});

it("logs one line per request at debug", async () => {
  app.logLines.length = 0;
  await app.call("healthz", null);
  expect(app.logLines).toHaveLength(1);
  expect(app.logLines[0]).toMatch(/^\S+Z debug GET healthz status=200 ms=[\d.]+$/);
});

it("keeps the requests of one batch within the limit of data", async () => {
  await app.dispose();
  app = await TestApp.open({ limits: { maxBatchData: 2 } });
  const model = await app.model(await app.session());
  const { requestId } = await app.call("forwardBackward", passBody(model, 1, [[1], [2], [3]]));
  expect(await app.result(requestId)).toMatchObject({
    category: "user",
    error: expect.stringContaining("at most 2") as string,
  });
});

it("keeps facts about sessions and models small", async () => {
  const body = { tags: [], userMetadata: { note: "x".repeat(70_000) }, sdkVersion: "1" };
  const response = await app.fetch("createSession", body);
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("user_metadata");
});
