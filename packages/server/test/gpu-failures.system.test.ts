import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ServiceClient, type TrainingClient } from "tinker-ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  driverFaults,
  setFault,
  type DriverFault,
  type DriverFaults,
} from "../../engine/test/support/driver-faults.js";
import { hasSwiftShader, unpackSwiftShader } from "../../engine/test/support/swiftshader.js";
import { realModels } from "./support/real-models.js";
import { ServerProcess } from "./support/server-process.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

// A server on SwiftShader, whose driver is broken while it computes: the errors are those of a real loss.
describe.runIf(isFull && hasSwiftShader)("a server on a GPU", { timeout: 600_000 }, () => {
  let root: string;
  let faults: DriverFaults;
  let server: ServerProcess;
  let service: ServiceClient;

  beforeEach(() => {
    root = mkdtempSync(path.join(tmpdir(), "tinker-ts-gpu-"));
  });
  afterEach(async () => {
    await service.close();
    await server.stop();
    rmSync(root, { recursive: true, force: true });
  });

  /** Starts the server, which mends `mended` when it notices. */
  async function start(mended: (faults: DriverFaults) => DriverFault | null): Promise<void> {
    const env = unpackSwiftShader(root);
    faults = driverFaults(root);
    const dataDir = path.join(root, "data");
    server = new ServerProcess(
      { dataDir, models: realModels, device: "gpu", threads: 2 },
      { program: "serve-on-gpu.mjs", args: [JSON.stringify(mended(faults))], env },
    );
    await server.start();
    service = new ServiceClient({ baseUrl: address(), apiKey: "tml-gpu-test", telemetry: false });
  }

  function address(): string {
    return `http://127.0.0.1:${server.port}`;
  }

  function open(): Promise<TrainingClient> {
    return service.createLoraTrainingClient({ baseModel: "qwen3", rank: 4, seed: 1 });
  }

  /** One step on sequences that are longer each time, so that each needs more memory. */
  async function step(training: TrainingClient, index: number): Promise<number> {
    const tokens = Array.from({ length: 12 << index }, (_, at) => (at * 7) % 300);
    const datum = { modelInput: tokens, lossFnInputs: { target_tokens: tokens } };
    const { metrics } = await training.forwardBackward([datum], "cross_entropy");
    await training.optimStep({ learningRate: 0.01 });
    return metrics["loss:sum"] ?? NaN;
  }

  /** What a run says that it was computed on. */
  async function devicesOf(training: TrainingClient): Promise<unknown> {
    const { modelId } = await training.getInfo();
    const url = `${address()}/studio/api/runs/${encodeURIComponent(modelId)}`;
    const run = (await (await fetch(url)).json()) as { config: { devices: unknown } };
    return run.config.devices;
  }

  function isSound({ file, offset, sound }: DriverFault): boolean {
    const bytes = readFileSync(file).subarray(offset, offset + sound.length / 2);
    return bytes.toString("hex") === sound;
  }

  function expectSame(actual: number, expected: number | undefined): void {
    expect(Math.abs(actual / (expected ?? NaN) - 1)).toBeLessThan(1e-5);
  }

  it("that is lost goes on with it, and with the processor when it is lost again", async () => {
    await start(({ lost }) => lost);
    const calm = await open();
    const expected = [await step(calm, 0), await step(calm, 1), await step(calm, 2)];
    const troubled = await open();
    expectSame(await step(troubled, 0), expected[0]);
    setFault(faults.lost, true);
    expectSame(await step(troubled, 1), expected[1]);
    expect(isSound(faults.lost)).toBe(true);
    expect(await devicesOf(troubled)).toEqual(["gpu"]);
    setFault(faults.lost, true);
    expectSame(await step(troubled, 2), expected[2]);
    expect(await devicesOf(troubled)).toEqual(["gpu", "cpu"]);
    expectSame(await step(calm, 3), await step(troubled, 3));
  });

  it("without enough memory goes on with the processor", async () => {
    await start(() => null);
    const calm = await open();
    const expected = [await step(calm, 0), await step(calm, 1), await step(calm, 2)];
    const troubled = await open();
    expectSame(await step(troubled, 0), expected[0]);
    expectSame(await step(troubled, 1), expected[1]);
    setFault(faults.outOfMemory, true);
    expectSame(await step(troubled, 2), expected[2]);
    expect(await devicesOf(troubled)).toEqual(["gpu", "cpu"]);
  });
});
