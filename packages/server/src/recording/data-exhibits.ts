import type { ExhibitContent, ExhibitHead } from "./exhibit-content.js";
import { chooseExhibits, type Candidate } from "./choose-exhibits.js";
import { toPlain } from "../store/plain-numbers.js";

/** A pass as the engine had it, as far as it is shown. */
export interface ShownPass {
  readonly data: readonly {
    readonly tokens: ArrayLike<number>;
    readonly inputs: Readonly<
      Record<string, { readonly data: ArrayLike<number>; readonly shape: readonly number[] }>
    >;
  }[];
  readonly outputs: readonly { readonly logprobs: ArrayLike<number> }[];
}

/** Exhibits that are ready to be kept. */
export interface PreparedExhibits {
  readonly heads: readonly ExhibitHead[];
  readonly contents: readonly ExhibitContent[];
  /** Of how many they were chosen. */
  readonly seen: number;
}

/** The examples of a pass that are kept. */
export function dataExhibits(pass: ShownPass, keepsAll: boolean, seed: string): PreparedExhibits {
  const facts = pass.data.map((_, index) => factsOf(pass, index));
  const kept = keepsAll ? facts.map((_, index) => index) : chooseExhibits(facts, seed);
  return {
    heads: kept.map((index): ExhibitHead => {
      const { nll, advantage, trainedCount } = facts[index]!;
      return {
        group: null,
        index,
        reward: null,
        advantage: advantage === null ? null : toPlain(advantage),
        nll: nll === null ? null : toPlain(nll),
        tokenCount: pass.data[index]!.tokens.length + 1,
        trainedCount,
        stopReason: null,
      };
    }),
    contents: kept.map((index) => contentOf(pass, index)),
    seen: pass.data.length,
  };
}

function factsOf(
  { data, outputs }: ShownPass,
  index: number,
): Candidate & { readonly trainedCount: number } {
  const inputs = data[index]!.inputs;
  const logprobs = outputs[index]?.logprobs ?? [];
  const weights = inputs["weights"]?.data;
  const advantages = inputs["advantages"]?.data;
  let loss = 0;
  let total = 0;
  let trainedCount = 0;
  let advantage: number | null = null;
  for (let place = 0; place < logprobs.length; place++) {
    const one = advantages?.[place] ?? 0;
    const weight = weights?.[place] ?? (advantages ? Number(one !== 0) : 1);
    if (Math.abs(one) > Math.abs(advantage ?? 0)) advantage = one;
    if (weight === 0) continue;
    trainedCount++;
    loss -= weight * logprobs[place]!;
    total += weight;
  }
  return { nll: total === 0 ? null : loss / total, reward: null, advantage, trainedCount };
}

/** The whole sequence: what the model reads, and after it the last token that it is to say. */
function contentOf({ data, outputs }: ShownPass, index: number): ExhibitContent {
  const { tokens, inputs } = data[index]!;
  const targets = inputs["target_tokens"];
  const isPlain = targets !== undefined && targets.data.length === tokens.length;
  const length = tokens.length + 1;
  const sequence = new Int32Array(length);
  for (let place = 0; place < tokens.length; place++) sequence[place] = tokens[place]!;
  // Targets with alternatives are not a sequence; their places are shown without one.
  sequence[tokens.length] = isPlain ? targets.data[tokens.length - 1]! : tokens[tokens.length - 1]!;
  const shifted = (values: ArrayLike<number> | undefined): Float32Array | undefined => {
    if (!values || values.length !== tokens.length) return undefined;
    const column = new Float32Array(length).fill(Number.NaN, 0, 1);
    column.set(values, 1);
    return column;
  };
  const isSequence = isPlain || targets === undefined;
  return {
    columns: {
      tokens: isSequence ? sequence : sequence.slice(0, tokens.length),
      ...(isSequence && {
        weight: shifted(inputs["weights"]?.data),
        logprob: shifted(outputs[index]?.logprobs),
        samplerLogprob: shifted(inputs["logprobs"]?.data),
        advantage: shifted(inputs["advantages"]?.data),
      }),
    },
  };
}
