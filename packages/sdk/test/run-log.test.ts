import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import path from "node:path";
import { metrics as otelMetrics } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import fc from "fast-check";
import { ArgumentError } from "tinker-ts";
import {
  consoleSink,
  fileNameOf,
  openTelemetrySink,
  readJsonLines,
  readRunFolder,
  RunLog,
  StepSpans,
  type RunRecord,
} from "tinker-ts/run-log";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let folder: string;
const file = (name: string): string => path.join(folder, name);
const read = (name: string): string => readFileSync(file(name), "utf8");

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-run-log-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the files of a run", () => {
  it("have a line of JSON per call, read as one entry per step", async () => {
    const run = await RunLog.open({ folder, config: { learningRate: 1e-4 } });
    run.log({ train_mean_nll: 2, note: "warm" }, { step: 0 });
    run.log({ "test/nll": 3 }, { step: 0 });
    run.log({ train_mean_nll: 1 }, { step: 1 });
    await run.close();
    expect(read("metrics.jsonl").trim().split("\n")).toHaveLength(3);
    const { metrics, config, attempts } = await readRunFolder(folder);
    expect(metrics.map(({ step, metrics: values }) => [step, values])).toEqual([
      [0, { train_mean_nll: 2, note: "warm", "test/nll": 3 }],
      [1, { train_mean_nll: 1 }],
    ]);
    expect(config).toEqual({ learningRate: 1e-4 });
    expect(attempts).toBe(1);
  });

  it("are valid JSON for non-finite numbers, and keep their kind", async () => {
    const run = await RunLog.open({ folder });
    run.log({ loss: Number.NaN, ratio: Infinity, low: -Infinity, fine: 1 }, { step: 0 });
    await run.close();
    const line = JSON.parse(read("metrics.jsonl")) as Record<string, unknown>;
    expect(line).toMatchObject({
      loss: null,
      _non_finite: { loss: "NaN", ratio: "Infinity", low: "-Infinity" },
    });
    const { metrics } = await readRunFolder(folder);
    expect(metrics[0]?.metrics).toEqual({
      loss: Number.NaN,
      ratio: Infinity,
      low: -Infinity,
      fine: 1,
    });
  });

  it("round-trip all names and values", async () => {
    const name = fc
      .string({ minLength: 1 })
      .filter((key) => !key.startsWith("_") && key !== "step");
    const value = fc.oneof(
      fc.double(),
      fc.boolean(),
      fc.string().filter((text) => !/^(NaN|-?Infinity)$/.test(text)),
    );
    await fc.assert(
      fc.asyncProperty(fc.dictionary(name, value, { noNullPrototype: true }), async (values) => {
        const run = await RunLog.open({ folder, ifExists: "delete" });
        run.log(values, { step: 4 });
        await run.close();
        const { metrics } = await readRunFolder(folder);
        // JSON has no negative zero.
        const plain = Object.entries(values).map(([key, entry]) => [key, entry === 0 ? 0 : entry]);
        expect(new Map(Object.entries(metrics[0]!.metrics))).toEqual(new Map(plain as []));
      }),
      { numRuns: 25 },
    );
  });

  it("have functions by name, classes by their fields and large integers as text in config.json", async () => {
    function schedule(): number {
      return 1;
    }
    const run = await RunLog.open({ folder, config: { schedule, seed: 5n, limit: Infinity } });
    await run.close();
    expect(JSON.parse(read("config.json"))).toEqual({
      schedule: "schedule",
      seed: "5",
      limit: "Infinity",
    });
  });

  it("are on the disk when the log is closed, including pending writes", async () => {
    const run = await RunLog.open({ folder });
    const name = "x".repeat(5_000_000);
    run.logSpans(1, [{ name, startSeconds: 0, endSeconds: 1 }]);
    const written = run.flush();
    await run.close();
    expect(read("timing_spans.jsonl")).toMatch(/^\{[^]*\}\n$/);
    await written;
  });

  it("have spans, text and files of iterations in the Python cookbook's layout", async () => {
    const run = await RunLog.open({ folder });
    run.logSpans(2, [{ name: "step", startSeconds: 0, endSeconds: 1.5 }]);
    run.text("rate halved", "warning");
    run.logIteration(7, "train_rollout_summaries.jsonl", [{ group_idx: 0 }, { group_idx: 1 }]);
    await run.writeIteration(7, `eval_${fileNameOf("a/b c")}.html`, "<p>");
    await run.close();
    expect(JSON.parse(read("timing_spans.jsonl"))).toEqual({
      step: 2,
      spans: [{ name: "step", duration: 1.5, wall_start: 0, wall_end: 1.5 }],
    });
    expect(read("logs.log")).toContain("[WARNING] rate halved\n");
    expect(read("iteration_000007/train_rollout_summaries.jsonl").split("\n")).toHaveLength(3);
    expect(existsSync(file("iteration_000007/eval_a_b_c.html"))).toBe(true);
    expect((await readRunFolder(folder)).timings[0]?.spans[0]?.endSeconds).toBe(1.5);
  });

  it("have a checkpoint and everything logged before it on the disk when `checkpoint` resolves", async () => {
    const run = await RunLog.open({ folder });
    run.log({ loss: 1 }, { step: 3 });
    await run.checkpoint({
      name: "000004",
      batch: 4,
      epoch: 0,
      statePath: "tinker://a/weights/000004",
      extra: { elapsed_tokens: 9 },
    });
    expect(read("metrics.jsonl")).toContain('"step":3');
    expect(JSON.parse(read("checkpoints.jsonl"))).toEqual({
      name: "000004",
      batch: 4,
      epoch: 0,
      state_path: "tinker://a/weights/000004",
      elapsed_tokens: 9,
    });
    await run.close();
  });
});

