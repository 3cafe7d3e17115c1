import type { StudioControls } from "./studio.js";

/*
 * `POST /api/v1/logs`: lines of JSON, each with the run, its writer and the writer's count. The names are
 * single words, because programs of any language write them. Numbers that JSON cannot say are "NaN",
 * "Infinity" and "-Infinity".
 */

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

/** What a line says. */
export type LogEntry =
  | {
      /** The run begins or goes on; must be a writer's first line. */
      readonly kind: "open";
      readonly name?: string | undefined;
      readonly group?: string | null | undefined;
      readonly tags?: readonly string[] | undefined;
      readonly config?: unknown;
      /** Which start of the program this is, from 1; without it, the next one. */
      readonly attempt?: number | undefined;
      /** Where its files are. */
      readonly folder?: string | null | undefined;
      /** Models of this server whose series, checkpoints and samples belong to the run. */
      readonly models?: readonly string[] | undefined;
      readonly time?: number | undefined;
    }
  | {
      /** A model belongs to the run. */
      readonly kind: "watch";
      readonly model: string;
    }
  | {
      readonly kind: "metrics";
      /** Without it, the last one. */
      readonly step?: number | undefined;
      /** Seconds since 1970. */
      readonly time?: number | undefined;
      readonly metrics: Readonly<Record<string, LogValue | undefined>>;
    }
  | {
      readonly kind: "rollouts";
      readonly step: number;
      /** @default "train" */
      readonly split?: string | undefined;
      readonly rollouts: readonly LogRollout[];
    }
  | {
      readonly kind: "examples";
      readonly step: number;
      /** @default "train" */
      readonly split?: string | undefined;
      readonly examples: readonly LogExample[];
    }
  | {
      readonly kind: "checkpoint";
      readonly name: string;
      readonly step?: number | undefined;
      readonly final?: boolean | undefined;
      readonly state?: string | undefined;
      readonly sampler?: string | undefined;
    }
  | {
      readonly kind: "span";
      readonly step: number;
      readonly spans: readonly {
        readonly name: string;
        /** Seconds since the first span of the step. */
        readonly start: number;
        readonly end: number;
      }[];
    }
  | {
      readonly kind: "text";
      readonly text: string;
      /** @default "info" */
      readonly level?: "info" | "warning" | "error" | undefined;
      readonly time?: number | undefined;
    }
  | {
      /** The program ends. */
      readonly kind: "close";
      /** @default "completed" */
      readonly status?: "completed" | "failed" | "stopped" | undefined;
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
  readonly reward: LogValue;
  readonly advantage?: LogValue | undefined;
  readonly stop?: string | undefined;
  /** The whole sequence: prompts, answers, results of tools. */
  readonly tokens?: readonly number[] | undefined;
  /** 1 for tokens that were sampled, else 0; as long as `tokens`. */
  readonly mask?: readonly number[] | undefined;
  /** While sampling; as long as `tokens`, 0 where not sampled. */
  readonly logprobs?: readonly LogValue[] | undefined;
  /** Per token, where it differs from `advantage`. */
  readonly advantages?: readonly LogValue[] | undefined;
  /** The text, where there are no tokens. */
  readonly text?: string | undefined;
  readonly messages?: readonly { readonly role: string; readonly content: string }[] | undefined;
  readonly metrics?: Readonly<Record<string, LogValue | undefined>> | undefined;
  readonly logs?: readonly string[] | undefined;
  /** Names the model whose tokenizer reads `tokens`. */
  readonly model?: string | undefined;
}

/** One example that is trained on. */
export interface LogExample {
  readonly index: number;
  /** The whole sequence: the input, and the last target. */
  readonly tokens: readonly number[];
  /** Per token; the first has none, so 0. */
  readonly weights?: readonly number[] | undefined;
  readonly logprobs?: readonly LogValue[] | undefined;
  readonly model?: string | undefined;
}

/** The answer to `POST /api/v1/logs`. */
export interface LogsAnswer {
  /** The last count of each writer that is stored: `{ RUN: { WRITER: n } }` has one entry per writer of the batch. */
  readonly stored: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** What people have asked for, by run. */
  readonly controls: Readonly<Record<string, StudioControls>>;
}
