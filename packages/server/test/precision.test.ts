import { rmSync } from "node:fs";
import path from "node:path";
import { Engine } from "@tinker-ts/engine";
import { afterEach, describe, expect, it } from "vitest";
import { loadEngineKit } from "../src/engine-host/load-engine-kit.js";
import type { EnginePort } from "../src/engine-port/engine-port.js";
import { resolvePrecision } from "../src/options.js";
import { SqlDatabase } from "../src/store/sql.js";
import { realModels } from "./support/real-models.js";
import { passBody, TestApp, type TestAppOptions } from "./support/test-app.js";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

async function openReal(options: TestAppOptions): Promise<TestApp> {
  const kit = await loadEngineKit({ threads: 1 });
  const app = await TestApp.open({ models: { toy: realModels.qwen3 }, kit, ...options });
  folders.push(app.dataDir);
  return app;
}

const rows = [[3, 4, 5, 6, 7]];

const sixteenBits = { weights: "int8", activations: "int16", activationBits: 16 };

async function trainOnce(app: TestApp, model: string): Promise<void> {
  await app.result((await app.call("forwardBackward", passBody(model, 1, rows))).requestId);
  const body = { adamParams: { learningRate: 0.01 }, modelId: model, seqId: 2 };
  await app.result((await app.call("optimStep", body)).requestId);
}

async function loss(app: TestApp, model: string, seq: number): Promise<unknown> {
  const { forwardBackwardInput: forwardInput } = passBody(model, seq, rows);
  const { requestId } = await app.call("forward", { forwardInput, modelId: model, seqId: seq });
  return (await app.result(requestId))["metrics"];
}

/** Bits of a digit on this processor. */
const { digitBits } = await probed();

async function probed() {
  await using engine = await Engine.create({ threads: 1 });
  return await engine.checkInt8();
}

function openDatabase({ dataDir }: TestApp): SqlDatabase {
  return new SqlDatabase(path.join(dataDir, "server.db"));
}

/** What is kept of a run's precision. */
function recordOf(app: TestApp, model: string): unknown {
  const database = openDatabase(app);
  const row = database.sql("SELECT precision FROM models WHERE model_id = ?").first(model);
  database.close();
  return JSON.parse(String(row?.["precision"]));
}

/** Keeps of a run's precision what was kept before 16 bits took three digits of 7. */
function forgetBits(app: TestApp, model: string): void {
  const database = openDatabase(app);
  database
    .sql("UPDATE models SET precision = ? WHERE model_id = ?")
    .run('{"weights":"int8","activations":"int16"}', model);
  database.close();
}

/** Digits of the models that were loaded, in order. */
function loadedDigits({ logLines }: TestApp): number[] {
  return logLines
    .filter((line) => line.includes("base model loaded"))
    .map((line) => Number(/digits\W+(\d)/.exec(line)?.[1]));
}

describe("a run", () => {
  it("keeps the precision it began with when the server is started with another", async () => {
    const first = await openReal({ weights: "int8" });
    const begun = await first.model(await first.session());
    await trainOnce(first, begun);
    const before = await loss(first, begun, 3);
    expect(first.logLines.join("\n")).toMatch(/base model loaded.*int8.*int16/);
    await first.stop();

    const second = await openReal({ dataDir: first.dataDir });
    expect(await loss(second, begun, 4)).toEqual(before);
    const other = await second.model(await second.session());
    await trainOnce(second, other);
    expect(await loss(second, other, 3)).not.toEqual(before);
    expect(second.logLines.join("\n")).toMatch(/base model loaded.*f32/);
    await second.stop();
  });

  it("has 16 bits, or two digits if it is from before that was kept", async () => {
    const first = await openReal({ weights: "int8" });
    const begun = await first.model(await first.session());
    expect(recordOf(first, begun)).toEqual(sixteenBits);
    expect(loadedDigits(first)).toEqual([digitBits === 8 ? 2 : 3]);
    await first.stop();

    forgetBits(first, begun);
    const second = await openReal({ dataDir: first.dataDir, weights: "int8" });
    await trainOnce(second, begun);
    const before = await loss(second, begun, 3);
    expect(loadedDigits(second)).toEqual([2]);
    const other = await second.model(await second.session());
    await trainOnce(second, other);
    const fine = await loss(second, other, 3);
    if (digitBits === 7) expect(fine).not.toEqual(before);
    await second.stop();

    const third = await openReal({ dataDir: first.dataDir });
    expect(await loss(third, begun, 4)).toEqual(before);
    expect(await loss(third, other, 4)).toEqual(fine);
    expect(loadedDigits(third)).toEqual(digitBits === 8 ? [2] : [2, 3]);
    await third.stop();
  });

  it.each([
    ["digits have 8 bits", { digitBits: 8, isUsed: true }, 1],
    ["digits have 7 bits", { digitBits: 7, isUsed: true }, 2],
    ["32 bits are used after all", { digitBits: 7, isUsed: false }, 1],
  ] as const)(
    "from before shares its model with new ones if that is the same: %s",
    async (_, support, models) => {
      const first = await openReal({ weights: "int8" });
      const begun = await first.model(await first.session());
      await first.stop();
      forgetBits(first, begun);

      const kit = await loadEngineKit({ threads: 1 });
      const createEngine = async (): Promise<EnginePort> => {
        const engine = await kit.createEngine();
        const checkInt8 = async () => ({ ...support, speedup: 1 });
        return {
          close: () => engine.close(),
          loadModel: (...model) => engine.loadModel(...model),
          checkInt8,
        };
      };
      const second = await openReal({
        dataDir: first.dataDir,
        weights: "int8",
        kit: { ...kit, createEngine },
      });
      await trainOnce(second, begun);
      await second.model(await second.session());
      expect(loadedDigits(second)).toHaveLength(models);
      await second.stop();
    },
  );
});

describe("the precision of a server", () => {
  it("is that of its options, of the environment, or 32 bits", () => {
    expect(resolvePrecision({}, {}).of("toy")).toEqual({ weights: "f32" });
    const env = { TINKER_TS_WEIGHTS: "int8", TINKER_TS_ACTIVATIONS: "int8" };
    expect(resolvePrecision({}, env).of("toy")).toEqual({ weights: "int8", activations: "int8" });
    expect(resolvePrecision({ weights: "int8" }, {}).of("toy")).toEqual(sixteenBits);
    expect(resolvePrecision({ weights: "f32" }, env).of("toy")).toEqual({ weights: "f32" });
  });

  it("can be one of its own for some models", () => {
    const models = { small: "/small", large: "/large" };
    const choice = resolvePrecision({ models, weights: { large: "int8" } }, {});
    expect(choice.of("large")).toEqual(sixteenBits);
    expect(choice.of("small")).toEqual({ weights: "f32" });
    const env = { TINKER_TS_WEIGHTS: "int8" };
    const other = resolvePrecision({ models, weights: { small: "f32" }, activations: "int8" }, env);
    expect(other.of("large")).toEqual({ weights: "int8", activations: "int8" });
    expect(other.of("small")).toEqual({ weights: "f32" });
    expect(() => resolvePrecision({ models, weights: { lrage: "int8" } }, {})).toThrow(
      'weights: "lrage" is not served here; there are small, large',
    );
  });

  it("is refused by name when there is none such", () => {
    expect(() => resolvePrecision({}, { TINKER_TS_WEIGHTS: "int4" })).toThrow(
      'weights (or TINKER_TS_WEIGHTS): "int4" is neither "f32" nor "int8"',
    );
    expect(() => resolvePrecision({ activations: "int8" }, {})).toThrow(
      'set weights to "int8" too',
    );
  });
});
