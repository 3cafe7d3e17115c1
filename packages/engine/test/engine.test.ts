import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, utimesSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Engine } from "@tinker-ts/engine";
import { describe, expect, it } from "vitest";
import { raggedData } from "./support/engine-data.js";
import { fixture } from "./support/fixtures.js";
import { useTemporaryFolder } from "./support/temporary-folder.js";

const crossEntropy = { lossFn: "cross_entropy" } as const;

describe("an engine", () => {
  const temporary = useTemporaryFolder();

  it("leaves the caller's event loop free during a long step", async () => {
    await using engine = await Engine.create({ threads: 2 });
    const model = await engine.loadModel(fixture("qwen3/model"));
    const adapter = await model.createAdapter({ rank: 16 });
    // This loop turns during the pass, between its reports and more often than they come.
    let turns = 0;
    const over = new AbortController();
    const reports: number[] = [];
    const pass = adapter
      .forwardBackward(raggedData(30, 200), {
        ...crossEntropy,
        onProgress: () => reports.push(turns),
      })
      .finally(() => over.abort());
    while (!over.signal.aborted) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    await pass;
    expect(new Set(reports).size).toBeGreaterThan(1);
    expect(turns).toBeGreaterThan(reports.length);
  });

  it("runs one pass at a time, in the order of the calls", async () => {
    await using engine = await Engine.create({ threads: 2 });
    const model = await engine.loadModel(fixture("qwen3/model"));
    const adapters = await Promise.all(
      [1, 2].map((seed) => model.createAdapter({ rank: 8, seed })),
    );
    const order: number[] = [];
    const passes = adapters.map((adapter, index) =>
      adapter.forwardBackward(raggedData(30, 200), {
        ...crossEntropy,
        onProgress: () => order.push(index),
      }),
    );
    await Promise.all(passes);
    expect(order.filter((index) => index === 0).length).toBeGreaterThan(1);
    expect(order).toEqual(order.toSorted((one, other) => one - other));
  });

  it("reports progress of loading, and stops on abort", async () => {
    await using engine = await Engine.create({ threads: 1 });
    const seen: number[] = [];
    let total = 0;
    await engine.loadModel(fixture("llama/model"), {
      onProgress: ({ loadedBytes, totalBytes }) => {
        seen.push(loadedBytes);
        total = totalBytes;
      },
    });
    expect(seen.length).toBeGreaterThan(5);
    expect(seen.at(-1)).toBe(total);
    const signal = AbortSignal.abort(new Error("stopped"));
    await expect(engine.loadModel(fixture("llama/model"), { signal })).rejects.toThrow("stopped");
  });

  it("fails pending and later calls with a clear error when its worker dies", async () => {
    const started = once(process, "worker");
    const engine = await Engine.create({ threads: 1 });
    const [worker] = await started;
    const model = await engine.loadModel(fixture("llama/model"));
    const pending = model.sample({ prompt: [1, 2], maxTokens: 500, numSamples: 64 });
    // An invalid message makes the worker throw outside of any call.
    worker.postMessage(null, []);
    await expect(pending).rejects.toMatchObject({ code: "engine_failed", category: "internal" });
    await expect(model.createAdapter({ rank: 4 })).rejects.toThrow("Create a new one");
    await engine.close();
  });

  it("fails running calls when it is closed", async () => {
    const engine = await Engine.create({ threads: 1 });
    const model = await engine.loadModel(fixture("llama/model"));
    const pending = model.sample({ prompt: [1, 2], maxTokens: 500, numSamples: 64 });
    const failed = expect(pending).rejects.toMatchObject({ code: "engine_closed" });
    await engine.close();
    await failed;
    await expect(engine.loadModel(fixture("llama/model"))).rejects.toThrow("closed");
    await engine.close();
  });

  it("lets a process exit in the middle of a call", () => {
    const script = fileURLToPath(new URL("support/exit-while-training.mjs", import.meta.url));
    const child = spawnSync(process.execPath, [script, fixture("qwen3/model")], {
      encoding: "utf8",
    });
    expect({ status: child.status, stderr: child.stderr }).toEqual({ status: 3, stderr: "" });
  });

  it("releases a model and rejects later uses of it", async () => {
    await using engine = await Engine.create({ threads: 1 });
    const model = await engine.loadModel(fixture("llama/model"));
    const adapter = await model.createAdapter({ rank: 4 });
    const pending = model.sample({ prompt: [1, 2], maxTokens: 500, numSamples: 64 });
    const failed = expect(pending).rejects.toMatchObject({ code: "model_unloaded" });
    await model.unload();
    await failed;
    await expect(adapter.optimStep({ learningRate: 1 })).rejects.toThrow("adapter was released");
    await expect(model.sample({ prompt: [1], maxTokens: 1 })).rejects.toThrow("model was released");
  });

  it.each([
    [{ threads: 0 }, "threads is 0"],
    [{ memoryBytes: 0.5 }, "memoryBytes is 0.5"],
    [{ device: "abacus" as "cpu" }, 'device is "abacus"'],
  ])("refuses the options %o", async (options, message) => {
    await expect(Engine.create(options)).rejects.toThrow(message);
  });

  it("refuses a model that does not fit into its memory, before it reads the weights", async () => {
    await using engine = await Engine.create({ threads: 1, memoryBytes: 1 << 20 });
    await expect(engine.loadModel(fixture("llama/model"))).rejects.toThrow("raise memoryBytes");
  });

  it("counts all loaded models", async () => {
    // Room for the weights of one model, less than 1 MB, and the least that training and sampling need.
    await using engine = await Engine.create({ threads: 1, memoryBytes: 257 << 20 });
    const first = await engine.loadModel(fixture("llama/model"));
    await expect(engine.loadModel(fixture("qwen3/model"))).rejects.toThrow("unload another model");
    await first.unload();
    await engine.loadModel(fixture("qwen3/model"));
  });

  it.each(["f32", "int8"] as const)(
    "trains to the same bits after sampling (%s)",
    async (weights) => {
      cpSync(fixture("qwen3/model"), temporary("model"), { recursive: true });
      await using engine = await Engine.create({ threads: 2 });
      const gradientOf = async (samplesFirst: boolean) => {
        const model = await engine.loadModel(temporary("model"), { weights });
        const adapter = await model.createAdapter({ rank: 8, seed: 1 });
        const sample = () => model.sample({ prompt: [1, 2, 3], maxTokens: 4, seed: 1 });
        const before = samplesFirst ? await sample() : undefined;
        const { outputs } = await adapter.forwardBackward(raggedData(5, 60), crossEntropy);
        const gradient = await adapter.exportGradient();
        expect(await sample()).toMatchObject({ samples: before?.samples ?? [{}] });
        await model.unload();
        return { outputs, gradient };
      };
      expect(await gradientOf(true)).toEqual(await gradientOf(false));
    },
  );

  it("refuses to train on weight files that changed after sampling", async () => {
    cpSync(fixture("qwen3/model"), temporary("model"), { recursive: true });
    await using engine = await Engine.create({ threads: 2 });
    const model = await engine.loadModel(temporary("model"));
    const adapter = await model.createAdapter({ rank: 8 });
    await model.sample({ prompt: [1, 2, 3], maxTokens: 1 });
    utimesSync(temporary("model", "model.safetensors"), 1, 1);
    await expect(adapter.forwardBackward(raggedData(1, 20), crossEntropy)).rejects.toMatchObject({
      code: "file_changed",
    });
    await model.sample({ prompt: [1, 2, 3], maxTokens: 1 });
  });

  it("refuses a folder without a model", async () => {
    await using engine = await Engine.create({ threads: 1 });
    cpSync(fixture("llama/model/tokenizer.json"), temporary("tokenizer.json"));
    await expect(engine.loadModel(temporary())).rejects.toMatchObject({ category: "user" });
    await expect(engine.loadModel(temporary("nowhere"))).rejects.toThrow(
      "neither a folder that exists",
    );
  });

  it.each([
    [{ rank: 0 }, "rank is 0"],
    [{ rank: 257 }, "rank is 257"],
    [{ rank: 8, alpha: 0 }, "alpha is 0"],
    [{ rank: 8, seed: 0.1 }, "seed is 0.1"],
    [{ rank: 8, trainAttn: false, trainMlp: false, trainUnembed: false }, "all false"],
  ])("refuses the adapter %o", async (options, message) => {
    await using engine = await Engine.create({ threads: 1 });
    const model = await engine.loadModel(fixture("llama/model"));
    await expect(model.createAdapter(options)).rejects.toThrow(message);
  });
});
