import { systemClock, type Clock } from "./clock.js";
import type { Environment } from "./environment.js";
import { EventHub } from "./events.js";
import { defaultLogger, type Logger } from "./logger.js";
import { platform } from "./platform.js";
import { RetryReports } from "./retry-reports.js";

/** What a client takes from its surroundings; every part can be replaced. */
export interface Runtime {
  readonly clock: Clock;
  /** Uniform in [0, 1); spreads retries over time. */
  readonly random: () => number;
  readonly env: Environment;
  readonly logger: Logger;
  readonly events: EventHub;
  readonly retries: RetryReports;
}

/** Parts of a `Runtime` that a caller may give. */
export interface RuntimeOptions {
  /** Time and timers; by default the computer's own. */
  readonly clock?: Clock | undefined;
  /**
   * Uniform in [0, 1); spreads retries over time.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
  /**
   * Environment variables, such as `TINKER_API_KEY`.
   * @default process.env
   */
  readonly env?: Environment | undefined;
  /** Where messages for people go; by default warnings and errors to stderr, more with `TINKER_LOG`. */
  readonly logger?: Logger | undefined;
}

/** The surroundings of one client. */
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
