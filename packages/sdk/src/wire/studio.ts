/*
 * What the studio's page and the server say to each other, under `/studio/api`. Both come from this
 * repository and are of one version, so this is plain JSON with the names as they are here. Numbers that
 * JSON cannot say are words.
 */

/** A number, or the word for one that JSON cannot say. */
export type StudioNumber = number | "NaN" | "Infinity" | "-Infinity";

/** Milliseconds since 1970. */
export type StudioTime = number;

/** `GET hello`: what the page has to know before anything else; the only answer without a login. */
export interface StudioHello {
  /** Version of the server; a page of another version offers to reload. */
  readonly version: string;
  /** Whether this caller has to log in first; everything below is null then. */
  readonly needsLogin: boolean;
  /** Whose things are shown. */
  readonly owner: string | null;
  /** Where this server is reached, for commands to copy. */
  readonly address: string | null;
  /** Which exhibits are kept. */
  readonly capture: StudioCapture | null;
  /** Names of the base models. */
  readonly models: readonly string[] | null;
  /** Whether the server has log folders (`--logs`). */
  readonly hasFolders: boolean | null;
  /** The other server whose runs are shown; null without one. */
  readonly remote: string | null;
}

/** Which data, rollouts and samples are kept: some of each step, all, none. */
export type StudioCapture = "sample" | "all" | "off";

/** `POST code` (with a key): a code that logs a page in once, within a minute. */
export interface StudioCode {
  /** Goes into the fragment: `/studio#code=…`. */
  readonly code: string;
  /** When it is of no use any more. */
  readonly expiresAt: StudioTime;
}

/** Body of `POST login`: one of the two. */
export interface StudioLogin {
  /** From the fragment. */
  readonly code?: string;
  /** From the form; not kept by the page. */
  readonly key?: string;
}

/** Answer of `POST login` and `POST renew`; sent as `Authorization: Bearer …`. */
export interface StudioToken {
  /** Good for everything the key may do, for an hour, as long as its key is. */
  readonly token: string;
  /** When it ends. */
  readonly expiresAt: StudioTime;
}

/** What a run is doing. */
export type StudioStatus =
  | "running"
  | "paused"
  | "idle"
  | "completed"
  | "failed"
  | "stopped"
  | "unloaded";

/** Where a run is known from: the server's own recording, a logger, a folder of files, another server. */
export type StudioSource = "server" | "log" | "folder" | "remote";

/** What is known of one metric without reading its points. */
export interface StudioSummary {
  /** The key that it was logged under. */
  readonly key: string;
  /** First value. */
  readonly first: StudioNumber;
  /** Last value. */
  readonly last: StudioNumber;
  /** Mean of the last values with a half-life of ten steps. */
  readonly smoothedLast: StudioNumber;
  /** Least finite value; null without one. */
  readonly min: number | null;
  /** Largest finite value; null without one. */
  readonly max: number | null;
  /** Points that are not finite. */
  readonly nonFinite: number;
}

/** One run of the list. */
export interface StudioRun {
  /** Its id: a model's id for `server`; contains `:`, so encode it in paths. */
  readonly id: string;
  /** What people call it. */
  readonly name: string;
  /** Where it is known from. */
  readonly source: StudioSource;
  /** What is done: told by the losses and the configuration. */
  readonly kind: "supervised" | "rl" | "preference" | "unknown";
  /** Runs that belong together. */
  readonly group: string | null;
  /** Labels. */
  readonly tags: readonly string[];
  /** The base model, where known. */
  readonly baseModel: string | null;
  /** Rank of the adapter, where known. */
  readonly rank: number | null;
  /** What it is doing. */
  readonly status: StudioStatus;
  /** Why, in the server's own words. */
  readonly statusReason: string | null;
  /** Optimizer steps done, or the last logged step. */
  readonly step: number;
  /** How far it is, from 0 to 1, where the loop tells. */
  readonly progress: number | null;
  /** The loss per token that was trained on. */
  readonly nll: StudioSummary | null;
  /** The reward of the rollouts. */
  readonly reward: StudioSummary | null;
  /** Tokens per second over the last steps. */
  readonly tokensPerSecond: number | null;
  /** The nll (else the reward) from beginning to end in at most 32 means; null where nothing was finite. */
  readonly curve: readonly (number | null)[];
  /** Models that belong to it. */
  readonly models: readonly string[];
  /** The checkpoint that it began from: `tinker://…`. */
  readonly parent: string | null;
  /** Which start of the program this is, from 1. */
  readonly attempt: number;
  /** Records that its logger had to drop. */
  readonly dropped: number;
  /** Stays on top, and is kept when room is made. */
  readonly isPinned: boolean;
  /** When it was put away; null when it was not. */
  readonly archivedAt: StudioTime | null;
  /** When it began. */
  readonly createdAt: StudioTime;
  /** When something happened last. */
  readonly updatedAt: StudioTime;
}

