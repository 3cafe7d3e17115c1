import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as tar from "tar";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SqlDatabase } from "../src/store/sql.js";
import { crashCopy } from "./support/crash-copy.js";
import { flipBit } from "./support/flip-bit.js";
import { RealKit } from "./support/real-kit.js";
import { realModels } from "./support/real-models.js";
import { passBody, TestApp } from "./support/test-app.js";

let app: TestApp;
let model: string;
let bystander: string;
beforeEach(async () => {
  app = await TestApp.open();
  const session = await app.session();
  model = await app.model(session);
  bystander = await app.model(session, { seq: 1 });
});
afterEach(() => app.dispose());

/** A datum whose request is too large to live in a row. */
const large = Array.from({ length: 1500 }, (_, i) => i % 90);

async function pass(modelId: string, seq: number, row = large): Promise<Record<string, unknown>> {
  const { requestId } = await app.call("forwardBackward", passBody(modelId, seq, [row]));
  return app.result(requestId);
}

const list = (folder: string): string[] => readdirSync(path.join(app.dataDir, folder));
const fileIn = (...parts: string[]): string => path.join(app.dataDir, ...parts);

async function isCorrupted(modelId: string): Promise<boolean> {
  const run = await app.call("getTrainingRun", null, { params: { trainingRunId: modelId } });
  return run.corrupted;
}

/** The one blob that holds a payload of this many bytes or more. */
function payloadBlob(requestId: string): string {
  const database = new SqlDatabase(fileIn("server.db"));
  const row = database
    .sql("SELECT payload_blob FROM requests WHERE request_id = ?")
    .first(requestId);
  database.close();
  return row!["payload_blob"] as string;
}

/** Alters the payload of a request inside its row. */
function alterRow(requestId: string, alter: (bytes: Buffer) => void): void {
  const database = new SqlDatabase(fileIn("server.db"));
  const row = database.sql("SELECT payload FROM requests WHERE request_id = ?").first(requestId)!;
  const bytes = Buffer.from(row["payload"] as Uint8Array);
  alter(bytes);
  database.sql("UPDATE requests SET payload = ? WHERE request_id = ?").run(bytes, requestId);
  database.close();
}

const damages = [
  ["altered", flipBit, "does not match its SHA-256"],
  ["torn", (file: string) => truncateSync(file, 100), "has 100 of"],
  ["missing", (file: string) => rmSync(file), "is missing"],
] as const;

describe("a payload", () => {
  it.each(damages)(
    "of the journal that is %s corrupts its run alone",
    async (_, damage, problem) => {
      await pass(model, 1);
      await pass(bystander, 1);
      await app.stop();
      const blob = payloadBlob(`${model}:1`);
      damage(fileIn("blobs", blob));
      await app.start();
      expect(await pass(model, 2)).toMatchObject({
        category: "server",
        error: expect.stringMatching(
          `blobs/${blob} .*${problem}.*continue from a checkpoint`,
        ) as string,
      });
      expect(await isCorrupted(model)).toBe(true);
      expect(await pass(bystander, 2)).toHaveProperty("metrics");
      expect(await isCorrupted(bystander)).toBe(false);
      await app.restart();
      expect(await isCorrupted(model)).toBe(true);
    },
  );

  it.each(damages)(
    "of the journal that is read in another thread and %s is looked at there",
    async (_, damage, problem) => {
      const row = Array.from({ length: 60_000 }, (_item, i) => i % 90);
      await pass(model, 1, row);
      await app.stop();
      const blob = payloadBlob(`${model}:1`);
      damage(fileIn("blobs", blob));
      await app.start();
      expect(await pass(model, 2, [1])).toMatchObject({
        category: "server",
        error: expect.stringMatching(`blobs/${blob} .*${problem}`) as string,
      });
      expect(await isCorrupted(model)).toBe(true);
    },
  );

  it("of the journal that is altered inside its row corrupts its run", async () => {
    await pass(model, 1, [5, 6, 7]);
    await app.stop();
    alterRow(`${model}:1`, (bytes) => {
      bytes[bytes.length - 4]! ^= 1;
    });
    await app.start();
    expect(await pass(model, 2)).toMatchObject({
      category: "server",
      error: expect.stringContaining("server.db in the server's data directory") as string,
    });
    expect(await isCorrupted(model)).toBe(true);
  });

  it("of a save that waits is looked at as a whole, also the part that retries change", async () => {
    const body = { modelId: model, seqId: 2, samplingSessionSeqId: 7 };
    const { requestId } = await app.call("saveWeightsForSampler", body);
    await app.stop();
    alterRow(requestId, (bytes) => {
      bytes.write("8", bytes.indexOf('"sampling_session_seq_id":7') + 26);
    });
    await app.start();
    expect(await pass(model, 1, [1])).toHaveProperty("metrics");
    expect(await app.result(requestId)).toMatchObject({
      category: "server",
      error: expect.stringContaining("server.db in the server's data directory does not match"),
    });
    expect(await isCorrupted(model)).toBe(true);
  });

  it.each(damages)(
    "of a waiting request that is %s is not guessed at",
    async (_, damage, problem) => {
      // Number 2 waits for number 1.
      const { requestId } = await app.call("forwardBackward", passBody(model, 2, [large]));
      await app.stop();
      const [blob] = list("blobs");
      damage(fileIn("blobs", blob!));
      await app.start();
      expect(await pass(model, 1, [1])).toHaveProperty("metrics");
      expect(await app.result(requestId)).toMatchObject({
        category: "server",
        error: expect.stringMatching(`blobs/${blob} .*${problem}`) as string,
      });
      expect(await isCorrupted(model)).toBe(true);
    },
  );
});

