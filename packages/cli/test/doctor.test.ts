import { once } from "node:events";
import { createServer } from "node:http";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { AddressInfo } from "node:net";
import { startServer, type RunningServer } from "@tinker-ts/server";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startLimited } from "./support/limited-server.js";
import { modelFolder } from "./support/live-server.js";
import { runCommand } from "./support/run-command.js";

let folder: string;
let server: RunningServer;
const key = "tml-doctor";

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-doctor-"));
  server = await startServer({
    port: 0,
    dataDir: path.join(folder, "server"),
    models: { qwen3: modelFolder },
    apiKeys: [key],
    logLevel: "silent",
  });
});

afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Check {
  readonly check: string;
  readonly state: string;
  readonly finding: string;
  readonly remedy: string | null;
}

async function examine(
  env: Record<string, string>,
  ...options: readonly string[]
): Promise<{ code: number; checks: Map<string, Check> }> {
  const dataDir = path.join(folder, "data");
  const context = { env: { TINKER_TS_DATA_DIR: dataDir, ...env } };
  const { code, out } = await runCommand(["doctor", "--json", ...options], context);
  const { checks } = JSON.parse(out) as { checks: Check[] };
  return { code, checks: new Map(checks.map((check) => [check.check, check])) };
}

it("reports no problem in a working setup", async () => {
  const { code, checks } = await examine({ TINKER_BASE_URL: server.url, TINKER_API_KEY: key });
  // The findings about a GPU depend on the machine.
  const others = [...checks.values()].filter(({ check }) => !check.startsWith("GPU"));
  expect(others.length).toBeLessThan(checks.size);
  expect(others.map(({ check }) => check)).toEqual([
    "Node",
    "Engine",
    "Disk",
    "Server",
    "Dialect",
    "Endpoints",
    "Key",
  ]);
  expect(others.map(({ state }) => state)).toEqual(Array(7).fill("ok"));
  expect(checks.get("Server")?.finding).toBe(`${server.url}, tinker-ts, 1 model`);
  expect(checks.get("Endpoints")?.finding).toBe("all");
  expect(checks.get("Dialect")?.finding).toBe("protobuf and JSON");
  expect(checks.get("Key")?.finding).toBe("accepted");
  expect(code).toBe(0);
});

it("reports int8 support of the processor, and a model's memory", async () => {
  const { code, checks } = await examine({}, "--model", modelFolder);
  expect(checks.get("Engine")?.finding).toMatch(
    /int8 weights: (.* as in 32 bits, int16 activations in (two digits of 8|three digits of 7) bits|.* 32 bits)/,
  );
  for (const weights of ["f32", "int8"]) {
    expect(checks.get(`Memory, ${weights}`)).toMatchObject({
      state: "ok",
      finding: expect.stringMatching(/to train, .* to sample, .* for both, of .* GB$/) as string,
    });
  }
  expect(code).toBe(0);
  const missing = await examine({}, "--model", "/nowhere/at/all");
  expect(missing.checks.get("Model")).toMatchObject({ state: "broken" });
  expect(missing.code).toBe(1);
});

it("reports files in lost-and-found, and how to restore them", async () => {
  const dataDir = path.join(folder, "lossy");
  const found = path.join(dataDir, "lost-and-found/checkpoints/0123abcd");
  mkdirSync(found, { recursive: true });
  const { code, checks } = await examine({ TINKER_TS_DATA_DIR: dataDir });
  expect(checks.get("Lost and found")).toMatchObject({
    state: "warning",
    finding: `1 saved states and 0 other files in ${path.join(dataDir, "lost-and-found")}`,
    remedy: expect.stringContaining(`tinker-ts checkpoint import ${found}`) as string,
  });
  expect(code).toBe(0);
});

it("accepts a missing server, and explains how to choose one", async () => {
  const { code, checks } = await examine({});
  expect(code).toBe(0);
  expect(checks.get("Server")).toMatchObject({ state: "skipped" });
});

it("checks the engine in this process", async () => {
  const { code, checks } = await examine({ TINKER_BASE_URL: "local:" });
  expect(checks.get("Server")?.finding).toMatch(/^the engine in this process, \d+ models?$/);
  expect(checks.get("Key")?.finding).toBe("none is needed");
  expect(code).toBe(0);
});

it("reports that an older server supports JSON only", async () => {
  const older = await startLimited(server.url, ["/api/v1/client/config"]);
  const { code, checks } = await examine({ TINKER_BASE_URL: older.url, TINKER_API_KEY: key });
  await older.stop();
  expect(checks.get("Dialect")?.finding).toBe("JSON (an older server)");
  expect(code).toBe(0);
});

