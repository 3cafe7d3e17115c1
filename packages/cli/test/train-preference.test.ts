import { writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { readRunFolder } from "tinker-ts/run-log";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { baseModel, LiveServer } from "./support/live-server.js";

const settings = ["--model", baseModel];
let server: LiveServer;
let runs = 0;

beforeAll(async () => {
  server = await LiveServer.start();
});
afterAll(() => server.stop());

const nextRun = (): string => `runs/preference-${runs++}`;
const write = (name: string, text: string): string => {
  const file = path.join(server.folder, name);
  writeFileSync(file, text);
  return file;
};
const rows = ["rainy", "foggy", "snowy", "stormy", "cloudy"].map((bad) => ({
  prompt: "Describe the weather.",
  chosen: "It is sunny today.",
  rejected: `It is ${bad} today.`,
}));
const pairs = (): string =>
  write("pairs.jsonl", rows.map((row) => `${JSON.stringify(row)}\n`).join(""));

describe("train dpo", { timeout: 120_000 }, () => {
  it("shows a pair and the training plan with --dry-run", async () => {
    const line = ["train", "dpo", pairs(), ...settings, "--test-size", "1", "--dry-run"];
    const { code, out } = await server.run(line, { columns: 120 });
    expect(code).toBe(0);
    expect(out).toMatch(/First chosen completion, compared text in green:/);
    expect(out).toMatch(/First rejected completion/);
    expect(out).toMatch(/Loss +dpo, beta 0\.1/);
    expect(out).toMatch(/Held out +1 rows/);
    expect((await readRunFolder(path.join(server.folder, "runs/pairs"))).attempts).toBe(0);
    const plan = await server.json([...line, "--loss", "simpo", "--lr", "2e-3"]);
    expect(plan).toMatchObject({
      rows: 4,
      loss: "simpo",
      beta: 2,
      reference: null,
      learning_rate: 0.002,
    });
  });

  it("trains, prints progress and next steps", async () => {
    const folder = nextRun();
    const line = ["train", "dpo", pairs(), ...settings, "--lr", "1e-3", "--batch-size", "2"];
    line.push(
      "--rank",
      "4",
      "--test-size",
      "1",
      "--epochs",
      "1",
      "--output",
      folder,
      "--base-url",
      server.url,
    );
    const { code, out, err } = await server.run(line);
    expect(code).toBe(0);
    expect(err).toMatch(/step 2\/2 +dpo_loss \S+ +accuracy \S+ +margin/);
    expect(out).toMatch(/Describe the weather\.\n +before: .+\n +now: /);
    expect(out).toMatch(/test\/accuracy: [01]/);
    expect(out).toMatch(/tinker-ts chat --model tinker:\S+ --base-url http/);
    expect((await server.run(line)).err).toContain("holds a run already.");
    const again = await server.json<{ status: string }>([...line, "--resume"]);
    expect(again.status).toBe("unchanged");
  });

  it("reads rows of a module, also with labels of single completions", async () => {
    const text = rows
      .map(({ prompt, chosen }, index) =>
        JSON.stringify({ prompt, completion: chosen, label: index > 1 }),
      )
      .join(", ");
    const module = write("liked.mjs", `export default () => [${text}];`);
    const line = ["train", "dpo", module, ...settings, "--loss", "kto", "--output", nextRun()];
    const result = await server.json([...line, "--batch-size", "5", "--rank", "4"]);
    expect(result).toMatchObject({ status: "completed", step: 30 });
  });

  it.each<[string, () => readonly string[], RegExp]>([
    ["no such file", () => ["no.jsonl"], /no\.jsonl/],
    [
      "a row that is none",
      () => [write("bad.jsonl", `{"prompt": "Hi?"}\n`)],
      /bad\.jsonl:1: unknown row format/,
    ],
    ["a rate that is none", () => [pairs(), "--lr", "x"], /--lr: 'x' is not auto or/],
    [
      "a module without rows",
      () => [write("none.mjs", "export default 3;")],
      /none\.mjs does not export a list of rows/,
    ],
  ])("refuses %s in one line", async (_, make, message) => {
    const { code, err } = await server.run(["train", "dpo", ...make(), ...settings]);
    expect(code).not.toBe(0);
    expect(err).toMatch(message);
  });
});

describe("train distill", { timeout: 120_000 }, () => {
  const module = fileURLToPath(new URL("support/password-task.mjs", import.meta.url));

  it("shows the plan with --dry-run, trains, and resumes", async () => {
    const folder = nextRun();
    const line = ["train", "distill", module, ...settings, "--output", folder];
    const dry = await server.run([...line, "--dry-run"], { columns: 120 });
    expect(dry.out).toMatch(/How the student answers now:.*\n +What is the password\?/);
    expect(dry.out).toMatch(/Kind +on-policy/);
    expect(dry.out).toMatch(/Steps +3 of \d+ sequences/);
    expect(dry.out).toMatch(/Estimate +about \d+ s/);
    const first = await server.json([...line, "--max-steps", "1"]);
    expect(first).toMatchObject({ status: "completed", step: 1 });
    const { out, code } = await server.run([...line, "--resume"]);
    expect(code).toBe(0);
    expect(out).toMatch(/What is the password\?\n +before: .*\n +now: /);
    const { metrics } = await readRunFolder(path.join(server.folder, folder));
    expect(metrics).toHaveLength(3);
    expect(metrics[0]!.metrics).toHaveProperty("teacher_kl");
  });

  it.each([
    [
      "sdft",
      `{ demonstrations: [{ question: "Hi.", answer: "Hello." }], groupSize: 3, numEpochs: 2 }`,
      2,
      3,
    ],
    [
      "prompt",
      `{ instruction: "Sing.", queries: ["Hi.", "Ho."], samplesPerQuery: 2, batchSize: 2 }`,
      30,
      2,
    ],
    [
      "off-policy",
      `{ teacher: sampling, data: [{ prompt: "Hi.", completion: "Hello." }], batchSize: 1, numEpochs: 5 }`,
      5,
      1,
    ],
  ])("plans %s", async (kind, setup, steps, perStep) => {
    const file = write(`${kind}.mjs`, `export default ({ sampling }) => (${setup});`);
    const line = ["train", "distill", file, ...settings, "--output", nextRun(), "--dry-run"];
    const plan = await server.json(line);
    expect(plan).toMatchObject({ kind, steps, sequences_per_step: perStep });
    expect((plan as { estimated_seconds: number }).estimated_seconds).toBeGreaterThan(0);
  });

  it("reports what a module must export", async () => {
    const other = write("other.mjs", "export default () => ({ teacher: 1 });");
    const { code, err } = await server.run(["train", "distill", other, ...settings]);
    expect(code).not.toBe(0);
    expect(err).toMatch(/must give one of: datasets; demonstrations; .*; it gives teacher/);
  });
});
