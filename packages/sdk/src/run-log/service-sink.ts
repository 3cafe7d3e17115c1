import type { LogEntry, LogsAnswer } from "../wire/log-lines.js";
import type { StudioControls } from "../wire/studio.js";
import type { LineValue } from "./folder-writer.js";
import type { RunRecord, RunSink } from "./run-record.js";

/** Something that takes lines of a run's log; `service.createRestClient()` does. */
export interface LogPort {
  /** Sends lines of JSON. */
  postLogs(lines: string, options?: { readonly signal?: AbortSignal }): Promise<LogsAnswer>;
}

/** How a run is sent to a server. */
export interface ServiceSinkOptions {
  /** The run's id; the same one goes on with the same run. */
  readonly run: string;
  /** What people call it. */
  readonly name?: string | undefined;
  /** Runs that belong together. */
  readonly group?: string | undefined;
  /** Labels. */
  readonly tags?: readonly string[] | undefined;
  /** Called once with the first problem. */
  readonly onProblem?: ((problem: string) => void) | undefined;
}

const maxWaiting = 4096;
const maxBatch = 256;
const maxBatchLength = 2_000_000;
const flushMs = 250;
const closeMs = 5000;
const mostPatienceMs = 30_000;

/**
 * Sends a run to a server, which shows it live in the studio.
 *
 * - Nothing waits for it: records go out four times a second, and when the server is away they wait, up to a
 *   bound, and go out when it is back. Every line has a number, so that none is stored twice.
 * - Every answer brings what people have asked for.
 */
export class ServiceSink implements RunSink {
  readonly #port: LogPort;
  readonly #options: ServiceSinkOptions;
  readonly #writer = crypto.randomUUID().slice(0, 12);
  readonly #stopping = new AbortController();
  #waiting: { readonly n: number; readonly text: string }[] = [];
  #count = 0;
  /** Records that there was no room for. */
  #dropped = 0;
  #refused = 0;
  #controls: StudioControls = { version: 0, stop: false, values: {} };
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #patienceMs = flushMs;
  /** Records that go out together; fewer while the server refuses them, so that one bad record costs itself only. */
  #batchSize = maxBatch;
  #isOver = false;

  constructor(port: LogPort, options: ServiceSinkOptions) {
    this.#port = port;
    this.#options = options;
  }

  /** What people have asked for in the studio. */
  get controls(): StudioControls {
    return this.#controls;
  }

