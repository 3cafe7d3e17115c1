import { monitorEventLoopDelay } from "node:perf_hooks";
import { MetricsRegistry, type Counter, type Histogram } from "./registry.js";
import { Timeline } from "./timeline.js";

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
