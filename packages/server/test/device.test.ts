import { EngineError, type DeviceChoice, type DeviceName } from "@tinker-ts/engine";
import type { StudioMachine } from "tinker-ts/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadEngineKit } from "../src/engine-host/load-engine-kit.js";
import type { EngineKit } from "../src/engine-port/engine-kit.js";
import type { LoadedModel, TrainedAdapter } from "../src/engine-port/engine-port.js";
import { resolveDevice } from "../src/options.js";
import { realModels } from "./support/real-models.js";
import { getStudio } from "./studio/support.js";
import { passBody, TestApp } from "./support/test-app.js";

/**
 * The real engine, called a GPU, whose next passes fail as one does that is lost or full. What follows in the
 * server is the same as with a GPU: codes and calls are all it knows of it.
 */
class FailingKit {
  /** What engines were started on. */
  readonly started: DeviceName[] = [];
  /** What the next passes fail with. */
  readonly failures: string[] = [];
  /** How many of the next steps fail after they have changed the adapter. */
  brokenSteps = 0;
  /** Whether there is no GPU any more. */
  isGone = false;

  async kit(): Promise<EngineKit> {
    const kit = await loadEngineKit({ threads: 1 });
    return { ...kit, createEngine: (options) => this.#create(kit, options?.device) };
  }

  async #create(kit: EngineKit, device: DeviceChoice | undefined) {
    const name: DeviceName = device === "cpu" ? "cpu" : "gpu";
    if (name === "gpu" && this.isGone) {
      throw new EngineError("no_device", "the GPU has no adapter", { category: "internal" });
    }
    const engine = await kit.createEngine({ device: "cpu" });
    this.started.push(name);
    return {
      device: { name, reason: "it was asked for" } as const,
      close: () => engine.close(),
      loadModel: async (folder: string): Promise<LoadedModel> => {
        const model = await engine.loadModel(folder);
        return {
          contextLength: model.contextLength,
          vocabSize: model.vocabSize,
          precision: model.precision,
          sample: (request) => model.sample(request),
          createAdapter: async (options) => this.#failing(await model.createAdapter(options)),
        };
      },
    };
  }

  #failing(adapter: TrainedAdapter): TrainedAdapter {
    return {
      forward: (...pass) => adapter.forward(...pass),
      forwardBackward: async (...pass) => {
        const code = this.failures.shift();
        if (code !== undefined) throw new EngineError(code, "it failed", { category: "internal" });
        return adapter.forwardBackward(...pass);
      },
      optimStep: async (options) => {
        const metrics = await adapter.optimStep(options);
        if (this.brokenSteps === 0) return metrics;
        this.brokenSteps--;
        throw new EngineError("adapter_broken", "it failed", { category: "internal" });
      },
      exportState: (options) => adapter.exportState(options),
      importState: (...state) => adapter.importState(...state),
      release: () => adapter.release(),
      snapshot: () => adapter.snapshot(),
    };
  }
}

let failing: FailingKit;
let app: TestApp;
beforeEach(async () => {
  failing = new FailingKit();
  app = await TestApp.open({ kit: await failing.kit(), models: { toy: realModels.qwen3 } });
});
afterEach(() => app.dispose());

/** Trains a new model for three steps, and lets `between` happen before each. */
async function losses(between: (step: number) => void, model?: string): Promise<unknown[]> {
  model ??= await app.model(await app.session());
  const found: unknown[] = [];
  for (let step = 0; step < 3; step++) {
    between(step);
    const body = passBody(model, 2 * step + 1, [[3, 4, 5, 6 + step]]);
    const { requestId } = await app.call("forwardBackward", body);
    found.push((await app.result(requestId))["metrics"]);
    const adamParams = { learningRate: 0.01 };
    const stepped = await app.call("optimStep", {
      adamParams,
      modelId: model,
      seqId: 2 * step + 2,
    });
    await app.result(stepped.requestId);
  }
  return found;
}