describe("a folder that holds a run", () => {
  it("is continued after a crash in the middle of a line", async () => {
    writeFileSync(file("metrics.jsonl"), '{"step":0,"loss":2}\n{"step":1,"lo');
    writeFileSync(
      file("checkpoints.jsonl"),
      '\n{"name":"000001","batch":1,"state_path":"tinker://a/weights/1"}\n{"name":"0000',
    );
    const run = await RunLog.open({ folder });
    expect(run.attempt).toBe(2);
    expect(run.previous.checkpoints.map(({ name }) => name)).toEqual(["000001"]);
    run.log({ loss: 1 }, { step: 1 });
    await run.checkpoint({ name: "000002", batch: 2 });
    await run.close();
    const after = await readRunFolder(folder);
    expect(after.metrics.map(({ step, metrics }) => [step, metrics["loss"]])).toEqual([
      [0, 2],
      [1, 1],
    ]);
    expect(after.checkpoints.map(({ name }) => name)).toEqual(["000001", "000002"]);
    expect(after.problems).toEqual([
      "metrics.jsonl: skipped line 2, which is not JSON",
      "checkpoints.jsonl: skipped line 3, which is not JSON",
    ]);
  });

  it("shows the last attempt from its first step on, and keeps earlier ones apart", async () => {
    const first = await RunLog.open({ folder });
    for (const step of [0, 1, 2, 3]) first.log({ loss: 10 + step, extra: 1 }, { step });
    await first.close();
    const second = await RunLog.open({ folder });
    second.log({ loss: 22 }, { step: 2 });
    await second.close();
    const { metrics, abandoned, attempts } = await readRunFolder(folder);
    expect(metrics.map(({ step, metrics: values }) => [step, values])).toEqual([
      [0, { loss: 10, extra: 1 }],
      [1, { loss: 11, extra: 1 }],
      [2, { loss: 22 }],
    ]);
    expect(abandoned.map(({ step }) => step)).toEqual([2, 3]);
    expect(attempts).toBe(2);
  });

  it("keeps its settings until the run continues", async () => {
    await (await RunLog.open({ folder, config: { rank: 4 } })).close();
    await (await RunLog.open({ folder, config: { rank: 8 } })).close();
    expect(JSON.parse(read("config.json"))).toEqual({ rank: 4 });
    const run = await RunLog.open({ folder, config: { rank: 16 } });
    run.log({ loss: 1 }, { step: 0 });
    await run.close();
    expect(JSON.parse(read("config.json"))).toEqual({ rank: 16 });
  });

  it("can be refused or replaced; other files are not touched", async () => {
    writeFileSync(file("notes.txt"), "mine");
    const first = await RunLog.open({ folder, ifExists: "fail", config: {} });
    first.log({ loss: 1 }, { step: 0 });
    first.logIteration(0, "x.jsonl", [{ a: 1 }]);
    await first.close();
    await expect(RunLog.open({ folder, ifExists: "fail" })).rejects.toThrow("holds a run");
    const second = await RunLog.open({ folder, ifExists: "delete" });
    await second.close();
    expect(second.attempt).toBe(1);
    expect(existsSync(file("metrics.jsonl"))).toBe(false);
    expect(existsSync(file("iteration_000000"))).toBe(false);
    expect(read("notes.txt")).toBe("mine");
  });

  it("reads files of the Python cookbook", async () => {
    writeFileSync(file("config.json"), '{\n  "learning_rate": 0.0001,\n  "num_epochs": 1\n}');
    writeFileSync(
      file("metrics.jsonl"),
      '{"step": 0, "train_mean_nll": NaN, "text": "a NaN, \\"Infinity\\""}\n{"step": 0, "x": -Infinity}\n{"loss": 1}\n',
    );
    writeFileSync(
      file("checkpoints.jsonl"),
      '{"name": "final", "batch": 0, "epoch": 1, "final": true, "state_path": "tinker://r/weights/final", "loop_state": {"a": 1}}\n',
    );
    const run = await readRunFolder(folder);
    expect(run.metrics.map(({ metrics }) => metrics)).toEqual([
      { loss: 1 },
      { train_mean_nll: Number.NaN, text: 'a NaN, "Infinity"', x: -Infinity },
    ]);
    expect(run.checkpoints[0]).toMatchObject({
      statePath: "tinker://r/weights/final",
      extra: { loop_state: { a: 1 } },
    });
    expect(run.status).toBe("completed");
    expect(run.problems).toEqual([]);
  });

  it("can be followed as it grows, also with a partial line", async () => {
    writeFileSync(file("metrics.jsonl"), '{"step":0}\n{"st');
    const first = await readJsonLines(file("metrics.jsonl"));
    expect(first.lines).toEqual([{ step: 0 }]);
    appendFileSync(file("metrics.jsonl"), 'ep":1}\n');
    const second = await readJsonLines(file("metrics.jsonl"), first.nextByte);
    expect(second.lines).toEqual([{ step: 1 }]);
  });
});

