import { rmSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { loadEngineKit } from "../src/engine-host/load-engine-kit.js";
import { resolvePrecision } from "../src/options.js";
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
});

describe("the precision of a server", () => {
  it("is that of its options, of the environment, or 32 bits", () => {
    expect(resolvePrecision({}, {}).of("toy")).toEqual({ weights: "f32" });
    const env = { TINKER_TS_WEIGHTS: "int8", TINKER_TS_ACTIVATIONS: "int8" };
    expect(resolvePrecision({}, env).of("toy")).toEqual({ weights: "int8", activations: "int8" });
    const twoDigits = { weights: "int8", activations: "int16" };
    expect(resolvePrecision({ weights: "int8" }, {}).of("toy")).toEqual(twoDigits);
    expect(resolvePrecision({ weights: "f32" }, env).of("toy")).toEqual({ weights: "f32" });
  });

  it("can be one of its own for some models", () => {
    const models = { small: "/small", large: "/large" };
    const choice = resolvePrecision({ models, weights: { large: "int8" } }, {});
    expect(choice.of("large")).toEqual({ weights: "int8", activations: "int16" });
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
