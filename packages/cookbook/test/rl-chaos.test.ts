import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  groupOf,
  toTrainingDatum,
  train,
  type EnvironmentGroup,
  type PolicyDatum,
  type RlMode,
  type RlTrainOptions,
} from "@tinker-ts/cookbook/rl";
import { ServiceClient } from "tinker-ts";
import { readRunFolder } from "tinker-ts/run-log";
import { afterEach, describe, expect, it } from "vitest";
import { ServerProcess } from "../../server/test/support/server-process.js";
import { hashOfWeights, tinyModel } from "./support/local-service.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] !== undefined;
const kills = 10;
const steps = 12;
const groupsPerStep = 3;
const episodesPerGroup = 2;

const cleanUps: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

/** Waits between attempts, twenty times shorter: the faults are many and the test must be short. */
const hurriedClock = {
  now: () => performance.now(),
  wallTime: () => Date.now(),
  schedule(durationMs: number, callback: () => void) {
    const timer = setTimeout(callback, durationMs > 10_000 ? durationMs : durationMs / 20);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** A server process with a client, and a folder for runs. */
class Place {
  readonly folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-rl-chaos-"));
  readonly server = new ServerProcess({
    dataDir: path.join(this.folder, "data"),
    models: { tiny: tinyModel },
    logLevel: "error",
    // Small enough that states are written and journals cut all the time.
    limits: { maxJournalBytes: 20_000 },
  });
  service!: ServiceClient;

  static async open(): Promise<Place> {
    const place = new Place();
    cleanUps.push(async () => {
      await place.service?.close();
      await place.server.kill();
      rmSync(place.folder, { recursive: true, force: true });
    });
    await place.server.start();
    place.service = new ServiceClient({
      baseUrl: `http://127.0.0.1:${place.server.port}`,
      apiKey: "tml-chaos-test",
      telemetry: false,
      clock: hurriedClock,
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    });
    return place;
  }
}

/** Kills the server while episodes are played: at evenly spaced turns, regardless of other work. */
class Chaos {
  readonly #server: ServerProcess;
  readonly #every: number;
  #turns = 0;
  #restarting: Promise<void> = Promise.resolve();
  kills = 0;

  constructor(server: ServerProcess, every: number) {
    this.#server = server;
    this.#every = every;
  }

  turn(): void {
    this.#turns++;
    if (this.kills >= kills || this.#turns % this.#every !== 0) return;
    this.kills++;
    this.#restarting = this.#restarting
      .then(() => this.#server.kill())
      .then(() => this.#server.start());
  }

  settled(): Promise<void> {
    return this.#restarting;
  }
}

/** Rewards even tokens; two turns, so that an interruption loses something. */
const evenTokens = (tag: string, onTurn: () => void): EnvironmentGroup =>
  groupOf({
    size: episodesPerGroup,
    tags: [tag],
    sharesPrompt: true,
    make: () => {
      let prompt = [5, 8];
      return {
        start: () => ({ input: prompt }),
        step: ({ tokens }) => {
          onTurn();
          const reward = tokens.filter((token) => token % 2 === 0).length;
          const isFirst = prompt.length === 2;
          prompt = [...prompt, ...tokens, 13];
          return isFirst ? { reward, next: { input: prompt } } : { reward };
        },
      };
    },
  });

/** Every update as it was submitted. */
type Updates = (readonly PolicyDatum[])[];

function options(
  place: Place,
  mode: RlMode,
  { updates = [], onTurn = () => {} }: { updates?: Updates; onTurn?: () => void } = {},
): RlTrainOptions {
  return {
    service: place.service,
    model: "tiny",
    folder: path.join(place.folder, "run"),
    dataset: {
      length: steps,
      batch: (index) =>
        Array.from({ length: groupsPerStep }, (_, at) => evenTokens(`${index}/${at}`, onTurn)),
    },
    maxTokens: 6,
    learningRate: 1e-2,
    loraRank: 4,
    seed: 3,
    saveEvery: 4,
    mode,
    adjusters: [
      (data) => {
        updates.push(data);
        return Promise.resolve({ data: [...data], metrics: {} });
      },
    ],
  };
}

const turnsOfRun = steps * groupsPerStep * episodesPerGroup * 2;
const timeout = 900_000;

describe.runIf(isFull)(
  `a server that is killed ${kills} times in the middle of a run`,
  { timeout },
  () => {
    it("changes no bit of a synchronous run", async () => {
      const calm = await Place.open();
      const wanted = await train(options(calm, { kind: "synchronous" }));
      const place = await Place.open();
      const chaos = new Chaos(place.server, Math.floor(turnsOfRun / (kills + 1)));
      const onTurn = (): void => chaos.turn();
      const result = await train(options(place, { kind: "synchronous" }, { onTurn }));
      await chaos.settled();
      expect(chaos.kills).toBe(kills);
      expect(result).toMatchObject({ status: "completed", step: steps });
      const weights = await hashOfWeights(place.service, result.checkpoint!.samplerPath);
      expect(weights).toBe(await hashOfWeights(calm.service, wanted.checkpoint!.samplerPath));
      const rewards = async (folder: string): Promise<unknown[]> =>
        (await readRunFolder(folder)).metrics.map(({ metrics }) => metrics["env/all/reward/total"]);
      expect(await rewards(result.folder)).toEqual(await rewards(wanted.folder));
    });

    it("does not stop an asynchronous run; every group is trained once and no update is repeated", async () => {
      const place = await Place.open();
      const updates: Updates = [];
      const chaos = new Chaos(place.server, Math.floor(turnsOfRun / (kills + 1)));
      const mode = {
        kind: "asynchronous",
        maxStepsOffPolicy: 2,
        groupsPerBatch: groupsPerStep,
      } as const;
      const run = options(place, mode, { updates, onTurn: () => chaos.turn() });
      const result = await train(run);
      await chaos.settled();
      expect(chaos.kills).toBe(kills);
      expect(result).toMatchObject({ status: "completed", step: steps });
      const { metrics } = await readRunFolder(result.folder);
      expect(metrics.map((row) => row.metrics["optim/updates"])).toEqual(
        Array.from({ length: steps }, () => 1),
      );

      // The same updates on a calm server: had one been made twice or lost, the weights would differ.
      const calm = await Place.open();
      const training = await calm.service.createLoraTrainingClient({
        baseModel: "tiny",
        rank: 4,
        seed: run.seed!,
      });
      for (const data of updates) {
        await training.forwardBackward(data.map(toTrainingDatum), "importance_sampling");
        const learningRate = run.learningRate;
        await training.optimStep({ learningRate, beta1: 0.9, beta2: 0.95, eps: 1e-8 });
      }
      const saved = await training.saveWeightsForSampler("final");
      expect(await hashOfWeights(place.service, result.checkpoint!.samplerPath)).toBe(
        await hashOfWeights(calm.service, saved.path),
      );
    });
  },
);