/** `GET runs?q&sort&cursor&limit&archived`. */
export interface StudioRuns {
  /** The runs of this page. */
  readonly runs: readonly StudioRun[];
  /** Asks for the next ones; null at the end. */
  readonly cursor: string | null;
}

/** One series of a run. */
export interface StudioSeriesInfo {
  /** Its name. */
  readonly key: string;
  /** Who wrote it: the server itself or a logger. */
  readonly by: "server" | "log";
  /** Points of all attempts. */
  readonly count: number;
  /** The last x. */
  readonly lastX: number;
  /** First, last, least and largest value. */
  readonly summary: StudioSummary;
}

/** Something that happened at a step. */
export interface StudioMark {
  /** The step. */
  readonly x: number;
  /** When. */
  readonly at: StudioTime;
  /** What kind of thing. */
  readonly kind: "failed" | "checkpoint" | "loaded" | "attempt" | "paused" | "resumed" | "stopped";
  /** What happened, in words. */
  readonly text: string;
  /** The request that failed or the path of the checkpoint. */
  readonly subject: string | null;
}

/** A checkpoint and what is known of it. */
export interface StudioCheckpoint {
  /** `tinker://RUN/weights/NAME`. */
  readonly path: string;
  /** The model it is of. */
  readonly model: string;
  /** The run it is shown with. */
  readonly run: string;
  /** The name of that run. */
  readonly runName: string;
  /** Its name. */
  readonly name: string;
  /** With an optimizer and to go on from, or to sample from. */
  readonly kind: "training" | "sampler";
  /** The base model. */
  readonly baseModel: string;
  /** Rank of the adapter. */
  readonly rank: number;
  /** Optimizer steps that it had. */
  readonly step: number | null;
  /** The nll of the last pass before it. */
  readonly nll: StudioNumber | null;
  /** Size of its files. */
  readonly sizeBytes: number;
  /** Whether everyone may use it. */
  readonly isPublic: boolean;
  /** When it was saved. */
  readonly createdAt: StudioTime;
  /** When it will be deleted; null for never. */
  readonly expiresAt: StudioTime | null;
  /** The checkpoint that its model began from. */
  readonly parent: string | null;
  /** Models and samplers that use it now. */
  readonly usedBy: readonly string[];
  /** Whether it is on another server, where alone something can be done with it. */
  readonly isRemote: boolean;
}

/** `GET checkpoints?run`. */
export interface StudioCheckpoints {
  /** Newest first. */
  readonly checkpoints: readonly StudioCheckpoint[];
  /** Bytes of all of them. */
  readonly totalBytes: number;
}

/** `GET runs/{id}`: one run with everything but points and exhibits. */
export interface StudioRunDetail extends StudioRun {
  /** What it was configured with: nested as it was given; `_` keys are the logger's own. */
  readonly config: unknown;
  /** Every series it has. */
  readonly series: readonly StudioSeriesInfo[];
  /** What happened at which step. */
  readonly marks: readonly StudioMark[];
  /** Its checkpoints, oldest first. */
  readonly checkpoints: readonly StudioCheckpoint[];
  /** Steps that have exhibits, by kind, in order. */
  readonly exhibitSteps: Readonly<Record<StudioExhibitKind, readonly number[]>>;
  /** What a person has asked its loop for. */
  readonly controls: StudioControls;
  /** Whether a logger listens to controls. */
  readonly hasControls: boolean;
  /** Whether its lane is held. */
  readonly isPaused: boolean;
  /** Names of the files that can be fetched (`GET runs/{id}/files/{name}`). */
  readonly files: readonly StudioFile[];
  /** Where its folder is, where there is one. */
  readonly folder: string | null;
  /** Names under which earlier attempts ended, for the tooltip. */
  readonly attempts: readonly { readonly attempt: number; readonly firstX: number }[];
}

/** A file of a run. */
export interface StudioFile {
  /** Path within the folder. */
  readonly name: string;
  /** Its size. */
  readonly sizeBytes: number;
  /** Whether it can be shown as text; others are offered as downloads. */
  readonly isText: boolean;
}

/** What a loop is asked for; it decides when to follow and logs what it did. */
export interface StudioControls {
  /** Grows with every change. */
  readonly version: number;
  /** Stop after this step and save. */
  readonly stop: boolean;
  /** Whatever the loop has agreed to read, such as a learning rate. */
  readonly values: Readonly<Record<string, string | number | boolean>>;
}

/** Body of `POST runs/{id}/stop`. */
export interface StudioStop {
  /** `save` asks the loop; `now` unloads the models, and the loop gets an error that says so. */
  readonly how: "save" | "now";
}