it("reports an address without a listener", async () => {
  const { code, checks } = await examine({ TINKER_BASE_URL: "http://127.0.0.1:9" });
  expect(checks.get("Server")).toMatchObject({
    state: "broken",
    remedy: expect.stringContaining("tinker-ts serve") as string,
  });
  expect(code).toBe(1);
});

it("reports a rejected key", async () => {
  const env = { TINKER_BASE_URL: server.url, TINKER_API_KEY: "tml-wrong" };
  const { code, checks } = await examine(env);
  expect(checks.get("Server")?.state).toBe("ok");
  expect(checks.get("Key")).toMatchObject({
    state: "broken",
    remedy: expect.stringContaining("TINKER_API_KEY") as string,
  });
  expect(code).toBe(1);
});

it("reports another kind of server", async () => {
  const other = createServer((_, response) => void response.writeHead(404).end("hello"));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const { code, checks } = await examine({ TINKER_BASE_URL: url, TINKER_API_KEY: key });
  other.closeAllConnections();
  other.close();
  expect(checks.get("Server")?.state).toBe("broken");
  expect(code).toBe(1);
});

it("reports a data directory that is not writable", async () => {
  writeFileSync(path.join(folder, "file"), "");
  const { code, checks } = await examine({ TINKER_TS_DATA_DIR: path.join(folder, "file/data") });
  expect(checks.get("Disk")).toMatchObject({
    state: "broken",
    remedy: expect.stringContaining("TINKER_TS_DATA_DIR") as string,
  });
  expect(code).toBe(1);
});

it("prints a table and suggestions", async () => {
  const args = ["doctor", "--base-url", "http://127.0.0.1:9"];
  const { code, out } = await runCommand(args, { env: { TINKER_TS_DATA_DIR: folder } });
  expect(code).toBe(1);
  expect(out).toMatch(/^Doctor\n\nCheck +State +Finding\n/);
  expect(out).toMatch(/^Node +ok +\d+\.\d+\.\d+$/m);
  expect(out).toMatch(/^Server +broken +http:/m);
  expect(out).toMatch(/^Server: .*tinker-ts serve/m);
});

/**
 * SkyRL as NovaSky-AI/SkyRL, commit 00955430, skyrl/tinker/api.py shows it: some of its routes, on FastAPI, which answers
 * 405 for another method and 404 for another path.
 */
const routesOfSkyrl: Readonly<Record<string, unknown>> = {
  "GET /api/v1/healthz": { status: "ok" },
  "POST /api/v1/client/config": { pjwt_auth_enabled: false },
  "GET /api/v1/get_server_capabilities": {
    supported_models: [{ model_name: "m" }],
    supported_loss_fns: ["cross_entropy"],
  },
  "POST /api/v1/create_session": {},
  "POST /api/v1/create_model": {},
  "POST /api/v1/asample": {},
};

it("shows what a server of others can do, and makes nothing there", async () => {
  const seen: string[] = [];
  const other = createServer((request, response) => {
    const route = `${request.method} ${request.url}`;
    seen.push(route);
    const paths = Object.keys(routesOfSkyrl).map((known) => known.split(" ")[1]);
    const answer = routesOfSkyrl[route];
    const status = answer ? 200 : paths.includes(request.url) ? 405 : 404;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(answer ?? { detail: "Not Found" }));
  }).listen(0, "127.0.0.1");
  await once(other, "listening");
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const run = (...args: string[]) => runCommand(["doctor", "--base-url", url, ...args]);
  const { code, out } = await run("--json");
  const { checks } = JSON.parse(out) as { checks: Check[] };
  const found = (name: string) =>
    checks.filter(({ check }) => check === name).map(({ finding }) => finding);
  expect(found("Server")).toEqual([`${url}, SkyRL, 1 model`]);
  expect(found("Endpoints")[0]).toMatch(/^all but \d+$/);
  expect(found("Missing")).toEqual(
    expect.arrayContaining([
      "GET /api/v1/checkpoints",
      "POST /api/v1/copy_weights (since 0.26.0)",
      "POST /api/v1/sessions/{sessionId}/finish (since 0.29.1)",
    ]),
  );
  expect(found("Missing")).not.toContain("POST /api/v1/asample");
  expect(found("Silence")).toEqual([
    "ignores trainMlp, trainAttn, trainUnembed of an adapter",
    "gives every adapter an alpha of 32",
    "ignores gradClipNorm",
    "loads a checkpoint only as the first request of a model; the client makes a new one",
  ]);
  expect(code).toBe(0);
  expect(seen.filter((route) => /^(POST|PUT|DELETE)/.test(route))).toEqual([
    "POST /api/v1/client/config",
    "POST /api/v1/client/dynamic_config",
  ]);
  expect((await run()).out).toContain("gives every adapter an alpha of 32");
  other.close();
  other.closeAllConnections();
});
