import { subscribe } from "node:diagnostics_channel";
import { Engine } from "@tinker-ts/engine";
import type { DatumLike } from "tinker-ts";
import { engineMs, withBareServer, type AskBare } from "./bare.js";
import type { BenchModel } from "./bench-model.js";
import { withServer, type BenchServer } from "./bench-server.js";
import { line, median, undisturbed } from "./measure.js";

const limitsMs = { forward_backward: 2.5, optim_step: 2.5, sample: 2 } as const;
const rounds = 200;
/** Rounds at the beginning that do not count: they compile the graphs of these shapes. */
const warmUps = 50;
/**
 * Rounds of tiny operations before all others: they open connections and let both processes compile what they
 * run. A training run has thousands of steps, and what runs a few times a step is compiled after hundreds: in one
 * run of 750 rounds optim_step took 2.4 ms more than alone in rounds 150 to 300 and 1.4 ms in 600 to 750,
 * forward_backward 3.8 and 2.8 ms.
 */
const tinyRounds = 1000;
/**
 * Rounds of one way before the next has its turn. A program that trains does one thing after the other in one
 * process; an engine of another one in between would leave none of its code and data in the processor's caches.
 */
const turnRounds = 10;
const tokens = { full: 32, tiny: 4 };
const sampling = { maxTokens: 16, temperature: 1, seed: 1 };
const adam = { learningRate: 1e-4 };

/** What an operation took, and what of that its engine; NaN where the answer does not say. */
interface Taken {
  readonly ms: number;
  readonly engineMs: number;
}

/**
 * What client and server add to the engine: the same operations by the engine alone, through a server that does
 * nothing but hand them on, and through ours, in turns, with one thread each, since threads of an idle engine go on
 * spinning for a moment. Engines of three processes differ by as much as is measured here where a machine is shared, so
 * it is also told what calls took outside their own engine, and what the engines took.
 */
export async function reportOverhead(model: BenchModel): Promise<void> {
  await withBareServer(model, (bare) =>
    withServer(model, { threads: 1 }, (server) => compare(model, bare, server)),
  );
}

async function compare(model: BenchModel, bare: AskBare, server: BenchServer): Promise<void> {
  const engine = await Engine.create({ threads: 1 });
  const base = await engine.loadModel(model.folder);
  const adapter = await base.createAdapter({ rank: 8 });
  const service = server.client();
  const training = await service.createLoraTrainingClient({ baseModel: "bench", rank: 8 });
  const sampler = await service.createSamplingClient({ baseModel: "bench" });
  const operationsOn = (size: keyof typeof tokens) => {
    const rows = Array.from({ length: size === "tiny" ? 1 : 4 }, (_, row) =>
      Int32Array.from({ length: tokens[size] }, (_item, i) => (i * 7 + row) % model.vocabSize),
    );
    const weights = new Float32Array(tokens[size]).fill(1);
    const data: DatumLike[] = rows.map((row) => ({
      modelInput: row,
      lossFnInputs: { target_tokens: row, weights },
    }));
    const engineData = rows.map((row) => ({
      tokens: row,
      inputs: {
        target_tokens: { data: row, shape: [row.length] },
        weights: { data: weights, shape: [row.length] },
      },
    }));
    const plainData = rows.map((row) => ({
      tokens: [...row],
      inputs: {
        target_tokens: { data: [...row], shape: [row.length] },
        weights: { data: [...weights], shape: [row.length] },
      },
    }));
    const prompt = rows[0]!;
    const params = size === "tiny" ? { ...sampling, maxTokens: 1 } : sampling;
    return {
      forward_backward: {
        alone: () => adapter.forwardBackward(engineData, { lossFn: "cross_entropy" }),
        bare: () => bare("forward_backward", { data: plainData, lossFn: "cross_entropy" }),
        served: async () => training.forwardBackward(data, "cross_entropy"),
      },
      optim_step: {
        alone: () => adapter.optimStep(adam),
        bare: () => bare("optim_step", adam),
        served: async () => training.optimStep(adam),
      },
      sample: {
        alone: () => base.sample({ prompt, ...params }),
        bare: () => bare("sample", { prompt: [...prompt], ...params }),
        served: async () => sampler.sample({ prompt: [...prompt], samplingParams: params }),
      },
    };
  };
  const heard = hearTimings();
  const take = async (action: () => Promise<unknown>): Promise<Taken> => {
    const startMs = performance.now();
    const result = await action();
    const ms = performance.now() - startMs;
    return { ms, engineMs: typeof result === "number" ? result : heard() };
  };
  const tiny = Object.values(operationsOn("tiny")).flatMap((ways) => Object.values(ways));
  for (let round = 0; round < tinyRounds; round++) for (const action of tiny) await action();
  const operations = operationsOn("full");
  const taken = new Map<string, Taken[]>();
  for (let round = 0; round < rounds; round += turnRounds) {
    for (const way of ["alone", "bare", "served"] as const) {
      for (let turn = 0; turn < turnRounds; turn++) {
        for (const [name, ways] of Object.entries(operations)) {
          const list = taken.get(`${name} ${way}`) ?? [];
          list.push(await take(ways[way]));
          taken.set(`${name} ${way}`, list);
        }
      }
    }
  }
  const timesOf = (key: string, toMs: (one: Taken) => number): number[] =>
    taken.get(key)?.slice(warmUps).map(toMs) ?? [];
  const figures = (times: readonly number[]): string => {
    const known = times.filter(Number.isFinite);
    return `${undisturbed(known).toFixed(2)} (median ${median(known).toFixed(2)})`;
  };
  const added: number[] = [];
  for (const name of Object.keys(operations) as (keyof typeof operations)[]) {
    const whole = (way: string): number => undisturbed(timesOf(`${name} ${way}`, ({ ms }) => ms));
    const outside = (way: string): number[] =>
      timesOf(`${name} ${way}`, (one) => one.ms - one.engineMs);
    const inside = (way: string): string =>
      figures(timesOf(`${name} ${way}`, (one) => one.engineMs));
    const of = limitsMs[name];
    const addedMs = whole("served") - whole("alone");
    const figure = `${addedMs.toFixed(2)} ms on top of ${whole("alone").toFixed(2)} ms in the engine`;
    line(name, figure, { is: addedMs, of });
    const outsideMs = `${figures(outside("served"))}; of a bare server ${figures(outside("bare"))}`;
    line("  outside its own engine", outsideMs, { is: undisturbed(outside("served")), of });
    line("  that engine", `${inside("served")}; of a bare server ${inside("bare")}`);
    added.push(addedMs);
  }
  const meanMs = added.reduce((sum, ms) => sum + ms, 0) / added.length;
  line("  on average", `${meanMs.toFixed(2)} ms per operation`);
  await engine.close();
}

/** Reads what answers to the client say of the engine; returns the way to what the last one said. */
function hearTimings(): () => number {
  let last: readonly Buffer[] = [];
  subscribe("undici:request:headers", (message) => {
    last = (message as { response: { headers: readonly Buffer[] } }).response.headers;
  });
  return () => {
    const names = last.map(String);
    return engineMs(names[names.indexOf("server-timing") + 1]);
  };
}