/** What a run says that it was computed on. */
function devicesOf(model: string): Promise<unknown> {
  return getStudio(app, `runs/${encodeURIComponent(model)}`);
}

describe("a GPU that fails", () => {
  it("is started again when it was lost, and its models go on where they were", async () => {
    const calm = await losses(() => {});
    const troubled = await losses((step) => {
      if (step === 2) failing.failures.push("device_lost");
    });
    expect(troubled).toEqual(calm);
    expect(failing.started).toEqual(["gpu", "gpu"]);
  });

  it.each([
    ["the GPU had not enough memory", ["device_out_of_memory"], false],
    ["the GPU failed and did not come back", ["device_lost"], true],
  ])("leaves its models to the processor, because %s", async (reason, codes, isGone) => {
    const calm = await losses(() => {});
    const model = await app.model(await app.session());
    const troubled = await losses((step) => {
      if (step !== 1) return;
      failing.failures.push(...codes);
      failing.isGone = isGone;
    }, model);
    expect(troubled).toEqual(calm);
    expect(failing.started).toEqual(["gpu", "cpu"]);
    expect(await devicesOf(model)).toMatchObject({ config: { devices: ["gpu", "cpu"] } });
    expect(await getStudio<StudioMachine>(app, "machine")).toMatchObject({
      engine: { device: { name: "cpu", reason } },
      models: [{ name: "toy", isLoaded: true }],
    });
  });

  it("leaves its models to the processor when it fails again and again", async () => {
    const calm = await losses(() => {});
    const troubled = await losses((step) => {
      if (step > 0) failing.failures.push(step === 1 ? "device_lost" : "device_failed");
    });
    expect(troubled).toEqual(calm);
    expect(failing.started).toEqual(["gpu", "gpu", "cpu"]);
  });
});

describe("an optimizer step that fails in its middle", () => {
  it("is repeated on the model rebuilt from its journal, to the same bits, without a new engine", async () => {
    const calm = await losses(() => {});
    const troubled = await losses((step) => {
      if (step === 1) failing.brokenSteps = 1;
    });
    expect(troubled).toEqual(calm);
    expect(failing.started).toEqual(["gpu"]);
  });

  it("fails when it fails again, and leaves the model as it was before", async () => {
    const model = await app.model(await app.session());
    const pass = async (seqId: number) => {
      const { requestId } = await app.call("forwardBackward", passBody(model, seqId, [[3, 4, 5]]));
      return (await app.result(requestId))["metrics"];
    };
    const before = await pass(1);
    failing.brokenSteps = 2;
    const step = { adamParams: { learningRate: 0.01 }, modelId: model, seqId: 2 };
    const { requestId } = await app.call("optimStep", step);
    expect(await app.result(requestId)).toMatchObject({ category: "server" });
    expect(await pass(3)).toEqual(before);
  });
});

describe("weights in 8 bits", () => {
  it("are not for a GPU, and make the processor the automatic choice", () => {
    const int8 = { hasInt8: true } as const;
    expect(resolveDevice("auto", int8, {})).toBe("cpu");
    expect(resolveDevice("auto", { hasInt8: false }, {})).toBe("auto");
    expect(() => resolveDevice("gpu", int8, {})).toThrow(
      'device: a GPU computes with weights in 32 bits alone; use the device "cpu", or weights "f32"',
    );
    expect(() => resolveDevice(undefined, int8, { TINKER_TS_DEVICE: "gpu" })).toThrow(
      "TINKER_TS_DEVICE: a GPU",
    );
  });
});

describe("a device that cannot be used", () => {
  it("is refused when the server starts", async () => {
    failing.isGone = true;
    const other = TestApp.open({ kit: await failing.kit(), device: "gpu" });
    await expect(other).rejects.toThrow("the GPU has no adapter");
    await expect(TestApp.open({ device: "abacus" as "cpu" })).rejects.toThrow(
      'device: "abacus" is not one of cpu, gpu and auto',
    );
  });
});
