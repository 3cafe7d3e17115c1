import type { StudioControls } from "./studio.js";

/*
 * `POST /api/v1/logs`: lines of JSON, each with the run, its writer and the writer's count. The names are
 * single words, because programs of any language write them. Numbers that JSON cannot say are "NaN",
 * "Infinity" and "-Infinity".
 */

/** Where lines are sent. */
export const logsPath = "/api/v1/logs";

/** A value of a line: a number, a word for one that JSON cannot say, text or a truth. */
export type LogValue = number | string | boolean | null;

/** One line. */
export type LogLine = LogLineHead & LogEntry;

/** Where a line belongs. */
export interface LogLineHead {
  /** The run's id: 1 to 100 letters, digits, `.`, `_`, `-`. */
  readonly run: string;
  /** Names this start of the program; counts begin anew with it. */
  readonly writer: string;
  /** The writer's count of lines, from 1; a line that was stored already is only counted. */
  readonly n: number;
}

/** The content of a line. */
export type LogEntry =
  | {
      /** The run begins or goes on; must be a writer's first line. */
      readonly kind: "open";
      /** What people call it. */
      readonly name?: string | undefined;
      /** Runs that belong together. */
      readonly group?: string | null | undefined;
      /** Labels. */
      readonly tags?: readonly string[] | undefined;
      /** What the run was configured with. */
      readonly config?: unknown;
      /** Which start of the program this is, from 1; without it, the next one. */
      readonly attempt?: number | undefined;
      /** Where its files are. */
      readonly folder?: string | null | undefined;
      /** Models of this server; their series, checkpoints and samples belong to the run. */
      readonly models?: readonly string[] | undefined;
      /** Seconds since 1970. */
      readonly time?: number | undefined;
    }
  | {
      /** A model belongs to the run. */
      readonly kind: "watch";
      /** The model. */
      readonly model: string;
    }
  | {
      /** The kind of the line. */
      readonly kind: "metrics";
      /** Without it, the last one. */
      readonly step?: number | undefined;
      /** Seconds since 1970. */
      readonly time?: number | undefined;
      /** Values by name. */
      readonly metrics: Readonly<Record<string, LogValue | undefined>>;
    }
  | {
      /** The kind of the line. */
      readonly kind: "rollouts";
      /** The step. */
      readonly step: number;
      /**
       * `train`, or the name of an evaluation.
       * @default "train"
       */
      readonly split?: string | undefined;
      /** The rollouts. */
      readonly rollouts: readonly LogRollout[];
    }
  | {
      /** The kind of the line. */
      readonly kind: "examples";
      /** The step. */
      readonly step: number;
      /**
       * `train`, or the name of an evaluation.
       * @default "train"
       */
      readonly split?: string | undefined;
      /** The examples. */
      readonly examples: readonly LogExample[];
    }
  | {
      /** The kind of the line. */
      readonly kind: "checkpoint";
      /** What people call it. */
      readonly name: string;
      /** The step. */
      readonly step?: number | undefined;
      /** The run had done all it was asked to. */
      readonly final?: boolean | undefined;
      /** Where weights and optimizer are: `tinker://RUN/weights/NAME`. */
      readonly state?: string | undefined;
      /** Where weights to sample from are: `tinker://RUN/sampler_weights/NAME`. */
      readonly sampler?: string | undefined;
    }
  | {
      /** The kind of the line. */
      readonly kind: "span";
      /** The step. */
      readonly step: number;
      /** What took how long. */
      readonly spans: readonly {
        /** What people call it. */
        readonly name: string;
        /** Seconds since the first span of the step. */
        readonly start: number;
        /** Its value. */
        readonly end: number;
      }[];
    }
  | {
      /** The kind of the line. */
      readonly kind: "text";
      /** The line. */
      readonly text: string;
      /**
       * How much it matters.
       * @default "info"
       */
      readonly level?: "info" | "warning" | "error" | undefined;
      /** Seconds since 1970. */
      readonly time?: number | undefined;
    }
  | {
      /** The program ends. */
      readonly kind: "close";
      /**
       * How it ended.
       * @default "completed"
       */
      readonly status?: "completed" | "failed" | "stopped" | undefined;
      /** Why it failed. */
      readonly reason?: string | undefined;
      /** Records that had to be dropped. */
      readonly dropped?: number | undefined;
    };

/** One rollout. */
export interface LogRollout {
  /** Rollouts of one prompt share it. */
  readonly group: number;
  /** Place within the group. */
  readonly index: number;
  /** Total reward. */
  readonly reward: LogValue;
  /** Advantage over its group. */
  readonly advantage?: LogValue | undefined;
  /** Why sampling ended. */
  readonly stop?: string | undefined;
  /** The whole sequence: prompts, answers, results of tools. */
  readonly tokens?: readonly number[] | undefined;
  /** 1 for tokens that were sampled, else 0; as long as `tokens`. */
  readonly mask?: readonly number[] | undefined;
  /** While sampling; as long as `tokens`, 0 where not sampled. */
  readonly logprobs?: readonly LogValue[] | undefined;
  /** Per token, where it differs from `advantage`. */
  readonly advantages?: readonly LogValue[] | undefined;
  /** Entropy of what could have come, per token; as long as `tokens`. */
  readonly entropies?: readonly LogValue[] | undefined;
  /** The text, where there are no tokens. */
  readonly text?: string | undefined;
  /** The conversation. */
  readonly messages?: readonly { readonly role: string; readonly content: string }[] | undefined;
  /** Values by name. */
  readonly metrics?: Readonly<Record<string, LogValue | undefined>> | undefined;
  /** What its environment had to say. */
  readonly logs?: readonly string[] | undefined;
  /** The model with the tokenizer for `tokens`. */
  readonly model?: string | undefined;
}

/** One example that is trained on. */
export interface LogExample {
  /** Place within the batch. */
  readonly index: number;
  /** The whole sequence: the input, and the last target. */
  readonly tokens: readonly number[];
  /** Per token; the first has none, so 0. */
  readonly weights?: readonly number[] | undefined;
  /** Logprobs of the trainer, per token. */
  readonly logprobs?: readonly LogValue[] | undefined;
  /** The model. */
  readonly model?: string | undefined;
}

/** The answer to `POST /api/v1/logs`. */
export interface LogsAnswer {
  /** The last count of each writer that is stored: `{ RUN: { WRITER: n } }` has one entry per writer of the batch. */
  readonly stored: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** What people have asked for, by run. */
  readonly controls: Readonly<Record<string, StudioControls>>;
}
