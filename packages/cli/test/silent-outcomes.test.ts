import { writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { adapterFolder, baseModel, LiveServer } from "./support/live-server.js";

const rlModule = pathToFileURL(
  path.resolve(import.meta.dirname, "../../cookbook/dist/rl/index.js"),
).href;
let server: LiveServer;
let runs = 0;

beforeAll(async () => {
  server = await LiveServer.start();
});
afterAll(() => server.stop());

const nextRun = (): string => `runs/quiet-${runs++}`;

function write(name: string, content: string): string {
  const file = path.join(server.folder, name);
  writeFileSync(file, content);
  return file;
}

const rows = (answer: string, count = 8): string =>
  Array.from({ length: count }, (_, index) =>
    JSON.stringify({ prompt: `say ${index}`, completion: answer }),
  ).join("\n");

const sft = (file: string, folder: string, ...more: readonly string[]): string[] =>
  ["train", "sft", file, "--model", baseModel, "--rank", "4", "--lr", "1e-3"].concat(
    ["--max-steps", "2", "--output", folder],
    more,
  );

describe("train sft on a folder that holds a run", () => {
  it("refuses other data with --resume, and reports the difference and how to train anyway", async () => {
    const folder = nextRun();
    const data = write("changing.jsonl", rows("it is fine"));
    expect((await server.run(sft(data, folder))).code).toBe(0);
    write("changing.jsonl", rows("it is bad"));
    const { code, err } = await server.run(sft(data, folder, "--resume", "--seed", "77"));
    expect(code).toBe(1);
    expect(err).toMatch(
      /Error: \S+ holds a run with other settings: (seed was 0, is 77; data differs|data differs; seed was 0, is 77)\.\n/,
    );
    expect(err).toContain("--if-exists new");
    const kept = await server.json(sft(data, folder, "--if-exists", "new"));
    expect(kept).toMatchObject({ status: "completed", folder: expect.stringMatching(/-2$/) });
    const replaced = await server.json(sft(data, folder, "--if-exists", "delete"));
    expect(replaced).toMatchObject({ status: "completed", warnings: expect.any(Array) });
  });

  it("lists the choices when none is given", async () => {
    const folder = nextRun();
    const data = write("same.jsonl", rows("it is fine"));
    await server.run(sft(data, folder));
    const { code, err } = await server.run(sft(data, folder));
    expect(code).toBe(1);
    expect(err).toContain("holds a run already.\nResume it with --resume, start over with");
    const both = await server.run(sft(data, folder, "--resume", "--if-exists", "new"));
    expect(both.err).toBe("Error: --resume and --if-exists new exclude each other.\n");
  });

  it("reports that nothing was trained when the run had ended", async () => {
    const folder = nextRun();
    const data = write("ended.jsonl", rows("it is fine"));
    await server.run(sft(data, folder));
    const { out } = await server.run(sft(data, folder, "--resume"));
    expect(out).toContain("Nothing was trained: the run had already ended, and this is its model.");
  });
});

describe("train sft", () => {
  it("refuses to hold out every row", async () => {
    const data = write("few.jsonl", rows("it is fine", 4));
    const { code, err } = await server.run(sft(data, nextRun(), "--test-size", "4"));
    expect(code).toBe(1);
    expect(err).toBe("Error: testSize: 4 leaves no row to train on; the number of rows is 4\n");
  });

  it("warns about an absurd learning rate, while it trains and at the end", async () => {
    const data = write("fast.jsonl", rows("it is fine"));
    const { out, err } = await server.run([...sft(data, nextRun()), "--lr", "5"]);
    expect(err).toContain("warning: learning rate 5 is so high");
    expect(out).toContain("Warning: learning rate 5 is so high");
  });

  it("prints next steps that work through npx, when npx started it", async () => {
    const data = write("npx.jsonl", rows("it is fine"));
    const { out } = await server.run(sft(data, nextRun()), { env: { npm_command: "exec" } });
    expect(out).toMatch(/What next:\n {2}npx tinker-ts chat --model /);
  });

  it("plans as many epochs as needed, and reports them", async () => {
    const data = write("small.jsonl", rows("it is fine"));
    const line = ["train", "sft", data, "--model", baseModel, "--dry-run"];
    const { out } = await server.run(line);
    expect(out).toMatch(/Steps +30 steps of 4 rows, 15 epochs/);
  });
});

describe("a plan", () => {
  it("warns when one row is left to train on", async () => {
    const data = write("one-left.jsonl", rows("it is fine", 4));
    const line = ["train", "sft", data, "--model", baseModel, "--dry-run", "--test-size", "3"];
    const { err } = await server.run(line);
    expect(err).toContain("Warning: only 1 row is left to train on");
  });

  it("has the epochs that the steps are", async () => {
    const data = write("one-step.jsonl", rows("it is fine", 4));
    const line = ["train", "sft", data, "--model", baseModel, "--dry-run", "--max-steps", "1"];
    expect((await server.run(line)).out).toMatch(/Steps +1 step of 4 rows, 1 epoch\n/);
  });
});

describe("a model", () => {
  let folder: string;
  beforeAll(async () => {
    folder = nextRun();
    await server.run(sft(write("named.jsonl", rows("it is fine")), folder));
  });

  it("may be the folder of a run: its last checkpoint", async () => {
    const { code } = await server.run(["sample", "say", "-m", folder, "--max-tokens", "2"]);
    expect(code).toBe(0);
    const line = sft(path.join(server.folder, "named.jsonl"), nextRun(), "--load", folder);
    expect(await server.json(line)).toMatchObject({ status: "completed" });
  });

  it("that is a PEFT folder must be imported, and the error explains how", async () => {
    const { code, err } = await server.run(["chat", "-m", adapterFolder]);
    expect(code).toBe(1);
    expect(err).toMatch(/is a folder with a PEFT adapter.*\n.*'tinker-ts checkpoint import /);
  });

  it.each([
    ["a checkpoint", "tinker://x/weights/y"],
    ["the folder of a run", ""],
  ])("to train that is %s belongs to --load", async (what, given) => {
    const model = given || folder;
    const line = ["train", "sft", "named.jsonl", "--model", model, "--output", nextRun()];
    const { code, err } = await server.run(line);
    expect(code).toBe(1);
    expect(err).toContain(`--model: ${model} is ${what}, not a base model.`);
    expect(err).toContain(`--load ${model}`);
  });
});

describe("train rl", { timeout: 60_000 }, () => {
  const module = (name: string, grade: string, more = ""): string =>
    write(
      `${name}.mjs`,
      `import { problemGroup } from ${JSON.stringify(rlModule)};
       const grade = ${grade};
       export default ({ renderer }) => {
         const problem = { prompt: "Describe the weather.", grade };
         const batch = () => [problemGroup(problem, { renderer, size: 4, endsOnLength: false })];
         return { dataset: { length: 3, batch }, maxTokens: 8, learningRate: 1e-3, loraRank: 4, ${more} };
       };`,
    );
  const line = (file: string): string[] => [
    "train",
    "rl",
    file,
    "--model",
    baseModel,
    "--output",
    nextRun(),
  ];

  it("shows the first error of a grader with its stack, in the preview", async () => {
    const file = module("throws", `() => { throw new RangeError("no such answer"); }`);
    const { code, err } = await server.run(line(file));
    expect(code).toBe(1);
    expect(err).toContain("Error: An episode failed: no such answer");
    expect(err).toMatch(/at .*throws\.mjs/);
    expect(err).not.toContain("Unexpected");
  });

  it.each([
    ["undefined", "() => {}", "grade: must be a finite number, not undefined"],
    ["text", `() => "good"`, 'grade: must be a finite number, not the text "good"'],
  ])("names a reward that is %s", async (name, grade, message) => {
    const { code, err } = await server.run(line(module(name, grade)));
    expect(code).toBe(1);
    expect(err).toContain(message);
  });

  it("ends with an error when every episode fails after the preview", async () => {
    const grade = `((calls) => () => { if (calls++ >= 4) throw new Error("quota"); return calls; })(0)`;
    const { code, err } = await server.run(line(module("later", grade)));
    expect(code).toBe(1);
    expect(err).toMatch(/warning: an episode failed: Error: quota\n +at /);
    expect(err).toMatch(/Error: The run was ended because every episode of 3 steps/);
  });

  it("warns about equal rewards in the preview, while it trains and at the end", async () => {
    const { out, err, code } = await server.run(line(module("equal", "() => 1")));
    expect(code).toBe(0);
    expect(out).toMatch(/Warning: all rewards of this group are \S+; a group of equal rewards/);
    expect(err).toMatch(/warning: step 0: the rewards within the group were equal/);
    expect(out).toContain("Warning: nothing was learned: 3 of 3 groups had equal rewards");
    const json = await server.json(line(module("equal", "() => 1")));
    expect(JSON.stringify(json["warnings"])).toContain("nothing was learned");
  });
});
