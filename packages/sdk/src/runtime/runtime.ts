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
  readonly clock?: Clock | undefined;
  readonly random?: (() => number) | undefined;
  readonly env?: Environment | undefined;
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
