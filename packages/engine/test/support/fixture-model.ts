import { existsSync, readFileSync } from "node:fs";
import {
  type NamedTensor,
  type NamedTensors,
  openModelFolder,
  SafetensorsFile,
} from "@tinker-ts/hub/weights";
import { ModelRuntime } from "../../src/model/model-runtime.js";
import { loadModelWeights } from "../../src/model/model-weights.js";
import type { Datum } from "../../src/train/datum.js";
import { fixture } from "./fixtures.js";

/** Families that have golden data made with PyTorch. */
export const families = [
  "qwen3",
  "llama",
  "gemma3",
  "mistral",
  "olmo2",
  "smollm3",
  "granite",
  "phi3",
  "olmo3",
  "granite4_dense",
  "ministral3",
  "minicpm5",
  "qwen3_5",
  "qwen3_5_vl",
  "lfm2",
  "granite_hybrid",
] as const;

/** Those with layers that have a state, which a GPU does not compute. */
export const recurrentFamilies: ReadonlySet<Family> = new Set<Family>([
  "qwen3_5",
  "qwen3_5_vl",
  "lfm2",
  "granite_hybrid",
]);

/** One of these families. */
export type Family = (typeof families)[number];

interface ExpectedAdamStep {
  readonly adam_params: {
    readonly learning_rate: number;
    readonly beta1: number;
    readonly beta2: number;
    readonly eps: number;
    readonly weight_decay: number;
    readonly grad_clip_norm: number;
  };
  readonly loss_sum: number;
  readonly grad_norm: number;
}

/** Results of PyTorch. */
export interface Expected {
  readonly alpha: number;
  readonly rank: number;
  readonly data: readonly {
    readonly tokens: readonly number[];
    readonly target_tokens: readonly number[];
    readonly weights: readonly number[];
    readonly logprobs: readonly number[];
    readonly advantages: readonly number[];
  }[];
  readonly base_logprobs: readonly (readonly number[])[];
  readonly lora_logprobs: readonly (readonly number[])[];
  readonly base_greedy: {
    readonly prompt: readonly number[];
    readonly tokens: readonly number[];
    readonly logprobs: readonly number[];
  };
  /** A prompt of more than one block; families that were added later have it. */
  readonly base_greedy_long?: Expected["base_greedy"];
  /** What PEFT's adapter of whole matrices gives; families whose matrices are divided have it. */
  readonly fused_logprobs?: readonly (readonly number[])[];
  readonly prompt_topk3: readonly (readonly (readonly [number, number])[] | null)[];
  readonly losses: Readonly<
    Record<
      string,
      {
        readonly config: Record<string, number>;
        readonly loss_sum: number;
        readonly grad_norm: number;
      }
    >
  >;
  readonly adam_steps: readonly ExpectedAdamStep[];
}

/** Whether there is a file of golden data. */
export function hasFixture(name: string): boolean {
  return existsSync(fixture(name));
}

/** Reads a family's golden data. */
export function readExpected(family: Family): Expected {
  const parsed: Expected = JSON.parse(readFileSync(fixture(`${family}/expected.json`), "utf8"));
  return parsed;
}

/** Loads a family's model, with one thread so that tests can run side by side. */
export async function loadFixtureModel(family: Family, threads = 1): Promise<ModelRuntime> {
  const folder = await openModelFolder(fixture(`${family}/model`));
  try {
    const weights = await loadModelWeights(folder.config, folder.weights);
    return new ModelRuntime(folder.config, weights, { threads });
  } finally {
    await folder.close();
  }
}

/** Reads all tensors of a safetensors file. */
export async function readTensors(name: string): Promise<NamedTensors> {
  const file = await SafetensorsFile.open(fixture(name));
  try {
    const tensors = new Map<string, NamedTensor>();
    for (const [key, { shape }] of file.tensors) {
      tensors.set(key, { data: await file.readFloats(key), shape });
    }
    return tensors;
  } finally {
    await file.close();
  }
}

/** The golden data as examples for a loss. */
export function fixtureData(expected: Expected, loss: string): Datum[] {
  return expected.data.map((datum) => {
    const shape = [datum.tokens.length];
    const names = loss === "cross_entropy" ? ["weights"] : ["logprobs", "advantages"];
    const floats = {
      weights: datum.weights,
      logprobs: datum.logprobs,
      advantages: datum.advantages,
    };
    return {
      tokens: datum.tokens,
      inputs: {
        target_tokens: { data: datum.target_tokens, shape },
        ...Object.fromEntries(
          Object.entries(floats)
            .filter(([name]) => names.includes(name))
            .map(([name, data]) => [name, { data, shape }] as const),
        ),
      },
    };
  });
}
