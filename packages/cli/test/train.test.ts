import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { readRunFolder } from "tinker-ts/run-log";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { baseModel, LiveServer } from "./support/live-server.js";
import { PtyProcess } from "./support/pty-process.js";
import { runProcess } from "./support/run-process.js";

let server: LiveServer;
let data: string;
let runs = 0;

const row = (index: number): string =>
  JSON.stringify({ prompt: `say ${index % 7}`, completion: `it is ${index % 7}` });

beforeAll(async () => {
  server = await LiveServer.start();
  data = write("data.jsonl", Array.from({ length: 80 }, (_, index) => row(index)).join("\n"));
  write("held-out.jsonl", [row(3), row(5)].join("\n"));
});
afterAll(() => server.stop());

function write(name: string, content: string | Uint8Array): string {
  const file = path.join(server.folder, name);
  writeFileSync(file, content);
  return file;
}

const settings = ["--model", baseModel, "--lr", "1e-2", "--rank", "4", "--batch-size", "2"];
const nextRun = (): string => `runs/${runs++}`;
const lossesOf = async (folder: string): Promise<unknown[]> =>
  (await readRunFolder(path.join(server.folder, folder))).metrics.flatMap(
    ({ metrics }) => metrics["train_mean_nll"] ?? [],
  );

describe("train sft", () => {
  it("shows the plan and trains nothing with --dry-run", async () => {
    const { code, out } = await server.run(
      ["train", "sft", "data.jsonl", ...settings, "--eval", "held-out.jsonl", "--dry-run"],
      { columns: 120 },
    );
    expect(code).toBe(0);
    expect(out).toMatch(/say \d/);
    expect(out).toContain("\u001B[32m it is");
    expect(out).toMatch(/Data +80 rows, [\d,]+ tokens/);
    expect(out).toMatch(/Steps +40 steps of 2 rows, 1 epoch/);
    expect(out).toMatch(/Held out +2 rows/);
    const { attempts } = await readRunFolder(path.join(server.folder, "runs/data"));
    expect(attempts).toBe(0);
    const plan = await server.json(["train", "sft", "data.jsonl", ...settings, "--dry-run"]);
    expect(plan).toMatchObject({ rows: 80, steps: 40, batch_size: 2, learning_rate: 0.01 });
  });

  it("trains, prints progress and next steps", async () => {
    const folder = nextRun();
    const { code, out, err } = await server.run(
      ["train", "sft", "data.jsonl", ...settings, "--eval", "held-out.jsonl"].concat([
        "--max-steps",
        "4",
        "--output",
        folder,
        "--base-url",
        server.url,
      ]),
    );
    expect(code).toBe(0);
    expect(err).toMatch(/step 4\/4 {2}train_mean_nll \d/);
    expect(out).toMatch(/before: .*\n {2}now: /);
    expect(out).toMatch(/Loss on held-out data: \d/);
    const next = /tinker-ts eval (\S+) --model (\S+) --base-url/.exec(out);
    expect(next?.[1]).toBe("held-out.jsonl");
    const evaluated = await server.json(["eval", "held-out.jsonl", "--model", next![2]!]);
    expect(evaluated).toMatchObject({ num_examples: 2, num_errors: 0 });
  });

  it("resumes a run only on request, and then exactly", async () => {
    const folder = nextRun();
    const line = [
      "train",
      "sft",
      "data.jsonl",
      ...settings,
      "--max-steps",
      "3",
      "--output",
      folder,
    ];
    const first = await server.json<{ status: string }>(line);
    expect(first.status).toBe("completed");
    const refused = await server.run(line);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toContain("holds a run already.\nResume it with --resume");
    const again = await server.json<{ status: string }>([...line, "--resume"]);
    expect(again.status).toBe("unchanged");
  });

  it.each<[string, () => readonly string[], RegExp]>([
    ["a file that is not there", () => ["no.jsonl"], /^Error: \S*no\.jsonl: no such file\n$/],
    [
      "an empty file",
      () => [write("empty.jsonl", "")],
      /^Error: \S*empty\.jsonl: no conversations found\n$/,
    ],
    [
      "a missing field",
      () => [write("field.jsonl", `${row(1)}\n{"messages":[{"role":"user"}]}`)],
      /^Error: field\.jsonl:2: messages\[0\]\.content: expected text, got nothing\n$/,
    ],
    [
      "no token to learn",
      () => [write("untrained.jsonl", '{"messages":[{"role":"user","content":"x"}]}')],
      /^Error: untrained\.jsonl:1: no answer to learn: no message has the role "assistant", only user\n$/,
    ],
    [
      "a row that is too long",
      () => [write("long.jsonl", JSON.stringify({ prompt: "a ".repeat(3000), completion: "b" }))],
      /^Error: long\.jsonl:1: \d+ tokens exceed the model's context length \(\d+\); set maxLength to cut the row\n$/,
    ],
    [
      "another encoding",
      () => [write("utf16.jsonl", Buffer.from(`\uFEFF${row(1)}`, "utf16le"))],
      /^Error: utf16\.jsonl: UTF-16 text; save the file as UTF-8\n$/,
    ],
    [
      "an unknown renderer",
      () => [data, "--renderer", "nope"],
      /^Error: There is no renderer "nope"\. There are [^\n]+\n$/,
    ],
    [
      "a model without a known rate",
      () => [data, "--lr", "auto"],
      /^Error: [^\n]+choose a learning rate\n$/,
    ],
    [
      "a rate that is none",
      () => [data, "--lr", "fast"],
      /^Error: --lr: 'fast' is not auto or a positive number\.\n$/,
    ],
    [
      "a batch that is too large",
      () => [data, "--batch-size", "81"],
      /^Error: batchSize: 81 exceeds the number of rows \(80\)\n$/,
    ],
  ])("%s is one clear line before anything starts", async (_, args, message) => {
    const folder = nextRun();
    const { code, out, err } = await server.run([
      "train",
      "sft",
      ...settings,
      ...args(),
      "--output",
      folder,
    ]);
    expect(err).toMatch(message);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect((await readRunFolder(path.join(server.folder, folder))).attempts).toBe(0);
  });

  it("skips bad rows on request, and names them", async () => {
    write("some.jsonl", `${row(1)}\n{}\n${row(2)}\n`);
    const { code, err } = await server.run([
      "train",
      "sft",
      "some.jsonl",
      "--skip-bad-rows",
      ...settings,
      "--output",
      nextRun(),
    ]);
    expect(err).toContain("Skipped some.jsonl:2: unknown row format");
    expect(code).toBe(0);
  });
});

