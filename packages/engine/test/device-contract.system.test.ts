import { beforeAll, describe, expect, it } from "vitest";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { families, recurrentFamilies } from "./support/fixture-model.js";
import { hasSwiftShader, runLines, unpackSwiftShader } from "./support/swiftshader.js";

// One program runs on the processor and on a GPU, with the same results. The GPU is SwiftShader, which
// compiles every kernel for each shape: all cases share a process, and run only with the long tests.
const attentionFamilies = families.filter((family) => !recurrentFamilies.has(family));
const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

interface Trained {
  readonly losses: readonly number[];
  readonly gradients: Readonly<Record<string, readonly number[]>>;
}
interface Sampled {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
}
type FamilyReport = Trained & { readonly before: Sampled; readonly after: Sampled };
interface CrowdReport {
  readonly hits: number;
  readonly tokens: readonly (readonly number[])[];
  readonly logprobs: readonly number[];
}
interface Report {
  readonly name: string;
  readonly device: string;
  readonly report: unknown;
}

describe.runIf(isFull && hasSwiftShader)("every device", { timeout: 60_000 }, () => {
  const cases = [
    ...attentionFamilies.map((family) => `family:${family}`),
    "losses:qwen3",
    "long:300",
    "long:2052",
    "full:llama",
    "crowd:qwen3",
  ];
  let cpu: readonly Report[];
  let gpu: readonly Report[];

  beforeAll(async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-test-"));
    const env = unpackSwiftShader(folder);
    cpu = await runLines<Report>("device-contract.mjs", ["cpu", ...cases], env);
    gpu = await runLines<Report>("device-contract.mjs", ["gpu", ...cases], env);
  }, 3_600_000);

  it("is the requested one", () => {
    expect(new Set(cpu.map(({ device }) => device))).toEqual(new Set(["cpu"]));
    expect(new Set(gpu.map(({ device }) => device))).toEqual(new Set(["gpu"]));
  });

  it.each(attentionFamilies)(
    "takes the same five steps on %s and samples the same from it",
    (family) => {
      const [expected, actual] = both<FamilyReport>(`family:${family}`);
      expectSameTraining(actual, expected);
      for (const moment of ["before", "after"] as const) {
        expect(actual[moment].tokens).toEqual(expected[moment].tokens);
        expectClose(actual[moment].logprobs, expected[moment].logprobs, 1e-4);
      }
    },
  );

  it("computes every loss", () => {
    const [expected, actual] = both<Record<string, Trained>>("losses:qwen3");
    expect(Object.keys(actual)).toHaveLength(4);
    for (const [name, trained] of Object.entries(expected)) {
      expectSameTraining(actual[name] ?? { losses: [], gradients: {} }, trained);
    }
  });

  it.each(["long:300", "long:2052", "full:llama"])("agrees on %s", (name) => {
    const [expected, actual] = both<Trained>(name);
    expectSameTraining(actual, expected);
  });

  it("samples from several adapters at once, and from cached prompts", () => {
    const [expected, actual] = both<CrowdReport>("crowd:qwen3");
    expect(actual.hits).toBe(64);
    expect(actual.tokens).toEqual(expected.tokens);
    expectClose(actual.logprobs, expected.logprobs, 1e-4);
  });

  function both<T>(name: string): readonly [T, T] {
    const found = [cpu, gpu].map((lines) => lines.find((line) => line.name === name)?.report);
    return found as [T, T];
  }
});

function expectSameTraining(actual: Trained, expected: Trained): void {
  expect(actual.losses).toHaveLength(expected.losses.length);
  for (const [index, loss] of expected.losses.entries()) {
    expect(Math.abs((actual.losses[index] ?? NaN) - loss) / Math.abs(loss)).toBeLessThan(1e-5);
  }
  for (const [name, values] of Object.entries(expected.gradients)) {
    const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-30);
    expectClose(actual.gradients[name] ?? [], values, 1e-4 * largest);
  }
}

function expectClose(actual: readonly number[], expected: readonly number[], most: number): void {
  expect(actual).toHaveLength(expected.length);
  const differences = expected.map((value, index) => Math.abs(value - (actual[index] ?? NaN)));
  expect(differences.reduce((a, b) => Math.max(a, b), 0)).toBeLessThanOrEqual(most);
}
