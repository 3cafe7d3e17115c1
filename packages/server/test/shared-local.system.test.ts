import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { realModels, recurrentModels } from "./support/real-models.js";

const root = path.resolve(import.meta.dirname, "../../..");
const sdk = JSON.stringify(pathToFileURL(path.join(root, "packages/sdk/dist/index.js")).href);

let folder: string;
let dataDir: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-shared-local-"));
  dataDir = path.join(folder, "data");
});
afterEach(() => {
  const pid = serverPid();
  if (pid !== undefined) process.kill(pid, "SIGKILL");
  rmSync(folder, { recursive: true, force: true, maxRetries: 50 });
});

/** The process of the shared server, once it listens. */
function serverPid(): number | undefined {
  try {
    const note = readFileSync(path.join(dataDir, "holder.json"), "utf8");
    const { pid, url } = JSON.parse(note) as { pid: number; url: string | null };
    if (url === null) return undefined;
    process.kill(pid, 0);
    return pid;
  } catch {
    return undefined;
  }
}

/** Trains so many steps, saves, samples, and returns all of it. */
const training = `
  async function run(seed, baseModel, steps, onStep) {
    const service = new ServiceClient({ baseUrl: "local:" });
    const training = await service.createLoraTrainingClient({ baseModel, rank: 4, seed });
    const data = [{ modelInput: [1, 2, 3, 4], lossFnInputs: { target_tokens: [2, 3, 4, 5], weights: [1, 1, 1, 1] } }];
    const losses = [];
    for (let step = 0; step < steps; step++) {
      const pass = await training.forwardBackward(data, "cross_entropy");
      await training.optimStep({ learningRate: 0.01 });
      losses.push(pass.metrics["loss:sum"]);
      onStep?.();
    }
    const sampling = await training.saveWeightsAndGetSamplingClient();
    const samplingParams = { maxTokens: 8, temperature: 1, seed };
    const { sequences } = await sampling.sample({ prompt: [1, 2, 3], samplingParams });
    await service.close();
    return { losses, tokens: Array.from(sequences[0].tokens), logprobs: Array.from(sequences[0].logprobs) };
  }
`;

const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  TINKER_API_KEY: "",
  TINKER_TS_IN_PROCESS: "",
  TINKER_TS_DATA_DIR: dataDir,
});

/** Runs the training in a process that prints a line per step, and returns its last line. */
async function program(
  seed: number,
  model: string,
  steps: number,
  onStep: () => void = () => {},
): Promise<string> {
  const file = path.join(mkdtempSync(path.join(folder, "program-")), "program.mjs");
  writeFileSync(
    file,
    `import { ServiceClient } from ${sdk};
    ${training}
    const result = await run(${seed}, ${JSON.stringify(model)}, ${steps}, () => console.log("step"));
    console.log(JSON.stringify(result));`,
  );
  const child = spawn(process.execPath, [file], {
    env: environment(),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  let last = "";
  for await (const line of createInterface(child.stdout)) {
    last = line;
    if (line === "step") onStep();
  }
  expect(await exited).toEqual([0, null]);
  return last;
}

it("four programs end with the results of calm runs although their server is killed ten times", async () => {
  const models = [realModels.qwen3, recurrentModels.qwen3_5, recurrentModels.granite_hybrid];
  const runs = [0, 1, 2, 3].map((seed) => [seed, models[seed % 3]!, 60] as const);
  const calm: string[] = [];
  for (const run of runs) calm.push(await program(...run));

  const killed = new Set<number>();
  let [state, untilNext] = [35, 5];
  const random = (most: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >>> 8) % most;
  };
  const killSometimes = (): void => {
    if (killed.size === 10 || --untilNext > 0) return;
    const pid = serverPid();
    if (pid === undefined || killed.has(pid)) return;
    killed.add(pid);
    process.kill(pid, "SIGKILL");
    untilNext = 1 + random(30);
  };
  const disturbed = await Promise.all(runs.map((run) => program(...run, killSometimes)));
  expect(killed.size).toBe(10);
  expect(disturbed).toEqual(calm);
}, 300_000);

it("ten files of Vitest train in two workers, each with a model of its own and the results of a calm run", async () => {
  const model = realModels.qwen3;
  const calm = await program(5, model, 6);
  const project = path.join(folder, "project");
  mkdirSync(project);
  writeFileSync(path.join(project, "package.json"), '{"type":"module"}');
  for (let file = 0; file < 10; file++) {
    writeFileSync(
      path.join(project, `train-${file}.test.js`),
      `import { ServiceClient } from ${sdk};
      ${training}
      it("trains", { timeout: 60_000 }, async () => {
        expect(await run(5, ${JSON.stringify(model)}, 6)).toEqual(${calm});
      });`,
    );
  }
  const vitest = path.join(root, "node_modules/vitest/vitest.mjs");
  const options = [
    "run",
    "--root",
    project,
    "--globals",
    "--maxWorkers",
    "2",
    "--reporter",
    "json",
  ];
  const child = spawn(process.execPath, [vitest, ...options], {
    cwd: project,
    env: { ...environment(), VITEST: "", VITEST_POOL_ID: "", VITEST_WORKER_ID: "" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  for await (const line of createInterface(child.stdout)) lines.push(line);
  const report = JSON.parse(lines.find((line) => line.startsWith("{")) ?? "{}") as object;
  expect(report).toMatchObject({ success: true, numPassedTests: 10, numFailedTests: 0 });
}, 180_000);