it("a run that is stopped by Ctrl-C in a terminal resumes through a pipe, with the same losses", async () => {
  const env = { TINKER_BASE_URL: server.url, TINKER_API_KEY: "tml-test" };
  const calm = nextRun();
  const line = (folder: string): string[] => [
    "train",
    "sft",
    data,
    ...settings,
    "--epochs",
    "2",
    "--output",
    path.join(server.folder, folder),
  ];
  expect((await server.run(line(calm))).code).toBe(0);

  const folder = nextRun();
  const terminal = new PtyProcess(line(folder), { cwd: server.folder, env });
  await terminal.sees(/step 5\/80/);
  terminal.types("\u0003");
  expect(await terminal.finished).toBe(130);
  expect(terminal.screen).toContain("\u001B[0J"); // the table was drawn again and again
  expect(terminal.screen).toMatch(
    /Stopped after step \d+ of 80; everything is saved\. Resume with:/,
  );
  const resume = /tinker-ts (train sft [^\r\n]+--resume)/.exec(terminal.screen)![1]!;

  const piped = await runProcess(resume.split(" "), { env });
  expect(piped.code).toBe(0);
  expect(`${piped.out}${piped.err}`).not.toContain("\u001B");
  expect(piped.err).toMatch(/step 80\/80/);
  expect(await lossesOf(folder)).toEqual(await lossesOf(calm));
  const { checkpoints } = await readRunFolder(path.join(server.folder, folder));
  expect(checkpoints.at(-1)).toMatchObject({ name: "final", final: true, epoch: 2, batch: 0 });
}, 120_000);

describe("eval", () => {
  it("prints a score with an interval as a table", async () => {
    const { code, out } = await server.run([
      "eval",
      "held-out.jsonl",
      "--model",
      baseModel,
      "--max-tokens",
      "4",
    ]);
    expect(code).toBe(0);
    expect(out).toMatch(/Score +\d+\.\d % \(95 %: /);
  });

  it("stores answers in a folder and reuses them", async () => {
    const line = [
      "eval",
      "held-out.jsonl",
      "--model",
      baseModel,
      "--max-tokens",
      "4",
      "--output",
      "evals",
    ];
    await server.json(line);
    const before = readFileSync(
      path.join(server.folder, "evals/held-out/trajectories.jsonl"),
      "utf8",
    );
    await server.json(line);
    expect(
      readFileSync(path.join(server.folder, "evals/held-out/trajectories.jsonl"), "utf8"),
    ).toBe(before);
  });

  it("compares choices by probability, and judges by schema, number and pattern", async () => {
    write("choice.jsonl", '{"question": "Colour?", "choices": ["red", "blue"], "answer": "red"}');
    const choice = await server.json([
      "eval",
      "choice.jsonl",
      "--model",
      baseModel,
      "--grader",
      "choice",
    ]);
    expect(choice).toMatchObject({ num_examples: 1, num_errors: 0, num_truncated: 0 });
    write("schema.json", '{"type": "object"}');
    for (const grader of [
      ["json", "--schema", "schema.json"],
      ["numeric"],
      ["regex", "--pattern", "x"],
      ["includes"],
      ["judge", "--judge", baseModel],
    ]) {
      const line = [
        "eval",
        "held-out.jsonl",
        "--model",
        baseModel,
        "--max-tokens",
        "2",
        "--grader",
        ...grader,
      ];
      expect(await server.json(line)).toMatchObject({ num_examples: 2, num_errors: 0 });
    }
    const refused = await server.run([
      "eval",
      "held-out.jsonl",
      "--model",
      baseModel,
      "--grader",
      "json",
    ]);
    expect(refused.err).toBe("Error: --grader json needs --schema FILE.\n");
  });
});