/** Body of `POST runs/{id}/save`. */
export interface StudioSave {
  /**
   * The checkpoint's name.
   * @default studio-STEP
   */
  readonly name?: string;
  /**
   * What is saved.
   * @default "training"
   */
  readonly kind?: "training" | "sampler";
  /** The model, where the run has several. */
  readonly model?: string;
}

/** Answer of `POST runs/{id}/save`, when it is done. */
export interface StudioSaved {
  /** Where it is. */
  readonly path: string;
}

/** Body of `POST runs/{id}/label`; what is absent stays. */
export interface StudioLabel {
  /** At most 200 characters. */
  readonly name?: string;
  /** Null for none. */
  readonly group?: string | null;
  /** All of them. */
  readonly tags?: readonly string[];
  /** On top, and kept. */
  readonly isPinned?: boolean;
  /** Put away, or not. */
  readonly isArchived?: boolean;
}

/** Body of `POST runs/{id}/controls`; null takes a value back. */
export interface StudioSetControls {
  /** What to ask for. */
  readonly values: Readonly<Record<string, string | number | boolean | null>>;
}

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

/** A queue of one model. */
export interface StudioLane {
  /** The model. */
  readonly model: string;
  /** Its run. */
  readonly run: string;
  /** What people call that. */
  readonly runName: string;
  /** What runs now. */
  readonly running: {
    readonly kind: string;
    readonly seq: number | null;
    readonly since: StudioTime;
  } | null;
  /** Requests that wait. */
  readonly waiting: number;
  /** When the oldest of them was accepted. */
  readonly oldestAt: StudioTime | null;
  /** Why it waits, as pollers are told; null while it runs. */
  readonly note: { readonly state: string; readonly reason: string | null } | null;
  /** Whether it is held here. */
  readonly isPaused: boolean;
  /** Whether it is in memory. */
  readonly isLive: boolean;
}

/** A session. */
export interface StudioSession {
  /** Its id. */
  readonly id: string;
  /** The client's name and version. */
  readonly client: string | null;
  /** Its tags. */
  readonly tags: readonly string[];
  /** When it began. */
  readonly createdAt: StudioTime;
  /** Last sign of life. */
  readonly lastSeenAt: StudioTime;
  /** Its models. */
  readonly models: readonly string[];
}

/** Work of one slot of time. */
export interface StudioSlot {
  /** Its beginning. */
  readonly at: StudioTime;
  /** Milliseconds that requests which ended in it had waited. */
  readonly waitMs: number;
  /** Milliseconds of training. */
  readonly trainingMs: number;
  /** Milliseconds of sampling; several sequences run at once. */
  readonly samplingMs: number;
  /** Tokens trained on. */
  readonly trainedTokens: number;
  /** Tokens of prompts and answers. */
  readonly sampledTokens: number;
}

/** `GET machine`. */
export interface StudioMachine {
  /** Now. */
  readonly at: StudioTime;
  /** Since when the server runs. */
  readonly startedAt: StudioTime;
  /** The engine. */
  readonly engine: {
    readonly threads: number;
    /** What it computes on and why; null before it has started, with the first model. */
    readonly device: { readonly name: "cpu" | "gpu"; readonly reason: string } | null;
    /** Shares of the last minute, from 0 to 1. */
    readonly training: number;
    readonly sampling: number;
    readonly idle: number;
  };
  /** Memory of the process and of the machine. */
  readonly memory: {
    readonly usedBytes: number;
    readonly totalBytes: number;
    readonly freeBytes: number;
  };
  /** The disk of the data directory. */
  readonly disk: {
    readonly freeBytes: number;
    readonly totalBytes: number;
    /** Whether work is about to be lost for lack of room. */
    readonly isNearlyFull: boolean;
    /** What could be deleted, largest first. */
    readonly largest: readonly { readonly what: string; readonly sizeBytes: number }[];
  };
  /** Every model that is open. */
  readonly lanes: readonly StudioLane[];
  /** Samples. */
  readonly samples: {
    readonly running: number;
    readonly places: number;
    readonly waiting: number;
    readonly sessions: number;
    readonly note: string | null;
  };
  /** Open sessions. */
  readonly sessions: readonly StudioSession[];
  /** Base models. */
  readonly models: readonly { readonly name: string; readonly isLoaded: boolean }[];
  /** The last ten minutes in slots of ten seconds. */
  readonly timeline: readonly StudioSlot[];
  /** What the studio itself keeps. */
  readonly kept: {
    readonly seriesBytes: number;
    readonly maxSeriesBytes: number;
    readonly exhibitBytes: number;
    readonly maxExhibitBytes: number;
    readonly capture: StudioCapture;
  };
}

