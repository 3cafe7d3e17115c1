import { beforeEach, describe, expect, it } from "vitest";
import type { DeviceCheck } from "../src/index.js";
import { driverFaults } from "./support/driver-faults.js";
import { hasSwiftShader, runProgram, unpackSwiftShader } from "./support/swiftshader.js";
import { useTemporaryFolder } from "./support/temporary-folder.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const program = "check-gpu.mjs";

/** What came of a check. */
interface Outcome extends Partial<DeviceCheck> {
  readonly name?: string;
  readonly code?: string;
  readonly message?: string;
}

/** What steps moved and held. */
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

// SwiftShader compiles some hundred kernels on the processor, the larger ones in a second each.
describe.runIf(hasSwiftShader)("a GPU", { timeout: 600_000 }, () => {
  const folder = useTemporaryFolder();
  let env: NodeJS.ProcessEnv;

  beforeEach(() => {
    env = unpackSwiftShader(folder());
  });

  it("gives the numbers of the processor in the self-check", async () => {
    const [outcome] = await runProgram<Outcome[]>(program, ["check"], env);
    expect(outcome?.message).toBeUndefined();
    const names = outcome?.parts?.map(({ name }) => name);
    expect(names).toEqual(["loss", "gradients", "optimizer step", "sampled logprobs"]);
    for (const { difference } of outcome?.parts ?? []) expect(difference).toBeLessThan(2e-5);
  });

  it.runIf(isFull)(
    "fails the self-check with a known fault, in the part that it spoils",
    async () => {
      const faults = ["norm statistics", "attention blocks"];
      const outcomes = await runProgram<Outcome[]>(program, ["check", ...faults], env);
      expect(outcomes).toMatchObject([
        { code: "device_differs", message: expect.stringContaining("its gradients (") },
        { code: "device_differs", message: expect.stringContaining("its sampled logprobs (") },
      ]);
    },
  );

  // Of the shape of Qwen3-0.6B this is 85 MB there and 81 MB back for 1,024 tokens at rank 32: factors 81, embedded
  // tokens 4. The rest is a few numbers per token and head.
  it.runIf(isFull)("moves factors and tokens there, gradients back, and nothing else", async () => {
    const { steps, shape, left } = await runProgram<Counted>(program, ["count"], env);
    const { parameters, tokens, hiddenSize, heads, kvHeads } = shape;
    const [factors, embedded] = [4 * parameters, 4 * tokens * hiddenSize];
    const small = 8 * tokens * (heads + kvHeads + 16);
    const [, ...warm] = steps;
    for (const { toDeviceBytes, fromDeviceBytes } of warm) {
      expect(toDeviceBytes).toBeGreaterThanOrEqual(factors + embedded);
      expect(toDeviceBytes).toBeLessThanOrEqual(factors + embedded + small);
      expect(fromDeviceBytes).toBeGreaterThanOrEqual(factors);
      expect(fromDeviceBytes).toBeLessThanOrEqual(factors + small);
    }
    // Passes that are given up, samples and steps leave nothing behind.
    expect(new Set(steps.map(({ arrays }) => arrays)).size).toBe(1);
    expect(left).toEqual({ arrays: 0, bytes: 0 });
  });

  it.runIf(isFull)(
    "belongs to one engine at a time, says how it fails, and can be used again afterwards",
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

  it.runIf(process.platform === "linux")("says so, and computes on the processor", async () => {
    const found = await runProgram<Outcome[]>("choose-device.mjs", ["gpu", "auto"], env);
    const message = expect.stringMatching(/no adapter|has no WebGPU/);
    expect(found).toMatchObject([
      { code: "no_device", message },
      { name: "cpu", message },
    ]);
  });
});
