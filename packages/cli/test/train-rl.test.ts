import { writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { readRunFolder } from "tinker-ts/run-log";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { baseModel, LiveServer } from "./support/live-server.js";
import { PtyProcess } from "./support/pty-process.js";
import { runProcess } from "./support/run-process.js";

const module = fileURLToPath(new URL("support/weather-task.mjs", import.meta.url));
const settings = ["--model", baseModel];
let server: LiveServer;
let runs = 0;

beforeAll(async () => {
  server = await LiveServer.start();
});
afterAll(() => server.stop());

const nextRun = (): string => `runs/rl-${runs++}`;

describe("train rl", () => {
  it("plays the first group and trains nothing with --dry-run", async () => {
    const line = ["train", "rl", module, ...settings, "--dry-run"];
    const { code, out } = await server.run(line, { columns: 120 });
    expect(code).toBe(0);
    expect(out).toMatch(/First group, played by the untrained model:/);
    expect(out).toMatch(/Describe the weather\./);
    expect(out).toMatch(/reward -?\d/);
    expect(out).toMatch(/Steps +3 steps of 2 groups with 4 episodes/);
    expect((await readRunFolder(path.join(server.folder, "runs/weather-task"))).attempts).toBe(0);
    const plan = await server.json([...line, "--lr", "2e-3", "--loss", "ppo"]);
    expect(plan).toMatchObject({ steps: 3, groups_per_step: 2, learning_rate: 0.002, loss: "ppo" });
  });

  it("trains, prints progress and next steps", async () => {
    const folder = nextRun();
    const line = ["train", "rl", module, ...settings, "--output", folder, "--base-url", server.url];
    const { code, out, err } = await server.run(line);
    expect(code).toBe(0);
    expect(err).toMatch(/step 3\/3 {2}env\/all\/reward\/total -?\d/);
    expect(out).toMatch(/Its mean reward: -?[\d.]+ before, -?[\d.]+ now/);
    expect(out).toMatch(/tinker-ts chat --model tinker:\S+ --base-url http/);
    const refused = await server.run(line);
    expect(refused.err).toContain("holds a run already.");
    const again = await server.json<{ status: string }>([...line, "--resume"]);
    expect(again.status).toBe("unchanged");
  });

  it("plays while it trains on request", async () => {
    const folder = nextRun();
    const line = ["train", "rl", module, ...settings, "--output", folder];
    const result = await server.json([
      ...line,
      "--max-steps-off-policy",
      "1",
      "--groups-per-batch",
      "3",
      "--kl-coefficient",
      "0.1",
    ]);
    expect(result).toMatchObject({ status: "completed", step: 2, total_steps: 2 });
    const { metrics } = await readRunFolder(path.join(server.folder, folder));
    expect(metrics[0]!.metrics).toHaveProperty("kl_policy_base");
    expect(metrics[0]!.metrics).toHaveProperty("sampling_client/step_min");
  });

  const write = (name: string, text: string): string => {
    const file = path.join(server.folder, name);
    writeFileSync(file, text);
    return file;
  };

  it("reports that the learning rate is a guess if none is known", async () => {
    const without = write(
      "no-rate.mjs",
      `import task from ${JSON.stringify(module)};
       export default async (context) => ({ ...(await task(context)), learningRate: undefined });`,
    );
    const { code, out, err } = await server.run(["train", "rl", without, ...settings, "--dry-run"]);
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(out).toMatch(/Learning rate +0\.000100/);
    expect(err).toContain(`Warning: no learning rate is recommended for ${baseModel}; 0.0001 is`);
  });

  it.each<[string, () => readonly string[], RegExp]>([
    ["a module that is not there", () => ["no.mjs"], /^Error: \S*no\.mjs does not exist/],
    [
      "a module that exports something else",
      () => [write("other.mjs", "export const groups = 1;")],
      /^Error: \S*other\.mjs exports only groups\.\nIt needs a default export, or one named rl/,
    ],
    [
      "a module that returns something else",
      () => [write("wrong.mjs", "export default () => ({ length: 3 });")],
      /^Error: The module cannot be used: dataset: is missing: a task is \{ dataset/,
    ],
    [
      "a module that throws",
      () => [write("broken.mjs", "export default () => { throw new Error('no cards'); };")],
      /^Error: The module cannot be used: no cards\n$/,
    ],
    [
      "a rate that is none",
      () => [module, "--lr", "fast"],
      /^Error: --lr: 'fast' is not a positive/,
    ],
  ])("%s is one clear line before anything starts", async (_, given, message) => {
    const { code, out, err } = await server.run([
      "train",
      "rl",
      ...given(),
      ...settings,
      "--output",
      nextRun(),
    ]);
    expect(err).toMatch(message);
    expect({ code, out }).toEqual({ code: 1, out: "" });
  });
});

it("a run that is stopped by Ctrl-C in a terminal resumes with the printed command", async () => {
  const env = { TINKER_BASE_URL: server.url, TINKER_API_KEY: "tml-test" };
  const folder = path.join(server.folder, nextRun());
  const line = ["train", "rl", module, ...settings, "--output", folder];
  const terminal = new PtyProcess(line, { cwd: server.folder, env });
  await terminal.sees(/step 1\/3/);
  terminal.types("\u0003");
  expect(await terminal.finished).toBe(130);
  const resume = /tinker-ts (train rl [^\r\n]+--resume)/.exec(terminal.screen)![1]!;
  const piped = await runProcess(resume.split(" "), { env });
  expect(piped.code).toBe(0);
  expect(piped.err).toMatch(/step 3\/3/);
}, 60_000);
