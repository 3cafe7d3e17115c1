import type { CheckpointRow } from "./checkpoint-row.js";
import type { LineValue } from "./folder-writer.js";
import type { Span } from "./open-telemetry-sink.js";

/** Named values of one step; text is logged as it is, undefined values are left out. */
export type Metrics = Readonly<Record<string, number | string | boolean | undefined>>;

/** How much a message matters. */
export type TextLevel = "info" | "warning" | "error";

/** One rollout, as far as it is known; lists have one entry per token. */
export interface Rollout {
  /** Total reward. */
  readonly reward: number;
  /** Advantage over its group. */
  readonly advantage?: number | undefined;
  /** The whole sequence: prompts, answers, results of tools. */
  readonly tokens?: ArrayLike<number> | undefined;
  /** 1 where a token was sampled. */
  readonly mask?: ArrayLike<number> | undefined;
  /** Logprobs while sampling. */
  readonly logprobs?: ArrayLike<number> | undefined;
  /** Advantages, where they differ by token. */
  readonly advantages?: ArrayLike<number> | undefined;
  /** Entropies of what could have come, where they are known. */
  readonly entropies?: ArrayLike<number> | undefined;
  /** Why sampling ended. */
  readonly stopReason?: string | undefined;
  /** The text, where there are no tokens. */
  readonly text?: string | undefined;
  /** The conversation. */
  readonly messages?: readonly { readonly role: string; readonly content: string }[] | undefined;
  /** Metrics of it alone. */
  readonly metrics?: Readonly<Record<string, number | string | boolean>> | undefined;
  /** What its environment had to say. */
  readonly logs?: readonly string[] | undefined;
}

/** One example as it was trained on; lists have one entry per token. */
export interface LoggedExample {
  /** The whole sequence. */
  readonly tokens: ArrayLike<number>;
  /** Weights in the loss. */
  readonly weights?: ArrayLike<number> | undefined;
  /** Logprobs of the trainer. */
  readonly logprobs?: ArrayLike<number> | undefined;
}

/** Everything that a run logs, in order. */
export type RunRecord =
  | {
      /** The run begins or goes on. */
      readonly kind: "open";
      /** Where it is written. */
      readonly folder: string;
      /** What it was configured with. */
      readonly config: LineValue;
      /** Which start of the program this is, from 1. */
      readonly attempt: number;
    }
  | {
      /** Metrics of a step. */
      readonly kind: "metrics";
      /** The step, or undefined for metrics without one. */
      readonly step: number | undefined;
      /** The values, by name. */
      readonly metrics: Metrics;
      /** Seconds since 1970. */
      readonly time: number;
      /** Which start of the program this is, from 1. */
      readonly attempt: number;
    }
  | {
      /** A checkpoint was saved. */
      readonly kind: "checkpoint";
      /** What the folder keeps of it. */
      readonly row: CheckpointRow;
    }
  | {
      /** Where the time of a step went. */
      readonly kind: "spans";
      /** The step. */
      readonly step: number;
      /** What took how long. */
      readonly spans: readonly Span[];
    }
  | {
      /** A model belongs to the run. */
      readonly kind: "watch";
      /** The model's id. */
      readonly model: string;
    }
  | {
      /** Rollouts of a step, by group. */
      readonly kind: "rollouts";
      /** The step. */
      readonly step: number;
      /** `train`, or the name of an evaluation. */
      readonly split: string;
      /** Rollouts of one prompt are a group. */
      readonly groups: readonly (readonly Rollout[])[];
    }
  | {
      /** Examples that a step was trained on. */
      readonly kind: "examples";
      /** The step. */
      readonly step: number;
      /** `train`, or the name of an evaluation. */
      readonly split: string;
      /** The examples. */
      readonly examples: readonly LoggedExample[];
    }
  | {
      /** A line for people. */
      readonly kind: "text";
      /** How much it matters. */
      readonly level: TextLevel;
      /** The line. */
      readonly text: string;
    }
  | {
      /** The run is over, or the program ends. */
      readonly kind: "close";
      /** How it ended; completed by default. */
      readonly status?: "completed" | "failed" | undefined;
      /** Why it failed. */
      readonly reason?: string | undefined;
    };

/**
 * A destination of a run besides its folder. `log` must return at once; a sink that throws is reported
 * of in the run's text log and not asked again.
 */
export interface RunSink {
  /** Takes one record. */
  log(record: RunRecord): void;
  /** Ends the sink; what it holds is sent on. */
  close?(): Promise<void> | void;
}
