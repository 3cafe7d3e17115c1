import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startServer, type RunningServer } from "../src/index.js";
import { PythonClient } from "./support/python-client.js";
import { realModels } from "./support/real-models.js";

/*
 * The fixture is a data directory that commit 306abc5 has written, the requests that it was sent, and what it
 * answered.
 */
const archive = path.join(import.meta.dirname, "fixtures/data-of-306abc5.tar.gz");
/** The fixture grows older every day; nothing in it may expire. */
const century = 100 * 365 * 24 * 3_600_000;

interface Recorded {
  readonly sessionId: string;
  readonly modelId: string;
  readonly samplerId: string;
  readonly calls: readonly {
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
    readonly answer: Readonly<Record<string, unknown>>;
    readonly result?: Readonly<Record<string, unknown>>;
  }[];
}

let folder: string;
let recorded: Recorded;
let server: RunningServer;

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-upgrade-"));
  execFileSync("tar", ["-xzf", archive, "-C", folder]);
  recorded = JSON.parse(readFileSync(path.join(folder, "meta.json"), "utf8")) as Recorded;
  server = await startServer({
    port: 0,
    dataDir: path.join(folder, "data"),
    models: { qwen3: realModels.qwen3 },
    limits: {
      resultTtlMs: century,
      fetchedGraceMs: century,
      ephemeralTtlMs: century,
      requestRecordTtlMs: century,
      recordTtlMs: century,
    },
    logLevel: "silent",
  });
});

afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

it("recognises requests of a data directory of an older server when they are repeated, with their results", async () => {
  const client = new PythonClient(server.url);
  for (const { path: route, headers, body, answer, result } of recorded.calls) {
    const response = await fetch(server.url + route, {
      method: "POST",
      headers: { ...headers },
      body: Buffer.from(body, "base64"),
    });
    expect(await response.json(), route).toMatchObject(answer);
    if (result) expect(await client.result({ ...answer }), route).toMatchObject(result);
  }
});

it("refuses another request under a number that an older server has accepted", async () => {
  const client = new PythonClient(server.url);
  const { modelId } = recorded;
  const other = await client.post(
    "save_weights",
    client.saveWeights(modelId, 8, { path: "other" }),
  );
  expect(other.status).toBe(409);
});

it("goes on training and sampling where an older server has stopped", async () => {
  const client = new PythonClient(server.url);
  const { modelId, samplerId } = recorded;
  const lossOf = async (seqId: number) => {
    const { metrics } = await client.run("forward_backward", client.pass(modelId, seqId));
    return (metrics as Record<string, number>)["loss:sum"]!;
  };
  const last = recorded.calls.filter(({ path: route }) => route.endsWith("forward_backward"))[2]!;
  const before = (last.result!["metrics"] as Record<string, number>)["loss:sum"]!;
  expect(await lossOf(10)).toBeLessThan(before);
  await client.run("optim_step", client.optimStep(modelId, 11));
  const { sequences } = await client.run("asample", client.sample(samplerId, 2));
  expect(sequences).toHaveLength(2);
});
