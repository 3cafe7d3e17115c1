import { beforeEach, describe, expect, it } from "vitest";
import type { DeviceCheck } from "../src/index.js";
import { hasSwiftShader, runProgram, unpackSwiftShader } from "./support/swiftshader.js";
import { useTemporaryFolder } from "./support/temporary-folder.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

/** What came of a check. */
interface Outcome extends Partial<DeviceCheck> {
  readonly leftOut: string;
  readonly code?: string;
  readonly message?: string;
}

// SwiftShader compiles some hundred pipelines on the processor, each in up to a second.
describe.runIf(hasSwiftShader)("the self-check of a GPU", { timeout: 300_000 }, () => {
  const folder = useTemporaryFolder();
  let env: NodeJS.ProcessEnv;

  beforeEach(() => {
    env = unpackSwiftShader(folder());
  });

  it("finds the same numbers as the processor", async () => {
    const [outcome] = await runProgram<Outcome[]>("check-gpu.mjs", ["nothing"], env);
    expect(outcome?.message).toBeUndefined();
    const names = outcome?.parts?.map(({ name }) => name);
    expect(names).toEqual(["loss", "gradients", "optimizer step", "sampled logprobs"]);
    for (const { difference } of outcome?.parts ?? []) expect(difference).toBeLessThan(2e-5);
  });

  it.runIf(isFull)("names the part that a known fault of the provider spoils", async () => {
    const faults = ["norm statistics", "attention blocks"];
    const outcomes = await runProgram<Outcome[]>("check-gpu.mjs", faults, env);
    expect(outcomes).toMatchObject([
      { code: "device_differs", message: expect.stringContaining("its gradients (") },
      { code: "device_differs", message: expect.stringContaining("its sampled logprobs (") },
    ]);
  });
});

describe("a machine without a GPU", () => {
  it("says so", async () => {
    const env = { ...process.env, VK_ICD_FILENAMES: "/nowhere.json" };
    const [outcome] = await runProgram<Outcome[]>("check-gpu.mjs", ["nothing"], env);
    expect(outcome).toMatchObject({ code: "no_device", message: expect.stringContaining("cpu") });
  });
});
