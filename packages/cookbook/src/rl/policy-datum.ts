import { createHash } from "node:crypto";
import {
  type CustomLossFn,
  Datum,
  type ForwardBackwardOutput,
  ModelInput,
  type ModelInputChunk,
  type TrainingClient,
} from "tinker-ts";
import { shift } from "../data/index.js";
import type { Trajectory, TrajectoryGroup, Transition } from "./types.js";

/** A sequence that was sampled, ready to be trained; all lists have one entry per target. */
export interface PolicyDatum {
  /** What the model reads. */
  readonly input: ModelInput;
  /** The token to predict at each position. */
  readonly targets: Int32Array;
  /** What the sampler said of each target; 0 where nothing was sampled. */
  readonly logprobs: Float32Array;
  /** How much better than expected; 0 where nothing was sampled. */
  readonly advantages: Float32Array;
  /** 1 for sampled tokens that are trained. Stays on the client. */
  readonly mask: Float32Array;
  /** Index of the group in the batch. */
  readonly group: number;
  /** Index of the episode in its group. */
  readonly member: number;
}

/** The datum as a loss on sampled tokens takes it. */
export function toTrainingDatum({ input, targets, logprobs, advantages }: PolicyDatum): Datum {
  return new Datum({
    modelInput: input,
    lossFnInputs: { target_tokens: targets, logprobs, advantages },
  });
}

/** Data of all episodes, with one advantage per episode. */
export function batchToData(
  groups: readonly TrajectoryGroup[],
  advantages: readonly (readonly number[])[],
): PolicyDatum[] {
  return groups.flatMap(({ trajectories }, group) =>
    trajectories.flatMap((trajectory, member) =>
      trajectoryToData(trajectory, advantages[group]![member]!, { group, member }),
    ),
  );
}

/**
 * Data of one episode. A prompt that starts with everything read and sampled before it continues the datum; a prompt that
 * rewrites history starts another. A datum without sampled tokens is left out; one with masked turns only stays, and trains
 * nothing.
 */
export function trajectoryToData(
  trajectory: Pick<Trajectory, "transitions">,
  advantage: number,
  place: Pick<PolicyDatum, "group" | "member"> = { group: 0, member: 0 },
): PolicyDatum[] {
  const pictures = new Pictures();
  const sequences: Sequence[] = [];
  for (const transition of trajectory.transitions) {
    const elements = pictures.elementsOf(transition.observation);
    let sequence = sequences.at(-1);
    if (!sequence?.isPrefixOf(elements)) {
      sequence = new Sequence();
      sequences.push(sequence);
    }
    sequence.read(elements.slice(sequence.elements.length));
    sequence.act(transition, advantage);
  }
  return sequences
    .filter(({ elements }) => elements.length > 0)
    .map((sequence) => ({ sequence, datum: { ...sequence.close(pictures), ...place } }))
    .filter(({ sequence }) => sequence.isSampled)
    .map(({ datum }) => datum);
}

/** Tokens, and pictures as negative numbers, with what was sampled beside them. */
class Sequence {
  readonly elements: number[] = [];
  /** Whether a token of it comes from the model. */
  isSampled = false;
  readonly #logprobs: number[] = [];
  readonly #advantages: number[] = [];
  readonly #mask: number[] = [];

  isPrefixOf(elements: readonly number[]): boolean {
    return (
      this.elements.length <= elements.length &&
      this.elements.every((element, index) => element === elements[index])
    );
  }

  read(elements: readonly number[]): void {
    for (const element of elements) this.#push(element, 0, 0, 0);
  }

  act({ action: { tokens, logprobs }, masked }: Transition, advantage: number): void {
    this.isSampled ||= tokens.length > 0;
    for (const [index, token] of tokens.entries()) {
      this.#push(token, logprobs[index]!, masked ? 0 : advantage, masked ? 0 : 1);
    }
  }

