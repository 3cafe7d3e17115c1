import { option, type OptionsOf } from "../errors/check-options.js";
import { systemClock, type Clock } from "./clock.js";
import type { Environment } from "./environment.js";
import { EventHub, type ClientEvent } from "./events.js";
import { defaultLogger, type Logger } from "./logger.js";
import { platform } from "./platform.js";

/** The environment of a client; every part can be replaced. */
export interface Runtime {
  readonly clock: Clock;
  /** Uniform in [0, 1); spreads retries over time. */
  readonly random: () => number;
  readonly env: Environment;
  readonly logger: Logger;
  readonly events: EventHub;
  readonly retries: RetryReports;
}

/** The fields of `RuntimeOptions`. */
export const runtimeOptions = {
  /** Time and timers; by default the computer's own. */
  clock: option<Clock>(),
  /**
   * Uniform in [0, 1); spreads retries over time.
   * @default Math.random
   */
  random: option<() => number>(),
  /**
   * Environment variables, such as `TINKER_API_KEY`.
   * @default process.env
   */
  env: option<Environment>(),
  /** Where messages for people go; by default warnings and errors to stderr, more with `TINKER_LOG`. */
  logger: option<Logger>(),
};

/** Parts of a `Runtime` that a caller may give. */
export interface RuntimeOptions extends OptionsOf<typeof runtimeOptions> {}

/** Creates the environment of one client. */
export function createRuntime(options: RuntimeOptions = {}): Runtime {
  const env = options.env ?? platform.env;
  const logger = options.logger ?? defaultLogger(env);
  const clock = options.clock ?? systemClock;
  const events = new EventHub(logger);
  return {
    clock,
    random: options.random ?? Math.random,
    env,
    logger,
    events,
    retries: new RetryReports(clock, logger, events),
  };
}

/** Something that is tried again. */
type Retry = Omit<Extract<ClientEvent, { type: "retry" }>, "type">;

const minLoggedDelayMs = 2_000;
const logEveryMs = 60_000;
const paymentRequired = 402;

/**
 * Reports every retry to listeners, and logs those that matter: waits grow with every failure, so a wait
 * of two seconds means that something has failed several times in a row. The log gets one line a minute
 * for the whole client; a client that goes on for hours without a line looks like a hang.
 */
class RetryReports {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #events: EventHub;
  #lastLoggedAt = Number.NEGATIVE_INFINITY;
  #latest: { readonly retry: Retry; readonly at: number } | undefined;

  constructor(clock: Clock, logger: Logger, events: EventHub) {
    this.#clock = clock;
    this.#logger = logger;
    this.#events = events;
  }

  /**
   * Retries of background work are not logged, because no caller waits for it. What is repeated at short
   * intervals is logged however short they are.
   */
  report(retry: Retry, { isBackground = false, isRepeated = false } = {}): void {
    if (this.#events.isActive) this.#events.emit({ type: "retry", ...retry });
    const { endpoint, status, message, delayMs } = retry;
    const now = this.#clock.now();
    if (!isBackground) this.#latest = { retry, at: now };
    // The billing pause logs what is unpaid.
    if (isBackground || status === paymentRequired) return;
    if (delayMs < minLoggedDelayMs && !isRepeated) return;
    if (now - this.#lastLoggedAt < logEveryMs) return;
    this.#lastLoggedAt = now;
    this.#logger.warn(
      `${endpoint} keeps failing and is tried again in ${(delayMs / 1000).toFixed(0)} s: ${message}`,
    );
  }

  /** The last failure since a moment, as a sentence for an error about time that ran out. */
  lastFailureSince(startedAt: number): string {
    if (!this.#latest || this.#latest.at < startedAt) return "";
    const { endpoint, message } = this.#latest.retry;
    return ` The last failure, of ${endpoint}: ${message}`;
  }
}
