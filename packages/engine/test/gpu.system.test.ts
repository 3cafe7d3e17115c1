import { beforeEach, describe, expect, it } from "vitest";
import type { DeviceCheck } from "../src/index.js";
import { adapterLayout } from "../src/model/parameter-layout.js";
import { layerSitesOf } from "../src/model/sites.js";
import { checkedConfig } from "../src/gpu/self-check.js";
import { driverFaults } from "./support/driver-faults.js";
import { hasSwiftShader, runProgram, unpackSwiftShader } from "./support/swiftshader.js";
import { useTemporaryFolder } from "./support/temporary-folder.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const program = "check-gpu.mjs";

/** The result of a check. */
interface Outcome extends Partial<DeviceCheck> {
  readonly name?: string;
  readonly code?: string;
  readonly message?: string;
}

/** Bytes and arrays that steps moved and held. */
interface Counted {
  readonly steps: readonly {
    readonly toDeviceBytes: number;
    readonly fromDeviceBytes: number;
    readonly arrays: number;
  }[];
  readonly shape: {
    readonly parameters: number;
    readonly tokens: number;
    readonly hiddenSize: number;
    readonly heads: number;
    readonly kvHeads: number;
  };
  readonly left: { readonly arrays: number; readonly bytes: number };
}

/** Bytes that a step moves: factors and embedded tokens there, gradients of the factors back. */
function designedBytes(parameters: number, tokens: number, hiddenSize: number) {
  return { there: 4 * (parameters + tokens * hiddenSize), back: 4 * parameters };
}

describe("a step of Qwen3-0.6B with 4 x 256 tokens and rank 32", () => {
  it("moves 85 MB to a GPU and 81 MB back", () => {
    const [layers, hiddenSize, rank] = [28, 1024, 32];
    const config = {
      ...checkedConfig,
      layers,
      hiddenSize,
      intermediateSize: 3072,
      heads: 16,
      kvHeads: 8,
      headDim: 128,
    };
    const { length } = adapterLayout(config, layerSitesOf(config), rank);
    const { there, back } = designedBytes(length, 4 * 256, hiddenSize);
    expect([there / 1e6, back / 1e6].map(Math.round)).toEqual([85, 81]);
  });
});

// SwiftShader compiles some hundred kernels on the processor, the larger ones in a second each.
describe.runIf(hasSwiftShader)("a GPU", { timeout: 600_000 }, () => {
  const folder = useTemporaryFolder();
  let env: NodeJS.ProcessEnv;

  beforeEach(() => {
    env = unpackSwiftShader(folder());
  });

  it("agrees with the processor in the self-check", async () => {
    const [outcome] = await runProgram<Outcome[]>(program, ["check"], env);
    expect(outcome?.message).toBeUndefined();
    const names = outcome?.parts?.map(({ name }) => name);
    expect(names).toEqual(["loss", "gradients", "optimizer step", "sampled logprobs"]);
    for (const { difference } of outcome?.parts ?? []) expect(difference).toBeLessThan(2e-5);
  });

  it.runIf(isFull)("fails the self-check with a known fault, in the affected part", async () => {
    const faults = ["norm statistics", "attention blocks"];
    const outcomes = await runProgram<Outcome[]>(program, ["check", ...faults], env);
    expect(outcomes).toMatchObject([
      { code: "device_differs", message: expect.stringContaining("its gradients (") },
      { code: "device_differs", message: expect.stringContaining("its sampled logprobs (") },
    ]);
  });

  it.runIf(isFull)("moves factors and tokens there, gradients back, and nothing else", async () => {
    const { steps, shape, left } = await runProgram<Counted>(program, ["count"], env);
    const { parameters, tokens, hiddenSize, heads, kvHeads } = shape;
    const designed = designedBytes(parameters, tokens, hiddenSize);
    // Positions, targets and masks: a few numbers per token and head.
    const small = 8 * tokens * (heads + kvHeads + 16);
    const [, ...warm] = steps;
    for (const { toDeviceBytes, fromDeviceBytes } of warm) {
      expect(toDeviceBytes).toBeGreaterThanOrEqual(designed.there);
      expect(toDeviceBytes).toBeLessThanOrEqual(designed.there + small);
      expect(fromDeviceBytes).toBeGreaterThanOrEqual(designed.back);
      expect(fromDeviceBytes).toBeLessThanOrEqual(designed.back + small);
    }
    // Cancelled passes, samples and steps leave nothing behind.
    expect(new Set(steps.map(({ arrays }) => arrays)).size).toBe(1);
    expect(left).toEqual({ arrays: 0, bytes: 0 });
  });

  it.runIf(isFull)(
    "belongs to one engine at a time, reports its failure, and can be used again afterwards",
    async () => {
      const faults = JSON.stringify(driverFaults(folder()));
      const found = await runProgram<Record<string, Outcome>>("share-gpu.mjs", [faults], env);
      expect(found).toMatchObject({
        first: { name: "gpu" },
        second: { code: "device_in_use" },
        outOfMemory: { code: "device_out_of_memory" },
        lost: { code: "device_lost" },
        whileLost: { code: "device_lost" },
        afterwards: { name: "gpu" },
        again: found["calm"],
      });
    },
  );

  it.runIf(isFull)('is left alone by "auto" where it is slower, which is said', async () => {
    const [outcome] = await runProgram<Outcome[]>("choose-device.mjs", ["auto"], env);
    expect(outcome?.name).toBe("cpu");
    expect(outcome?.message).toMatch(
      /^a pass took (more than )?\d+ ms on the GPU and \d+ ms on the processor$/,
    );
  });
});

describe("a machine without a GPU", { timeout: 60_000 }, () => {
  const env = { ...process.env, VK_ICD_FILENAMES: "/nowhere.json" };

  it.runIf(process.platform === "linux")("reports it, and computes on the processor", async () => {
    const found = await runProgram<Outcome[]>("choose-device.mjs", ["gpu", "auto"], env);
    const message = expect.stringMatching(/no adapter|has no WebGPU/);
    expect(found).toMatchObject([
      { code: "no_device", message },
      { name: "cpu", message },
    ]);
  });
});