/** `GET usage?from&to`: what was used, by day, run and model; adds up to billing. */
export interface StudioUsage {
  /** One row per day, run and base model. */
  readonly rows: readonly {
    readonly day: string;
    readonly run: string | null;
    readonly runName: string | null;
    readonly session: string | null;
    readonly baseModel: string;
    readonly trainingTokens: number;
    readonly prefillTokens: number;
    readonly sampledTokens: number;
  }[];
}

/** A line of a run's text log. */
export interface StudioLogLine {
  /** Its number, from 0. */
  readonly n: number;
  /** When, where known. */
  readonly at: StudioTime | null;
  /** How much it matters. */
  readonly level: "info" | "warning" | "error";
  /** The line. */
  readonly text: string;
}

/** `GET runs/{id}/log?after&before&limit&level&q`: without `after` the end of it. */
export interface StudioLog {
  /** In order. */
  readonly lines: readonly StudioLogLine[];
  /** The number that the next line will have. */
  readonly next: number;
}

/** `GET runs/{id}/spans?from&to`: where the time of steps went. */
export interface StudioSpans {
  /** In order. */
  readonly steps: readonly {
    readonly step: number;
    readonly spans: readonly {
      readonly name: string;
      readonly startSeconds: number;
      readonly endSeconds: number;
    }[];
  }[];
}

/** A view that somebody has named. */
export interface StudioView {
  /** Its id. */
  readonly id: string;
  /** Its name. */
  readonly name: string;
  /** Path and query within the studio. */
  readonly query: string;
}

/** `GET views`; `POST views` takes name and query; `DELETE views/{id}`. */
export interface StudioViews {
  /** By name. */
  readonly views: readonly StudioView[];
}

/**
 * An event of `GET events?topics=…`, a stream of server-sent events: `event` is the kind, `data` the JSON
 * of the rest, `id` the cursor that `Last-Event-ID` goes on from. Topics, joined by commas: `runs` (run,
 * checkpoint, session, notice), `run:ID` (series, exhibit, log of that run), `queue`. After `reset` the page
 * asks again for what it shows.
 */
export type StudioEvent =
  | {
      /** What happened. */
      readonly kind: "reset";
      /** Why, in words. */
      readonly reason: string;
    }
  | {
      /** What happened. */
      readonly kind: "run";
      /** The run: its row, or its id. */
      readonly run: StudioRun;
    }
  | {
      /** What happened. */
      readonly kind: "removed";
      /** The run: its row, or its id. */
      readonly run: string;
    }
  | {
      /** What happened. */
      readonly kind: "series";
      /** The run: its row, or its id. */
      readonly run: string;
      /** New values. */
      readonly points: readonly StudioPoint[];
    }
  | {
      /** What happened. */
      readonly kind: "exhibit";
      /** The run: its row, or its id. */
      readonly run: string;
      /** The step. */
      readonly step: number;
      /** What was kept. */
      readonly exhibit: StudioExhibitKind;
      /** How many. */
      readonly count: number;
    }
  | {
      /** What happened. */
      readonly kind: "mark";
      /** The run: its row, or its id. */
      readonly run: string;
      /** What happened at which step. */
      readonly mark: StudioMark;
    }
  | {
      /** What happened. */
      readonly kind: "controls";
      /** The run: its row, or its id. */
      readonly run: string;
      /** What is asked for now. */
      readonly controls: StudioControls;
    }
  | {
      /** What happened. */
      readonly kind: "log";
      /** The run: its row, or its id. */
      readonly run: string;
      /** New lines; none when only that there are some is known. */
      readonly lines: readonly StudioLogLine[];
    }
  | {
      /** What happened. */
      readonly kind: "queue";
      /** All queues, whenever one has changed. */
      readonly lanes: readonly StudioLane[];
    }
  | {
      /** What happened. */
      readonly kind: "checkpoint";
      /** The checkpoint. */
      readonly path: string;
      /** What became of it. */
      readonly change: "saved" | "changed";
    }
  | {
      /** What happened. */
      readonly kind: "session";
      /** The session. */
      readonly id: string;
      /** What became of it. */
      readonly change: "opened" | "closed";
    }
  | {
      /** What happened. */
      readonly kind: "notice";
      /** How much it matters. */
      readonly level: "info" | "warning" | "error";
      /** The sentence. */
      readonly text: string;
    };

/**
 * New values at an x. A later point of the same x and attempt replaces the values it names: passes of one
 * step are merged.
 */
export interface StudioPoint {
  /** The step. */
  readonly x: number;
  /** When. */
  readonly at: StudioTime;
  /** Which start of the program. */
  readonly attempt: number;
  /** By key. */
  readonly values: Readonly<Record<string, StudioNumber>>;
}

/** The body of an answer that is an error. */
export interface StudioError {
  /** What is wrong and the way out. */
  readonly error: string;
  /** A word for programs. */
  readonly code: string;
}