describe("a folder that another process writes into", () => {
  const module = path.join(import.meta.dirname, "../dist/run-log/index.js");
  /** Opens the folder in another process, which then waits. */
  const startWriter = async () => {
    const code = `
      const { RunLog } = await import(${JSON.stringify(module)});
      const run = await RunLog.open({ folder: ${JSON.stringify(folder)} });
      run.log({ loss: 1 }, { step: 0 });
      await run.flush();
      console.log("open");
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    return child;
  };

  it("is refused with the id of the process, unchanged, until that process has ended", async () => {
    const child = await startWriter();
    try {
      const before = read("logs.log");
      for (const ifExists of ["resume", "delete"] as const) {
        const opening = RunLog.open({ folder, ifExists });
        await expect(opening).rejects.toThrow(ArgumentError);
        await expect(opening).rejects.toThrow(`process ${child.pid} writes`);
      }
      expect(read("logs.log")).toBe(before);
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    const run = await RunLog.open({ folder });
    expect(run.attempt).toBe(2);
    await run.close();
    expect(existsSync(file(".writer.json"))).toBe(false);
  });

  it("can be taken over from another machine, from a reused process id, and from a truncated lock", async () => {
    const pid = process.ppid;
    const startedAt =
      process.platform === "linux"
        ? readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1)!.split(" ")[19]
        : null;
    const notes = [
      JSON.stringify({ pid, host: "another", startedAt }),
      ...(process.platform === "linux"
        ? [JSON.stringify({ pid, host: hostname(), startedAt: "1" })]
        : []),
      '{"pid":',
    ];
    for (const note of notes) {
      writeFileSync(file(".writer.json"), note);
      await (await RunLog.open({ folder })).close();
    }
    expect(readdirSync(folder).toSorted()).toEqual(["logs.log"]);
  });

  it("may be opened twice by one process, and stays locked until both are closed", async () => {
    const first = await RunLog.open({ folder });
    const second = await RunLog.open({ folder });
    await first.close();
    expect(existsSync(file(".writer.json"))).toBe(true);
    await second.close();
    expect(existsSync(file(".writer.json"))).toBe(false);
  });
});

it("a folder that is not writable is an error at the start", async () => {
  writeFileSync(file("taken"), "");
  await expect(RunLog.open({ folder: file("taken/run"), config: {} })).rejects.toThrow();
  await expect(RunLog.open({ folder: "" })).rejects.toThrow("folder");
});

it("lines that cannot be written are counted and reported at the end, and nothing throws before", async () => {
  const run = await RunLog.open({ folder });
  rmSync(folder, { recursive: true });
  writeFileSync(folder, "a file stands where the folder was");
  run.log({ loss: 1 }, { step: 0 });
  await run.flush();
  expect(run.droppedLines).toBe(1);
  await expect(run.checkpoint({ name: "000001" })).rejects.toThrow();
  await expect(run.close()).rejects.toThrow("1 lines of the run's log could not be written");
});

describe("sinks", () => {
  it("receive everything in order; one that throws is dropped and reported", async () => {
    const received: RunRecord[] = [];
    const broken = {
      log: () => {
        throw new Error("sink is full");
      },
    };
    const run = await RunLog.open({
      folder,
      sinks: [broken, { log: (record) => received.push(record) }],
    });
    run.log({ loss: 1 }, { step: 0 });
    await run.checkpoint({ name: "000001" });
    await run.close();
    expect(received.map(({ kind }) => kind).filter((kind) => kind !== "text")).toEqual([
      "open",
      "metrics",
      "checkpoint",
      "close",
    ]);
    expect(read("logs.log").match(/sink is full/g)).toHaveLength(1);
  });

  it("the console redraws a bar, values and curves on a screen", async () => {
    let screen = "";
    const stream = { write: (text: string) => (screen += text), isTTY: true, columns: 60 };
    const run = await RunLog.open({ folder, sinks: [consoleSink({ stream, totalSteps: 4 })] });
    for (const step of [0, 1, 2, 3])
      run.log({ train_mean_nll: 4 - step, progress: (step + 1) / 4 }, { step });
    await run.close();
    expect(screen).toContain("\u001B[2A\u001B[0J");
    expect(screen).toMatch(/━{12}╌{12} {2}step 2\/4/);
    expect(screen).toMatch(/train_mean_nll +1\.000 +█▆▃▁\n$/);
  });

  it("the console writes plain lines into a log, not one per step", async () => {
    let log = "";
    const stream = { write: (text: string) => (log += text) };
    const run = await RunLog.open({ folder, sinks: [consoleSink({ stream, totalSteps: 200 })] });
    for (let step = 0; step < 200; step++) {
      run.log({ train_mean_nll: 1, ...(step === 101 && { "test/nll": 2 }) }, { step });
    }
    await run.close();
    const lines = log.trimEnd().split("\n");
    expect(lines.length).toBeLessThan(30);
    expect(log).not.toContain("\u001B");
    expect(
      lines.some((line) => line.includes("step 102/200") && line.includes("test/nll 2.000")),
    ).toBe(true);
    expect(lines.at(-1)).toContain("step 200/200");
  });

  it("OpenTelemetry gets a gauge per metric", async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 60_000 });
    const provider = new MeterProvider({ readers: [reader] });
    otelMetrics.setGlobalMeterProvider(provider);
    const run = await RunLog.open({ folder, sinks: [await openTelemetrySink({ run: "a" })] });
    run.log({ train_mean_nll: 1.5, note: "text" }, { step: 3 });
    await run.close();
    await provider.forceFlush();
    const seen = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
    expect(
      seen.map(({ descriptor: { name }, dataPoints }) => [
        name,
        dataPoints[0]?.value,
        dataPoints[0]?.attributes,
      ]),
    ).toEqual([["tinker.run.train_mean_nll", 1.5, { run: "a", step: 3 }]]);
    await provider.shutdown();
    otelMetrics.disable();
  });
});

it("spans that occur once are reported as their duration, others their total, count, mean and maximum", async () => {
  let now = 0;
  const spans = new StepSpans(() => now);
  const take = (name: string, ms: number) =>
    spans.span(name, () => {
      now += ms;
    });
  await take("data", 500);
  await take("eval", 1000);
  await take("eval", 3000);
  expect(spans.metrics()).toEqual({
    "time/data": 0.5,
    "time/eval:total": 4,
    "time/eval:count": 2,
    "time/eval:mean": 2,
    "time/eval:max": 3,
    "time/total": 4.5,
  });
});
