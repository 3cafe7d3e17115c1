import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { nllEvaluator, type Evaluator } from "@tinker-ts/cookbook/evaluation";
import { train, type TrainOptions, type TrainResult } from "@tinker-ts/cookbook/supervised";
import { type ServiceClient, type TrainingClient } from "tinker-ts";
import { readRunFolder } from "tinker-ts/run-log";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countingData, LocalPlace, tinyModel } from "./support/local-service.js";

let place: LocalPlace;
let runs = 0;
const steps = 6;

beforeAll(() => {
  place = new LocalPlace();
});
afterAll(() => place.close());

function options(change: Partial<TrainOptions> = {}): TrainOptions {
  return {
    service: place.service,
    model: tinyModel,
    folder: place.file(`run-${runs++}`),
    data: countingData(3),
    numEpochs: 2,
    learningRate: 1e-2,
    loraRank: 4,
    ...change,
  };
}

const lossesOf = async (folder: string): Promise<unknown[]> =>
  (await readRunFolder(folder)).metrics
    .filter(({ metrics }) => "train_mean_nll" in metrics)
    .map(({ metrics }) => metrics["train_mean_nll"]);

/** Ends a run after some steps have been logged, as Ctrl-C would. */
async function interruptedAfter(step: number, given: TrainOptions): Promise<TrainResult> {
  const controller = new AbortController();
  return train({
    ...given,
    signal: controller.signal,
    onProgress: (progress) => progress.step >= step && controller.abort(),
  });
}

let calm: { readonly weights: string; readonly losses: unknown[] };
beforeAll(async () => {
  const given = options();
  const { checkpoint } = await train(given);
  const weights = await place.weightsOf(checkpoint!.samplerPath);
  calm = { weights, losses: await lossesOf(given.folder) };
}, 60_000);