describe("a result", () => {
  it.each(damages)("that is %s is an error that names the file", async (_, damage, problem) => {
    await pass(model, 1, [...large, ...large, ...large]);
    await app.stop();
    const [result] = list("blobs").filter((name) => name !== payloadBlob(`${model}:1`));
    damage(fileIn("blobs", result!));
    await app.start();
    expect(await app.result(`${model}:1`)).toMatchObject({
      category: "server",
      error: expect.stringMatching(`its result is lost: blobs/${result} .*${problem}`) as string,
    });
    expect(await pass(model, 2)).toHaveProperty("metrics");
  });
});

describe("a checkpoint", () => {
  let folder: string;
  beforeEach(async () => {
    const body = { modelId: model, seqId: 1, path: "kept" };
    await app.result((await app.call("saveWeightsForSampler", body)).requestId);
    await app.stop();
    [folder] = list("checkpoints") as [string];
  });
  const tinkerPath = (): string => `tinker://${model}/sampler_weights/kept`;

  it("has a manifest of its files", () => {
    const text = readFileSync(fileIn("checkpoints", folder, "manifest.json"), "utf8");
    const { of, files } = JSON.parse(text) as { of: string; files: Record<string, unknown> };
    expect(of).toBe(tinkerPath());
    expect(Object.keys(files)).toEqual(["adapter.json"]);
  });

  it.each(damages)(
    "that is %s is neither loaded, sampled from nor served",
    async (_, damage, problem) => {
      damage(fileIn("checkpoints", folder, "adapter.json"));
      await app.start();
      expect(await isCorrupted(model)).toBe(false);
      const told = expect.stringMatching(
        `checkpoints/${folder}/adapter.json .*${problem}`,
      ) as string;
      const load = { modelId: bystander, seqId: 1, path: tinkerPath(), optimizer: false };
      expect(await app.result((await app.call("loadWeights", load)).requestId)).toMatchObject({
        category: "server",
        error: told,
      });
      expect(await isCorrupted(model)).toBe(true);
      expect(await isCorrupted(bystander)).toBe(false);

      const samplingParams = { maxTokens: 1 };
      const sample = { prompt: [1], samplingParams, modelPath: tinkerPath() };
      expect(await app.result((await app.call("sample", sample)).requestId)).toMatchObject({
        category: "server",
        error: told,
      });

      const params = { trainingRunId: model, checkpointId: "sampler_weights/kept" };
      const link = await app.fetch("getCheckpointArchiveUrl", null, { params });
      const archive = await app.handle(new Request(link.headers.get("location")!));
      expect(archive.status).toBe(500);
      expect(await archive.json()).toMatchObject({ code: "damaged", error: told });

      // The run itself is whole, and says so when the checkpoint is gone.
      expect(await pass(model, 2)).toHaveProperty("metrics");
      await app.call("deleteCheckpoint", null, { params });
      expect(await isCorrupted(model)).toBe(false);
    },
  );
});