  close(pictures: Pictures): Omit<PolicyDatum, "group" | "member"> {
    const lengths = this.elements.map((element) => (element < 0 ? pictures.lengthOf(element) : 1));
    const { input, targets } = shift(new ModelInput({ chunks: pictures.chunksOf(this.elements) }));
    const beside = (values: readonly number[]): Float32Array =>
      Float32Array.from(
        values.flatMap((value, at) => Array<number>(lengths[at]!).fill(value)),
      ).slice(1);
    return {
      input,
      targets,
      logprobs: beside(this.#logprobs),
      advantages: beside(this.#advantages),
      mask: beside(this.#mask),
    };
  }

  #push(element: number, logprob: number, advantage: number, mask: number): void {
    this.elements.push(element);
    this.#logprobs.push(logprob);
    this.#advantages.push(advantage);
    this.#mask.push(mask);
  }
}

/** Pictures of an episode by their content, so that a picture that comes again is the same. */
class Pictures {
  readonly #chunks: ModelInputChunk[] = [];
  readonly #indexByContent = new Map<string, number>();

  elementsOf({ chunks }: ModelInput): number[] {
    return chunks.flatMap((chunk) =>
      chunk.type === "encoded_text" ? [...chunk.tokens] : [~this.#indexOf(chunk)],
    );
  }

  chunksOf(elements: readonly number[]): ModelInputChunk[] {
    const chunks: ModelInputChunk[] = [];
    let start = 0;
    for (let end = 0; end <= elements.length; end++) {
      const element = elements[end];
      if (element !== undefined && element >= 0) continue;
      if (end > start) {
        chunks.push({ type: "encoded_text", tokens: Int32Array.from(elements.slice(start, end)) });
      }
      if (element !== undefined) chunks.push(this.#chunks[~element]!);
      start = end + 1;
    }
    return chunks;
  }

  lengthOf(element: number): number {
    return new ModelInput({ chunks: [this.#chunks[~element]!] }).length;
  }

  #indexOf(chunk: ModelInputChunk): number {
    const content = contentOf(chunk);
    const known = this.#indexByContent.get(content);
    if (known !== undefined) return known;
    this.#indexByContent.set(content, this.#chunks.length);
    return this.#chunks.push(chunk) - 1;
  }
}

function contentOf(chunk: ModelInputChunk): string {
  if (chunk.type === "image_asset_pointer") return `${chunk.location}:${chunk.expectedTokens}`;
  const hash = createHash("sha256");
  if (chunk.type === "image")
    return `${hash.update(chunk.data).digest("hex")}:${chunk.expectedTokens}`;
  return chunk.type === "dmel" ? hash.update(chunk.dmel).digest("hex") : "";
}

/** A loss on sampled tokens: one of the service with its settings, or a custom one. */
export type PolicyLoss =
  | { readonly name: "importance_sampling" }
  | {
      readonly name: "ppo" | "cispo";
      /** Lower bound on the ratio itself. @default 0.8 for ppo, 0 for cispo */
      readonly clipLowThreshold?: number | undefined;
      /** Upper bound on the ratio itself. @default 1.2 for ppo, 4 for cispo */
      readonly clipHighThreshold?: number | undefined;
    }
  | {
      readonly name: "dro";
      /** Strength of the pull towards the sampler. @default 0.05 */
      readonly beta?: number | undefined;
    }
  | {
      readonly name: "custom";
      /** The loss for some data, for instance `composeLoss(…).at(step)` with their advantages as side data. */
      readonly loss: (data: readonly PolicyDatum[], step: number) => CustomLossFn;
    }
  | {
      readonly name: "own_targets";
      /** Submits the pass itself, with targets other than the sampled tokens; metrics of its result are logged. */
      readonly submit: (
        training: TrainingClient,
        data: readonly PolicyDatum[],
        step: number,
      ) => PromiseLike<ForwardBackwardOutput>;
    };

const clipDefaults = { ppo: [0.8, 1.2], cispo: [0, 4] } as const;

/** Submits the pass of a loss; settings are always sent, because servers differ in their defaults. */
export function submitPolicyPass(
  training: TrainingClient,
  data: readonly PolicyDatum[],
  loss: PolicyLoss,
  step: number,
): PromiseLike<ForwardBackwardOutput> {
  if (loss.name === "own_targets") return loss.submit(training, data, step);
  if (loss.name === "custom") {
    const bare = data.map(({ input, targets }) => ({
      modelInput: input,
      lossFnInputs: { target_tokens: targets },
    }));
    return training.forwardBackwardCustom(bare, loss.loss(data, step));
  }
  const lossFnConfig = settingsOf(loss);
  return training.forwardBackward(
    data.map(toTrainingDatum),
    loss.name,
    lossFnConfig ? { lossFnConfig } : {},
  );
}

/**
 * Data as the loss needs them. The square of `dro` acts on every token, so where nothing was sampled it must
 * compare a token with itself: with what the model says of it now.
 */
export async function readyForLoss(
  training: TrainingClient,
  data: readonly PolicyDatum[],
  loss: PolicyLoss,
): Promise<readonly PolicyDatum[]> {
  if (loss.name !== "dro" || data.length === 0) return data;
  const plain = data.map(({ input, targets }) => ({
    modelInput: input,
    lossFnInputs: { target_tokens: targets, weights: new Float32Array(targets.length) },
  }));
  const { lossFnOutputs } = await training.forward(plain, "cross_entropy");
  return data.map((datum, index) => {
    const current = lossFnOutputs[index]!["logprobs"]!.data as Float32Array;
    const logprobs = datum.logprobs.map((value, at) =>
      datum.mask[at] === 1 ? value : current[at]!,
    );
    return { ...datum, logprobs };
  });
}

function settingsOf(loss: PolicyLoss): Record<string, number> | undefined {
  switch (loss.name) {
    case "ppo":
    case "cispo": {
      const [low, high] = clipDefaults[loss.name];
      const { clipLowThreshold = low, clipHighThreshold = high } = loss;
      return { clip_low_threshold: clipLowThreshold, clip_high_threshold: clipHighThreshold };
    }
    case "dro":
      return { beta: loss.beta ?? 0.05 };
    default:
      return undefined;
  }
}