describe("a run", () => {
  it("has the metrics of the bare calls", async () => {
    const data = countingData(3);
    const training = await place.service.createLoraTrainingClient({
      baseModel: tinyModel,
      rank: 4,
      seed: 0,
    });
    const losses: number[] = [];
    for (let step = 0; step < steps; step++) {
      const batch = data.batch(Math.floor(step / 3), step % 3);
      const adamParams = {
        learningRate: 1e-2 * (1 - step / steps),
        beta1: 0.9,
        beta2: 0.95,
        eps: 1e-8,
      };
      const { forwardBackward } = await training.trainStep(batch, "cross_entropy", { adamParams });
      // Every datum's weights add up to 1.
      losses.push(forwardBackward.metrics["loss:sum"]! / batch.length);
    }
    const { path } = await training.saveWeightsForSampler("bare");
    expect(await place.weightsOf(path)).toBe(calm.weights);
    for (const [step, loss] of losses.entries()) expect(calm.losses[step]).toBeCloseTo(loss, 5);
  });

  it("logs every step, and is complete with its final checkpoint", async () => {
    const given = options({
      saveEvery: 4,
      evaluators: [nllEvaluator(countingData(3).batch(9, 0))],
      evalEvery: 2,
    });
    const result = await train(given);
    expect(result).toMatchObject({ status: "completed", step: 6, totalSteps: 6 });
    const { metrics, checkpoints, config, status, timings } = await readRunFolder(given.folder);
    expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(metrics[1]?.metrics).toMatchObject({
      epoch: 0,
      progress: 2 / 6,
      num_sequences: 2,
      num_tokens: 14,
      num_loss_tokens: 10, // and not 2, the sum of the weights
    });
    expect(metrics[1]?.metrics["learning_rate"]).toBeCloseTo(1e-2 * (1 - 1 / 6));
    for (const key of [
      "train_mean_nll",
      "train_token_nll",
      "train_mean_bpb",
      "time/total",
      "time/step",
      "grad_norm:mean",
    ]) {
      expect(metrics[1]?.metrics[key], key).toBeTypeOf("number");
    }
    expect(metrics.map(({ metrics: values }) => "test/nll" in values)).toEqual([
      true,
      false,
      true,
      false,
      true,
      false,
      true,
    ]);
    expect(metrics[6]?.metrics["test/nll"]).toBe(result.evaluation["test/nll"]);
    expect(checkpoints.map(({ name, epoch, batch, final }) => [name, epoch, batch, final])).toEqual(
      [
        ["000004", 1, 1, undefined],
        ["final", 2, 0, true],
      ],
    );
    expect(checkpoints.every(({ statePath, samplerPath }) => statePath && samplerPath)).toBe(true);
    expect(config).toMatchObject({
      model_name: tinyModel,
      lora_rank: 4,
      num_epochs: 2,
      learning_rate: 1e-2,
    });
    expect(status).toBe("completed");
    expect(timings).toHaveLength(6);
    expect(result.checkpoint).toEqual(checkpoints.at(-1));
  });

  it("evaluates the weights before a step, with one snapshot for all samplers", async () => {
    const samplers = new Set<string>();
    const seen: number[] = [];
    const sampling = (name: string): Evaluator => ({
      name,
      async evaluate({ sampler, step }) {
        samplers.add((await sampler()).samplingSessionId);
        seen.push(step);
        return { [`${name}/x`]: step };
      },
    });
    await train(
      options({
        evaluators: [sampling("a"), sampling("b")],
        evalEvery: 4,
        infrequentEvaluators: [sampling("c")],
        infrequentEvalEvery: 0,
      }),
    );
    expect(seen).toEqual([0, 0, 4, 4, 6, 6]);
    expect(samplers.size).toBe(3);
  });

  it("reports to progress and other sinks", async () => {
    const logged: number[] = [];
    const kinds = new Set<string>();
    await train(
      options({
        onProgress: ({ step }) => logged.push(step),
        sinks: [{ log: ({ kind }) => kinds.add(kind) }],
      }),
    );
    expect(logged).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect([...kinds].toSorted()).toEqual([
      "checkpoint",
      "close",
      "metrics",
      "open",
      "spans",
      "text",
      "watch",
    ]);
  });

  it("applies warm-up and schedule to its real number of steps", async () => {
    const given = options({ maxSteps: 4, warmupSteps: 2, lrSchedule: "cosine" });
    await train(given);
    const rates = (await readRunFolder(given.folder)).metrics.map(
      ({ metrics }) => metrics["learning_rate"] as number,
    );
    expect(rates.map((rate) => rate / 1e-2)).toEqual(
      [0.5, 1, 1, 0.5].map((share) => expect.closeTo(share, 6)),
    );
  });
});

describe("interrupted = uninterrupted", () => {
  it.each([0, 1, 3])("with %i steps submitted ahead, after any step", async (submitAhead) => {
    for (const stop of [0, 1, 2]) {
      const given = options({ submitAhead, saveEvery: 0 });
      const first = await interruptedAfter(stop, given);
      expect(first.status).toBe("interrupted");
      expect(first.checkpoint).toMatchObject({
        batch: first.step % 3,
        epoch: Math.floor(first.step / 3),
      });
      const second = await train(given);
      expect(second.status).toBe("completed");
      expect(await lossesOf(given.folder)).toEqual(calm.losses);
      expect(await place.weightsOf(second.checkpoint!.samplerPath)).toBe(calm.weights);
    }
  });

  it("when the process is killed at any time", async () => {
    const folder = place.file("killed");
    const given = { batches: 3, numEpochs: 2, learningRate: 1e-2, loraRank: 4, saveEvery: 2 };
    await killedAfter(1, folder, given);
    await killedAfter(4, folder, given, () => hasWholeRow(join(folder, "checkpoints.jsonl")));
    const lines = await linesOf(startProgram(folder, given));
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({
      status: "completed",
      weights: calm.weights,
    });
    const { metrics, attempts } = await readRunFolder(folder);
    expect(attempts).toBe(3);
    expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await lossesOf(folder)).toEqual(calm.losses);
    expect(lines[0]).not.toBe("step 0");
  }, 60_000);

  /** A file exists before its first row, and a kill between the two leaves nothing to resume from. */
  function hasWholeRow(file: string): boolean {
    return existsSync(file) && readFileSync(file, "utf8").includes("\n");
  }

  /** The run in another process, with its own engine. */
  function startProgram(folder: string, given: object): ChildProcessByStdio<null, Readable, null> {
    const program = fileURLToPath(new URL("support/train-program.mjs", import.meta.url));
    const env = { ...process.env, TINKER_TS_DATA_DIR: place.file("killed-data") };
    const args = [program, tinyModel, folder, JSON.stringify(given)];
    return spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  }

  async function linesOf(child: ChildProcessByStdio<null, Readable, null>): Promise<string[]> {
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) lines.push(line);
    return lines;
  }

  /** Kills it after a step, or once a condition holds after it. */
  async function killedAfter(
    step: number,
    folder: string,
    given: object,
    isTime = (): boolean => true,
  ): Promise<void> {
    const child = startProgram(folder, given);
    const ended = once(child, "exit");
    for await (const line of createInterface({ input: child.stdout })) {
      if (Number(/^step (\d+)$/.exec(line)?.[1] ?? -1) >= step && isTime()) child.kill("SIGKILL");
    }
    expect(await ended).toEqual([null, "SIGKILL"]);
  }
});

