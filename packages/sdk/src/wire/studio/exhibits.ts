import type { StudioNumber, StudioTime } from "./values.js";

/** The kinds of exhibits: a training example, a rollout, an answer of the playground. */
export type StudioExhibitKind = "datum" | "rollout" | "sample";

/** One exhibit of a list; without its tokens and texts. */
export interface StudioExhibit {
  /** Its id. */
  readonly id: string;
  /** The run. */
  readonly run: string;
  /** The step. */
  readonly step: number;
  /** Its kind. */
  readonly kind: StudioExhibitKind;
  /** `train`, or the name of an evaluation. */
  readonly split: string;
  /** Rollouts of one prompt share it. */
  readonly group: number | null;
  /** Place within its group or batch. */
  readonly index: number;
  /** Total reward. */
  readonly reward: StudioNumber | null;
  /** Advantage over its group. */
  readonly advantage: StudioNumber | null;
  /** Mean of −logprob of trained tokens (datum) or sampled ones. */
  readonly nll: StudioNumber | null;
  /** Total number of tokens. */
  readonly tokenCount: number;
  /** Tokens with a weight, or sampled ones. */
  readonly trainedCount: number;
  /** The stop reason of sampling. */
  readonly stopReason: string | null;
  /** The beginning of its text. */
  readonly preview: string;
  /** When it was recorded. */
  readonly at: StudioTime;
}

/** `GET exhibits?run&step&kind&split&order&q&cursor&limit`; a step, or `last`. */
export interface StudioExhibits {
  /** The exhibits of this page. */
  readonly exhibits: readonly StudioExhibit[];
  /** Cursor of the next page; null at the end. */
  readonly cursor: string | null;
  /** Steps with exhibits of this kind. */
  readonly steps: readonly number[];
  /** Splits with exhibits of this kind. */
  readonly splits: readonly string[];
  /** Number of examples of this step before sampling; null if unknown. */
  readonly seen: number | null;
}

/** `GET exhibits/{id}?from&to`: one exhibit, token by token. */
export interface StudioExhibitDetail extends StudioExhibit {
  /** The first token of `tokens`. */
  readonly from: number;
  /** A page of tokens (4,000 by default). */
  readonly tokens: StudioTokens;
  /** All of its text, as decoded; null when it is longer than 1 MB. */
  readonly text: string | null;
  /** The conversation, if it was logged as one. */
  readonly messages: readonly StudioMessage[] | null;
  /** Its own metrics. */
  readonly metrics: Readonly<Record<string, number | string | boolean>>;
  /** Log lines of its environment. */
  readonly logs: readonly string[];
  /** Weights that it came from: a model's id, a checkpoint's path or a base model. */
  readonly weights: string | null;
  /** Role tags and other special tokens that are trained, by position in the whole sequence. */
  readonly warnings: readonly string[];
  /** The stored record. */
  readonly raw: unknown;
}

/** Body of `POST samples`: answers of the playground, to be stored with their runs. */
export interface StudioSamples {
  /** The answers to one prompt, per weights. */
  readonly answers: readonly {
    /** A base model's name or a checkpoint's path. */
    readonly weights: string;
    /** The prompt as the model read it. */
    readonly promptTokens: readonly number[];
    /** Each answer. */
    readonly samples: readonly {
      readonly tokens: readonly number[];
      readonly logprobs: readonly number[];
      readonly stopReason: string | null;
    }[];
  }[];
}

/** Answer of `POST samples`. */
export interface StudioKept {
  /** Number of stored answers: none with `--capture off`, nor of a base model alone. */
  readonly kept: number;
}

/** A message of a rollout. */
export interface StudioMessage {
  /** `user`, `assistant`, `tool`, … */
  readonly role: string;
  /** Text; thinking and tool calls are in their markup. */
  readonly content: string;
}

/** Tokens in columns of one length; an unknown column is null. */
export interface StudioTokens {
  /** Ids. */
  readonly ids: readonly number[];
  /** The text of each token; joined they are the whole text. */
  readonly pieces: readonly string[];
  /** Whether it is a special token, such as a role tag. */
  readonly isSpecial: readonly boolean[];
  /** Weight in the loss; null for context. */
  readonly weight: readonly (number | null)[] | null;
  /** Logprob of the trainer. */
  readonly logprob: readonly (StudioNumber | null)[] | null;
  /** Logprob while sampling. */
  readonly samplerLogprob: readonly (StudioNumber | null)[] | null;
  /** Advantage. */
  readonly advantage: readonly (StudioNumber | null)[] | null;
  /** Entropy of the distribution, if it was logged or can be computed. */
  readonly entropy: readonly (StudioNumber | null)[] | null;
}
