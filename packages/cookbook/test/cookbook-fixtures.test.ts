import { readFileSync } from "node:fs";
import {
  bitsPerByte,
  meanNll,
  shift,
  splitList,
  toDatum,
  type WeightReduction,
} from "@tinker-ts/cookbook/data";
import { passAtK, passAtKValues } from "@tinker-ts/cookbook/evaluation";
import {
  loraParameterCount,
  recommendedLearningRate,
  scheduleMultiplier,
  type LearningRateSchedule,
} from "@tinker-ts/cookbook/hyperparameters";
import { TinkerError, type Datum, type TensorData } from "tinker-ts";
import { describe, expect, it } from "vitest";
// An internal of the SDK: nothing outside of it merges the chunks of a call.
import { combineOutputs } from "../../sdk/dist/clients/training/combine-outputs.js";
import { plainChunks, toModelInput, type Chunk } from "./support/fixture-chunks.js";
import { mended, rlKinds } from "./support/rl-fixture-kinds.js";

interface Case {
  readonly id: number;
  readonly kind: string;
  readonly input: unknown;
  readonly expected?: unknown;
  readonly error?: string;
  readonly reason?: string;
  readonly tags?: readonly string[];
}

/** Computes a kind of case; the result has the form of `expected`. */
const kinds: Readonly<Record<string, (input: never) => unknown>> = {
  ...rlKinds,
  datum: (input: {
    chunks: Chunk[];
    weights: number[];
    max_length: number | null;
    reduction: WeightReduction;
  }) =>
    plainDatum(
      toDatum(
        { input: toModelInput(input.chunks), weights: Float32Array.from(input.weights) },
        { maxLength: input.max_length ?? undefined, reduction: input.reduction },
      ),
    ),
  shift: (input: { chunks: Chunk[] }) => {
    const shifted = shift(toModelInput(input.chunks));
    return { chunks: plainChunks(shifted.input), target_tokens: [...shifted.targets] };
  },
  mean_nll: (input: { logprobs: number[][]; weights: number[][] }) =>
    meanNll(
      input.logprobs.map((logprobs, index) => ({ logprobs, weights: input.weights[index]! })),
    ),
  bits_per_byte: (input: {
    logprobs: number[][];
    weights: number[][];
    target_tokens: number[][];
    special_ids: number[];
  }) =>
    bitsPerByte(
      input.logprobs.map((logprobs, index) => ({
        logprobs,
        weights: input.weights[index]!,
        targets: input.target_tokens[index]!,
      })),
      {
        specialTokens: new Map(input.special_ids.map((id) => [`<${id}>`, id])),
        decode: (ids) => String.fromCodePoint(...ids),
      },
    ),
  lr_schedule: (input: { schedule: LearningRateSchedule; step: number; total_steps: number }) =>
    exactly(scheduleMultiplier(input.schedule, input.step, input.total_steps)),
  lr: (input: { model: string; is_lora: boolean }) =>
    exactly(recommendedLearningRate(input.model, { isLora: input.is_lora })),
  lora_params: (input: {
    model: string;
    rank: number;
    train_mlp?: boolean;
    train_attn?: boolean;
    train_unembed?: boolean;
  }) =>
    loraParameterCount(input.model, {
      rank: input.rank,
      trainMlp: input.train_mlp,
      trainAttn: input.train_attn,
      trainUnembed: input.train_unembed,
    }),
  split_list: (input: { length: number; parts: number }) =>
    splitList(
      Array.from({ length: input.length }, (_, index) => index),
      input.parts,
    ).map(({ length }) => length),
  pass_at_k: (input: { samples: number; correct: number; k: number }) =>
    passAtK(input.samples, input.correct, input.k),
  pass_at_k_values: (input: { samples: number }) => passAtKValues(input.samples),
  chunk_metrics: (input: { chunks: { outputs: number; metrics: Record<string, number> }[] }) => {
    let next = 0;
    const order = new Map<object, number>();
    const combined = combineOutputs(
      input.chunks.map(({ outputs, metrics }) => ({
        lossFnOutputType: "t",
        lossFnOutputs: Array.from({ length: outputs }, () => {
          const output = {};
          order.set(output, next++);
          return output;
        }),
        metrics,
      })),
    );
    return {
      metrics: combined.metrics,
      output_order: combined.lossFnOutputs.map((output) => order.get(output)),
      loss_fn_output_type: combined.lossFnOutputType,
    };
  },
  hash_unordered: (input: { values: number[]; reordered: number[] }) => {
    const [one, other] = [input.values, input.reordered].map((values) =>
      combineOutputs(
        values.map((value) => ({
          lossFnOutputType: "t",
          lossFnOutputs: [],
          metrics: { "id:hash_unordered": value },
        })),
      ),
    );
    return { equal: one!.metrics["id:hash_unordered"] === other!.metrics["id:hash_unordered"] };
  },
};

const { cases } = JSON.parse(
  readFileSync(new URL("fixtures/cookbook.json", import.meta.url), "utf8"),
) as { readonly cases: readonly Case[] };

for (const kind of new Set(cases.map((entry) => entry.kind))) {
  const compute = kinds[kind] as ((input: unknown) => unknown) | undefined;
  if (!compute) {
    it(`${kind} is a known kind of case`, () => expect.fail());
    continue;
  }
  describe(kind, () => {
    it.each(cases.filter((entry) => entry.kind === kind).map((entry) => [titleOf(entry), entry]))(
      "%s",
      (_, { input, expected, error, tags = [] }) => {
        const ours = tags.map((tag) => mended[tag]).find((check) => check !== undefined);
        if (ours) return ours(() => compute(input), expected, input as never);
        if (error !== undefined) expect(() => compute(input)).toThrow(TinkerError);
        else expectLike(compute(input), expected, kind);
      },
    );
  });
}

function titleOf({ id, tags = [], error, reason }: Case): string {
  const tagged = tags.length > 0 ? ` (${tags.join(", ")})` : "";
  return `case ${id}${tagged}${error === undefined ? "" : ` is refused: ${reason}`}`;
}

/** A number that is compared to the last bit. */
class Exact {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

function exactly(value: number): Exact {
  return new Exact(value);
}

function expectLike(actual: unknown, expected: unknown, place: string): void {
  if (actual instanceof Exact) {
    expect(actual.value, place).toBe(expected);
  } else if (typeof actual === "number" && expected === "nan") {
    expect(actual, place).toBeNaN();
  } else if (typeof actual === "number" && typeof expected === "number") {
    const tolerance = Number.isInteger(expected) ? 1e-6 : 1e-6 + Math.abs(expected) * 1e-5;
    expect(Math.abs(actual - expected), `${place}: ${actual} for ${expected}`).toBeLessThanOrEqual(
      tolerance,
    );
  } else if (typeof actual === "object" && actual !== null) {
    expect(Object.keys(actual).toSorted(), place).toEqual(
      Object.keys(expected as object).toSorted(),
    );
    for (const [key, value] of Object.entries(actual)) {
      expectLike(value, (expected as Record<string, unknown>)[key], `${place}.${key}`);
    }
  } else {
    expect(actual, place).toBe(expected);
  }
}

function plainDatum({ modelInput, lossFnInputs }: Datum): unknown {
  const inputs = Object.entries(lossFnInputs).map(([name, tensor]) => [name, plainTensor(tensor)]);
  return { chunks: plainChunks(modelInput), ...Object.fromEntries(inputs) };
}

function plainTensor({ dtype, data }: TensorData): unknown {
  return { dtype, data: Array.from(data as ArrayLike<number | bigint>, Number) };
}