describe("resuming", () => {
  it("a finished run does not change", async () => {
    const given = options({ maxSteps: 2 });
    await train(given);
    const again = await train(given);
    expect(again).toMatchObject({ status: "unchanged", step: 2 });
    expect((await readRunFolder(given.folder)).checkpoints.map(({ name }) => name)).toEqual([
      "final",
    ]);
  });

  it("a run that maxSteps had cut keeps its state, and continues with more steps", async () => {
    const given = options({ lrSchedule: "constant" });
    const whole = await train(given);
    const cut = options({ lrSchedule: "constant" });
    const first = await train({ ...cut, maxSteps: 2 });
    expect(first.checkpoint).toMatchObject({ epoch: 0, batch: 2, final: true });
    const second = await train(cut);
    expect(second).toMatchObject({ status: "completed", step: 6 });
    expect(await place.weightsOf(second.checkpoint!.samplerPath)).toBe(
      await place.weightsOf(whole.checkpoint!.samplerPath),
    );
  });

  it("falls back to the previous row when the last checkpoint is gone", async () => {
    const given = options({ saveEvery: 2 });
    await interruptedAfter(5, given);
    const { checkpoints } = await readRunFolder(given.folder);
    await place.service
      .createRestClient()
      .deleteCheckpointFromTinkerPath(checkpoints.at(-1)!.statePath!);
    const result = await train(given);
    expect(result.status).toBe("completed");
    expect(readFileSync(`${given.folder}/logs.log`, "utf8")).toContain(
      "no longer exists; trying an earlier one",
    );
    expect(await place.weightsOf(result.checkpoint!.samplerPath)).toBe(calm.weights);
  });

  it("is refused when none of its checkpoints exists: it may be the wrong server", async () => {
    const given = options({ maxSteps: 1 });
    const { checkpoint } = await train(given);
    const rest = place.service.createRestClient();
    await rest.deleteCheckpointFromTinkerPath(checkpoint!.statePath!);
    await expect(train(given)).rejects.toThrow("none of the run's checkpoints");
  });

  it("is refused with another model or rank, which the error names", async () => {
    const given = options({ maxSteps: 2 });
    await train(given);
    await expect(train({ ...given, loraRank: 8 })).rejects.toThrow(
      "holds a run with other settings: lora_rank was 4, is 8",
    );
    expect(await train(given)).toMatchObject({ status: "unchanged" });
  });

  it("weights of another run start with a fresh optimizer; the run's own checkpoint wins", async () => {
    const { checkpoint } = await train(options({ maxSteps: 3 }));
    const given = options({ loadCheckpointPath: checkpoint!.statePath!, maxSteps: 2 });
    const first = await interruptedAfter(1, given);
    expect((await lossesOf(given.folder))[0]).not.toBe(calm.losses[0]);
    const second = await train(given);
    expect(second.step).toBe(2);
    expect(first.step).toBeGreaterThan(0);
    expect(await lossesOf(given.folder)).toHaveLength(2);
  });
});

