import type { Runtime } from "../runtime/runtime.js";
import type { QueueState } from "../types/futures.js";

const logEveryMs = 60_000;
const outOfCapacity = "Tinker backend is running short on capacity, please wait";

/** What is paused, in words. */
export interface QueueSubject {
  readonly activity: "Model creation" | "Training" | "Sampling";
  /** The model, base model or sampling session. */
  readonly name: string;
}

/** Logs, at most once a minute, that requests wait at the server and why. */
export class QueueStateLog {
  readonly #runtime: Runtime;
  readonly #subject: QueueSubject;
  #lastLoggedAt: number | undefined;

  constructor(runtime: Runtime, subject: QueueSubject) {
    this.#runtime = runtime;
    this.#subject = subject;
  }

  /** Notes a state; returns the reason in words, null while nothing is paused. */
  report(queueState: QueueState, reason: string | null, requestId: string): string | null {
    const { clock, logger, events } = this.#runtime;
    const { activity, name } = this.#subject;
    if (events.isActive) {
      events.emit({ type: "queueState", subject: name, requestId, queueState, reason });
    }
    if (queueState === "active") return null;
    const words = reason ?? this.#defaultReason(queueState);
    const now = clock.now();
    if (this.#lastLoggedAt === undefined || now - this.#lastLoggedAt >= logEveryMs) {
      this.#lastLoggedAt = now;
      logger.warn(`${activity} is paused for ${name}. Reason: ${words}`);
    }
    return words;
  }

  #defaultReason(queueState: QueueState): string {
    if (queueState === "paused_capacity") return outOfCapacity;
    if (queueState !== "paused_rate_limit") return "unknown";
    return this.#subject.activity === "Sampling"
      ? "concurrent sampler weights limit hit"
      : "concurrent training clients rate limit hit";
  }
}