describe("with the real engine", () => {
  let kit: RealKit;
  let real: TestApp;
  let run: string;
  beforeAll(async () => {
    kit = await RealKit.open();
  });
  beforeEach(async () => {
    real = await TestApp.open({ kit: kit.kit, models: { toy: realModels.qwen3 } });
    run = await real.model(await real.session());
    await train(real, run, 1);
    const body = { modelId: run, seqId: 3, path: "final" };
    await real.result((await real.call("saveWeights", body)).requestId);
  });
  afterEach(() => real.dispose());
  afterAll(() => kit.close());

  async function train(on: TestApp, modelId: string, seq: number): Promise<void> {
    const { requestId } = await on.call("forwardBackward", passBody(modelId, seq, [[5, 8, 13]]));
    const adamParams = { learningRate: 0.1 };
    await on.call("optimStep", { adamParams, modelId, seqId: seq + 1 });
    await on.result(requestId);
  }

  /** Uploads a folder as a checkpoint. */
  function upload(on: TestApp, folder: string, runId: string, name: string): Promise<Response> {
    const archive = path.join(mkdtempSync(path.join(tmpdir(), "tinker-ts-archive-")), "a.tar");
    tar.create({ file: archive, sync: true, cwd: folder }, readdirSync(folder));
    const page = `/api/v1/training_runs/${runId}/checkpoints/weights/${name}/archive`;
    const body = Uint8Array.from(readFileSync(archive));
    rmSync(path.dirname(archive), { recursive: true });
    return on.handle(new Request(`http://localhost${page}`, { method: "PUT", body }));
  }

  const lossOf = async (on: TestApp, modelId: string, seqId: number): Promise<unknown> => {
    const { forwardBackwardInput: forwardInput } = passBody(modelId, seqId, [[5, 8, 13]]);
    const { requestId } = await on.call("forward", { forwardInput, modelId, seqId });
    return (await on.result(requestId))["metrics"];
  };

  it.each(["server.db-wal", "server.db"])(
    "nothing is deleted when %s is lost, and a checkpoint can be brought back",
    async (lost) => {
      const loss = await lossOf(real, run, 4);
      const [folder] = readdirSync(path.join(real.dataDir, "checkpoints"));
      // As a process that was killed leaves it, but without the file.
      const lostFiles = lost === "server.db" ? [lost, "server.db-wal"] : [lost];
      const dataDir = crashCopy(real.dataDir, lostFiles);
      const later = await TestApp.open({
        kit: kit.kit,
        models: { toy: realModels.qwen3 },
        dataDir,
      });
      try {
        const found = path.join(dataDir, "lost-and-found/checkpoints", folder!);
        expect(readdirSync(found)).toContain("adapter_model.safetensors");
        expect(later.logLines.join("\n")).toContain(
          `lost-and-found/checkpoints/${folder} what=tinker://${run}/weights/final`,
        );
        const next = await later.model(await later.session());
        expect((await upload(later, found, next, "again")).status).toBe(204);
        const checkpoint = `tinker://${next}/weights/again`;
        const body = { modelId: next, seqId: 1, path: checkpoint, optimizer: true };
        await later.result((await later.call("loadWeights", body)).requestId);
        expect(await lossOf(later, next, 2)).toEqual(loss);
      } finally {
        await later.dispose();
      }
    },
  );

  it("an archive that is not what its manifest says is refused by the name of the file", async () => {
    const [folder] = readdirSync(path.join(real.dataDir, "checkpoints"));
    const copy = crashCopy(path.join(real.dataDir, "checkpoints", folder!));
    flipBit(path.join(copy, "optimizer.safetensors"));
    const response = await upload(real, copy, run, "bad");
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("optimizer.safetensors of the archive does not match");
    rmSync(copy, { recursive: true });
  });

  it("weights that are not finite are not brought in", async () => {
    const [saved] = readdirSync(path.join(real.dataDir, "checkpoints"));
    const folder = path.join(real.dataDir, "checkpoints", saved!);
    const adapter = await kit.kit.readForeignAdapter(folder, realModels.qwen3);
    const [name, tensor] = [...adapter.state.tensors][3]!;
    tensor.data[7] = Number.NaN;
    const copy = path.join(mkdtempSync(path.join(tmpdir(), "tinker-ts-nan-")), "adapter");
    await kit.kit.writeAdapter(copy, { ...adapter, baseModel: "toy" }, async () => {});
    const response = await upload(real, copy, run, "nan");
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(`${name} holds NaN`);
    rmSync(path.dirname(copy), { recursive: true });
  });
});
