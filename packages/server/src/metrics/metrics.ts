import { monitorEventLoopDelay } from "node:perf_hooks";

/** Interval of measuring the event loop delay. */
const sampleMs = 10;

/** By then a client on the same core has read its response. */
const pauseMs = 10;

const secondBounds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];

/** The server's metrics. */
export class Metrics {
  readonly registry = new MetricsRegistry();
  readonly timeline = new Timeline();
  readonly httpRequests: Counter;
  readonly httpSeconds: Histogram;
  readonly operations: Counter;
  readonly queueSeconds: Histogram;
  readonly computeSeconds: Histogram;
  readonly tokens: Counter;
  readonly firstTokenSeconds: Histogram;
  readonly snapshots: Counter;
  readonly replays: Counter;
  readonly telemetryEvents: Counter;
  readonly ignoredFields: Counter;
  readonly #notes: (() => void)[] = [];
  readonly #eventLoop = monitorEventLoopDelay({ resolution: sampleMs });

  constructor() {
    const { registry } = this;
    this.httpRequests = registry.counter("tinker_http_requests_total", "Answers by route, status");
    this.httpSeconds = registry.histogram(
      "tinker_http_seconds",
      "Time to answer by route, long polls included",
      secondBounds,
    );
    this.operations = registry.counter("tinker_operations_total", "Finished requests by outcome");
    this.queueSeconds = registry.histogram(
      "tinker_queue_seconds",
      "Time from acceptance to the start of the work",
      secondBounds,
    );
    this.computeSeconds = registry.histogram(
      "tinker_compute_seconds",
      "Time the work itself took",
      secondBounds,
    );
    this.tokens = registry.counter("tinker_tokens_total", "Tokens by what they were used for");
    this.firstTokenSeconds = registry.histogram(
      "tinker_first_token_seconds",
      "Time from the arrival of a direct sample to its first token, by route",
      secondBounds,
    );
    this.snapshots = registry.counter("tinker_snapshots_total", "Model states written to disk");
    this.replays = registry.counter("tinker_replayed_operations_total", "Operations repeated");
    this.telemetryEvents = registry.counter("tinker_telemetry_events_total", "Events from clients");
    this.ignoredFields = registry.counter(
      "tinker_ignored_fields_total",
      "Request fields that are not known here, by client version and name",
    );
    this.#eventLoop.enable();
    registry.gauge("tinker_event_loop_delay_p99_seconds", "Since the last look", () =>
      this.#takeEventLoopDelay(),
    );
    registry.gauge("tinker_resident_bytes", "Memory of the process", () =>
      process.memoryUsage.rss(),
    );
  }

  /** Counts something later, so that no response waits for the counting. */
  later(note: () => void): void {
    if (this.#notes.length === 0) setTimeout(() => this.#catchUp(), pauseMs).unref();
    this.#notes.push(note);
  }

  /** All metrics in Prometheus' text format. */
  render(): string {
    this.#catchUp();
    return this.registry.render();
  }

  /** Counts a finished request and the time it waited and worked. */
  noteFinished(
    request: { readonly kind: string; readonly acceptedAt: number },
    state: string,
    facts: {
      readonly startedAt: number | null;
      readonly finishedAt: number;
      readonly tokens: number;
    },
  ): void {
    const { kind } = request;
    this.operations.add(1, { kind, state });
    this.tokens.add(facts.tokens, { kind });
    if (facts.startedAt === null) return;
    this.timeline.note(kind === "sample" ? "sampling" : "training", {
      endedAt: facts.finishedAt,
      waitMs: facts.startedAt - request.acceptedAt,
      tookMs: facts.finishedAt - facts.startedAt,
      tokens: facts.tokens,
    });
    this.queueSeconds.observe((facts.startedAt - request.acceptedAt) / 1000, { kind });
    this.computeSeconds.observe((facts.finishedAt - facts.startedAt) / 1000, { kind });
  }

  close(): void {
    this.#eventLoop.disable();
  }

  #catchUp(): void {
    for (const note of this.#notes.splice(0)) note();
  }

  #takeEventLoopDelay(): number {
    // The histogram records the time between two measurements; the interval itself is not delay.
    const betweenMs = this.#eventLoop.percentile(99) / 1e6;
    this.#eventLoop.reset();
    return Math.max(0, betweenMs - sampleMs) / 1000;
  }
}

type Labels = Readonly<Record<string, string>>;

interface Family {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly lines: () => string[];
}

/** A counter; `labels` distinguish several counts of one name. */
export interface Counter {
  add(amount?: number, labels?: Labels): void;
}

/** Sorts observed values into buckets. */
export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