  /** Aborted when a user has asked the run to stop and save. */
  get stopRequested(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Records that had to be dropped. */
  get dropped(): number {
    return this.#dropped + this.#refused;
  }

  /** Takes one record. */
  log(record: RunRecord): void {
    const entry = this.#toEntry(record);
    if (!entry || this.#isOver) return;
    if (this.#waiting.length >= maxWaiting) {
      this.#dropped++;
      return;
    }
    const n = ++this.#count;
    const line = { run: this.#options.run, writer: this.#writer, n, ...entry };
    this.#waiting.push({ n, text: `${JSON.stringify(line, words)}\n` });
    if (this.#waiting.length >= maxBatch) this.#send();
    else this.#schedule(flushMs);
  }

  /** Sends what waits, for five seconds at most. */
  async close(): Promise<void> {
    const deadline = Date.now() + closeMs;
    while (this.#waiting.length > 0 && !this.#isOver && Date.now() < deadline) {
      this.#send();
      // The timer keeps the process alive: `close` waits for the end of this.
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, deadline - Date.now());
      });
      await Promise.race([this.#sending, late]);
      clearTimeout(timer);
      if (this.#waiting.length > 0 && this.#patienceMs > flushMs) {
        await new Promise<void>((resolve) => {
          setTimeout(resolve, Math.min(this.#patienceMs, Math.max(0, deadline - Date.now())));
        });
      }
    }
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #toEntry(record: RunRecord): LogEntry | undefined {
    switch (record.kind) {
      case "open": {
        const { name, group, tags } = this.#options;
        const { config, attempt, folder } = record;
        const facts = { name, group: group ?? null, tags, config, attempt };
        return { kind: "open", ...facts, folder: folder === "" ? null : folder };
      }
      case "metrics":
        return {
          kind: "metrics",
          step: record.step,
          time: record.time,
          metrics: record.metrics,
        };
      case "checkpoint": {
        const { name, final, statePath: state, samplerPath: sampler, batch } = record.row;
        return { kind: "checkpoint", name, final, state, sampler, step: batch };
      }
      case "spans": {
        const spans = record.spans.map(({ name, startSeconds, endSeconds }) => ({
          name,
          start: startSeconds,
          end: endSeconds,
        }));
        return { kind: "span", step: record.step, spans };
      }
      case "text":
        return { kind: "text", text: record.text, level: record.level, time: Date.now() / 1000 };
      case "watch":
        return { kind: "watch", model: record.model };
      case "rollouts":
        return {
          kind: "rollouts",
          step: record.step,
          split: record.split,
          rollouts: record.groups.flatMap((rollouts, group) =>
            rollouts.map(({ stopReason, ...rollout }, index) => ({
              group,
              index,
              ...rollout,
              stop: stopReason,
              tokens: list(rollout.tokens),
              mask: list(rollout.mask),
              logprobs: list(rollout.logprobs),
              advantages: list(rollout.advantages),
              entropies: list(rollout.entropies),
            })),
          ),
        };
      case "examples":
        return {
          kind: "examples",
          step: record.step,
          split: record.split,
          examples: record.examples.map(({ tokens, weights, logprobs }, index) => ({
            index,
            tokens: list(tokens) ?? [],
            weights: list(weights),
            logprobs: list(logprobs),
          })),
        };
      case "close": {
        const { status, reason } = record;
        return { kind: "close", status, reason, dropped: this.dropped };
      }
    }
  }

  #schedule(ms: number): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#send();
    }, ms);
    this.#timer.unref();
  }

  #send(): void {
    if (this.#sending || this.#isOver || this.#waiting.length === 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending = this.#sendNow().finally(() => {
      this.#sending = undefined;
      const isSearching = this.#batchSize < maxBatch && this.#patienceMs === flushMs;
      if (this.#waiting.length > 0) this.#schedule(isSearching ? 0 : this.#patienceMs);
    });
  }

  async #sendNow(): Promise<void> {
    const batch: string[] = [];
    let length = 0;
    for (const { text } of this.#waiting.slice(0, this.#batchSize)) {
      if (batch.length > 0 && length + text.length > maxBatchLength) break;
      batch.push(text);
      length += text.length;
    }
    try {
      const answer = await this.#port.postLogs(batch.join(""));
      this.#patienceMs = flushMs;
      this.#batchSize = Math.min(maxBatch, this.#batchSize * 2);
      const { run } = this.#options;
      const stored = answer.stored[run]?.[this.#writer] ?? 0;
      this.#waiting = this.#waiting.filter(({ n }) => n > stored);
      const controls = answer.controls[run];
      if (controls) this.#controls = controls;
      if (controls?.stop) this.#stopping.abort(new Error("stop and save was asked for"));
    } catch (error) {
      this.#problem(error, batch.length);
    }
  }

  /** A server that is away comes back; one that does not take logs never will. */
  #problem(error: unknown, count: number): void {
    const status = (error as { readonly status?: unknown }).status;
    if (status === 404 || status === 405) {
      this.#isOver = true;
      this.#waiting = [];
      this.#options.onProblem?.("this server keeps no logs of runs; they are in the files only");
    } else if (status === 400 || status === 413) {
      // One of these lines will never be taken; the others may be.
      this.#batchSize = Math.ceil(count / 2);
      if (count > 1) return;
      this.#waiting.shift();
      // A problem becomes a record itself, which may be refused too.
      if (this.#refused++ > 0) return;
      this.#options.onProblem?.(`the server refused a record: ${String(error)}`);
    } else {
      this.#patienceMs = Math.min(mostPatienceMs, this.#patienceMs * 2);
    }
  }
}

function list(values: ArrayLike<number> | undefined): number[] | undefined {
  return values && Array.from(values);
}

/** Numbers that JSON cannot say are words. */
function words(_key: string, value: LineValue): LineValue {
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}