describe("checkpoints", () => {
  it("rolling ones replace each other, are replaced by periodic ones and are deleted at the end", async () => {
    const given = options({
      saveEvery: 4,
      rollingSaveEvery: 2,
      data: countingData(9),
      numEpochs: 1,
      submitAhead: 0,
    });
    await train(given);
    const { checkpoints } = await readRunFolder(given.folder);
    expect(checkpoints.map(({ name, extra }) => [name, extra?.["rolling"]])).toEqual([
      ["000002", true],
      ["000004", undefined],
      ["000006", true],
      ["000008", undefined],
      ["final", undefined],
    ]);
    const rest = place.service.createRestClient();
    const runId = checkpoints[0]!.statePath!.split("/")[2]!;
    const left = (await rest.listCheckpoints(runId)).checkpoints.map(
      ({ checkpointId }) => checkpointId,
    );
    expect(left.filter((id) => /00000[26]/.test(id))).toEqual([]);
    expect(left).toContain("weights/000004");
  });

  it("are saved by tokens, counted on after a resume, and one per step at most", async () => {
    const given = options({
      saveEvery: 0,
      saveEveryTokens: 28,
      rollingSaveEvery: 2,
      submitAhead: 0,
    });
    await interruptedAfter(3, given);
    await train(given);
    const { checkpoints } = await readRunFolder(given.folder);
    const names = checkpoints.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
    expect(names).toContain("000002");
    expect(checkpoints.find(({ name }) => name === "000002")?.extra).toMatchObject({
      elapsed_tokens: 28,
      tokens_at_periodic: 28,
    });
  });

  it("that fail end the run, unless they are optional", async () => {
    const failing = (service: ServiceClient): ServiceClient =>
      withSaves(service, () => Promise.reject(new Error("disk is full")));
    const given = options({ service: failing(place.service), saveEvery: 2 });
    await expect(train(given)).rejects.toThrow("disk is full");
    const patient = options({
      service: withSaves(place.service, failingUntilFinal),
      saveEvery: 2,
      asyncPeriodicSaves: true,
    });
    expect(await train(patient)).toMatchObject({ status: "completed" });
    expect(readFileSync(`${patient.folder}/logs.log`, "utf8")).toContain(
      "checkpoint 000002 failed: disk is full",
    );
  });
});

it("a run ends early when an evaluation does not improve, and stays ended", async () => {
  let calls = 0;
  const flat: Evaluator = {
    name: "flat",
    evaluate: () => Promise.resolve({ "test/nll": calls++ === 0 ? 1 : 2 }),
  };
  const given = options({
    data: countingData(20),
    numEpochs: 1,
    evaluators: [flat],
    evalEvery: 2,
    earlyStop: { patience: 2 },
  });
  const result = await train(given);
  expect(result.status).toBe("stopped_early");
  expect(result.step).toBeLessThan(8);
  expect(await train(given)).toMatchObject({ status: "unchanged", step: result.step });
});

it.each([
  [{ loraRank: 0 }, "loraRank: must be an integer of at least 1, not 0"],
  [{ numEpochs: 1.5 }, "numEpochs"],
  [{ learningRate: -1 }, "learningRate"],
  [{ learningRate: "auto" as const, model: "acme/x" }, "family without a known learning rate"],
])("%j is refused before anything is made", async (change, message) => {
  const given = options(change);
  await expect(train(given)).rejects.toThrow(message);
});

/** A service with another way to save; everything else is real. */
function withSaves(
  service: ServiceClient,
  save: (training: TrainingClient, name: string) => PromiseLike<never> | undefined,
): ServiceClient {
  const wrap = (training: TrainingClient): TrainingClient =>
    new Proxy(training, {
      get(target, key) {
        const value = Reflect.get(target, key, target) as unknown;
        if (key === "saveState") {
          return (name: string, given: object) =>
            save(target, name) ?? target.saveState(name, given);
        }
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
  return new Proxy(service, {
    get(target, key) {
      const value = Reflect.get(target, key, target) as unknown;
      if (key === "createLoraTrainingClient") {
        return async (given: never) => wrap(await target.createLoraTrainingClient(given));
      }
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

function failingUntilFinal(_: TrainingClient, name: string): Promise<never> | undefined {
  return name === "final" ? undefined : Promise.reject(new Error("disk is full"));
}