/** Numbers about the server in Prometheus' text format. */
export class MetricsRegistry {
  readonly #families = new Map<string, Family>();

  counter(name: string, help: string): Counter {
    const values = new Map<string, number>();
    this.#families.set(name, { type: "counter", help, lines: () => linesOf(name, values) });
    return {
      add(amount = 1, labels = {}) {
        const key = formatLabels(labels);
        values.set(key, (values.get(key) ?? 0) + amount);
      },
    };
  }

  /** A number that is read on each scrape. */
  gauge(name: string, help: string, read: () => number): void {
    this.gauges(name, help, () => [{ labels: {}, value: read() }]);
  }

  /** Several values of one name, each with its labels. */
  gauges(name: string, help: string, read: () => readonly { labels: Labels; value: number }[]) {
    const lines = (): string[] =>
      read().map(({ labels, value }) => `${name}${formatLabels(labels)} ${value}`);
    this.#families.set(name, { type: "gauge", help, lines });
  }

  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    const series = new Map<string, { labels: Labels; counts: number[]; sum: number }>();
    const lines = (): string[] =>
      [...series.values()].flatMap(({ labels, counts, sum }) => {
        let total = 0;
        const buckets = [...bounds.map(String), "+Inf"].map((le, index) => {
          total += counts[index] ?? 0;
          return `${name}_bucket${formatLabels({ ...labels, le })} ${total}`;
        });
        const text = formatLabels(labels);
        return [...buckets, `${name}_sum${text} ${sum}`, `${name}_count${text} ${total}`];
      });
    this.#families.set(name, { type: "histogram", help, lines });
    return {
      observe(value, labels = {}) {
        const key = formatLabels(labels);
        let entry = series.get(key);
        if (!entry) series.set(key, (entry = { labels, counts: [], sum: 0 }));
        const found = bounds.findIndex((bound) => value <= bound);
        const index = found < 0 ? bounds.length : found;
        entry.counts[index] = (entry.counts[index] ?? 0) + 1;
        entry.sum += value;
      },
    };
  }

  /** Everything, in the text exposition format. */
  render(): string {
    return [...this.#families]
      .flatMap(([name, { type, help, lines }]) => [
        `# HELP ${name} ${help}`,
        `# TYPE ${name} ${type}`,
        ...lines(),
      ])
      .join("\n")
      .concat("\n");
  }
}

function linesOf(name: string, values: ReadonlyMap<string, number>): string[] {
  return [...values].map(([labels, value]) => `${name}${labels} ${value}`);
}

function formatLabels(labels: Labels): string {
  const parts = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replace(/["\\\n]/g, (character) => escapes[character]!)}"`,
  );
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

const escapes: Readonly<Record<string, string>> = { '"': '\\"', "\\": "\\\\", "\n": "\\n" };

/** Work in one time slot. */
export interface Slot {
  readonly at: number;
  waitMs: number;
  trainingMs: number;
  samplingMs: number;
  trainedTokens: number;
  sampledTokens: number;
}

/** Length of a slot. */
export const slotMs = 10_000;
const maxSlots = 60;

/** The engine's work in the last ten minutes, by end time. */
export class Timeline {
  readonly #slots = new Map<number, Slot>();

  /** Counts finished work. */
  note(
    kind: "training" | "sampling",
    work: {
      readonly endedAt: number;
      readonly waitMs: number;
      readonly tookMs: number;
      readonly tokens: number;
    },
  ): void {
    const slot = this.#slotAt(work.endedAt);
    slot.waitMs += work.waitMs;
    if (kind === "training") {
      slot.trainingMs += work.tookMs;
      slot.trainedTokens += work.tokens;
    } else {
      slot.samplingMs += work.tookMs;
      slot.sampledTokens += work.tokens;
    }
  }

  /** The slots up to now, empty ones too, oldest first. */
  slots(now: number): Slot[] {
    const last = Math.floor(now / slotMs) * slotMs;
    return Array.from({ length: maxSlots }, (_, index) => {
      const at = last - (maxSlots - 1 - index) * slotMs;
      return this.#slots.get(at) ?? emptySlot(at);
    });
  }

  #slotAt(time: number): Slot {
    const at = Math.floor(time / slotMs) * slotMs;
    let slot = this.#slots.get(at);
    if (!slot) {
      this.#slots.set(at, (slot = emptySlot(at)));
      for (const known of this.#slots.keys()) {
        if (known < at - maxSlots * slotMs) this.#slots.delete(known);
      }
    }
    return slot;
  }
}

function emptySlot(at: number): Slot {
  return { at, waitMs: 0, trainingMs: 0, samplingMs: 0, trainedTokens: 0, sampledTokens: 0 };
}
