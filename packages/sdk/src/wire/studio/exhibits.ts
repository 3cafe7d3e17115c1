import type { StudioNumber, StudioTime } from "./values.js";

/** What an exhibit is: an example trained on, a rollout, an answer of the playground. */
export type StudioExhibitKind = "datum" | "rollout" | "sample";

/** One exhibit of a list; without its tokens and texts. */
export interface StudioExhibit {
  /** Its id. */
  readonly id: string;
  /** The run. */
  readonly run: string;
  /** The step. */
  readonly step: number;
  /** What it is. */
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
  /** Mean of −logprob of what is trained on (datum) or was sampled. */
  readonly nll: StudioNumber | null;
  /** Tokens altogether. */
  readonly tokenCount: number;
  /** Tokens with a weight, or sampled ones. */
  readonly trainedCount: number;
  /** Why sampling ended. */
  readonly stopReason: string | null;
  /** The beginning of its text. */
  readonly preview: string;
  /** When. */
  readonly at: StudioTime;
}

/** `GET exhibits?run&step&kind&split&order&q&cursor&limit`; a step, or `last`. */
export interface StudioExhibits {
  /** The exhibits of this page. */
  readonly exhibits: readonly StudioExhibit[];
  /** Asks for the next ones; null at the end. */
  readonly cursor: string | null;
  /** Steps with exhibits of this kind. */
  readonly steps: readonly number[];
  /** Splits with exhibits of this kind. */
  readonly splits: readonly string[];
  /** Of how many of this step some were kept; null where unknown. */
  readonly seen: number | null;
}

/** `GET exhibits/{id}?from&to`: one exhibit, token by token. */
export interface StudioExhibitDetail extends StudioExhibit {
  /** The first token of `tokens`. */
  readonly from: number;
  /** A page of tokens (4,000 unless asked otherwise). */
  readonly tokens: StudioTokens;
  /** All of its text, as decoded; null when it is longer than 1 MB. */
  readonly text: string | null;
  /** The conversation, where it was logged as one. */
  readonly messages: readonly StudioMessage[] | null;
  /** Metrics of it alone. */
  readonly metrics: Readonly<Record<string, number | string | boolean>>;
  /** What its environment had to say. */
  readonly logs: readonly string[];
  /** Weights that it came from: a model's id, a checkpoint's path or a base model. */
  readonly weights: string | null;
  /** Role tags and other special tokens that are trained on, by place in the whole sequence. */
  readonly warnings: readonly string[];
  /** Everything as it was kept. */
  readonly raw: unknown;
}

/** Body of `POST samples`: answers of the playground, to be kept with the runs that they concern. */
export interface StudioSamples {
  /** What was answered to one prompt, by each of the weights that were asked. */
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
  /** How many were kept: none with `--capture off`, nor of a base model alone. */
  readonly kept: number;
}

/** A message of a rollout. */
export interface StudioMessage {
  /** `user`, `assistant`, `tool`, … */
  readonly role: string;
  /** Text; thinking and tool calls are in their markup. */
  readonly content: string;
}

/** Tokens in columns of one length; a column that is not known is null. */
export interface StudioTokens {
  /** Ids. */
  readonly ids: readonly number[];
  /** What each adds to the text; joined they are the text. */
  readonly pieces: readonly string[];
  /** Whether it is a special token, such as a role tag. */
  readonly isSpecial: readonly boolean[];
  /** Weight in the loss; null where a token is context. */
  readonly weight: readonly (number | null)[] | null;
  /** Logprob of the trainer. */
  readonly logprob: readonly (StudioNumber | null)[] | null;
  /** Logprob while sampling. */
  readonly samplerLogprob: readonly (StudioNumber | null)[] | null;
  /** Advantage. */
  readonly advantage: readonly (StudioNumber | null)[] | null;
  /** Entropy of what could have come, where it was logged or can be told. */
  readonly entropy: readonly (StudioNumber | null)[] | null;
}
