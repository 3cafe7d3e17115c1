import { ArgumentError } from "../errors/argument-error.js";
import { checkOptions, option, type OptionsOf } from "../errors/check-options.js";

const retryConfigOptions = {
  /**
   * Fails all samples of a client when none made progress for this long.
   * @default 7200000
   */
  progressTimeoutMs: option<number>(),
  /**
   * Wait after the first failure in milliseconds; doubles with each further one.
   * @default 500
   */
  retryDelayBaseMs: option<number>(),
  /**
   * Longest wait between two tries in milliseconds.
   * @default 10000
   */
  retryDelayMaxMs: option<number>(),
  /**
   * Share of the delay that is random.
   * @default 0.25
   */
  jitterFactor: option<number>(),
  /**
   * False makes every sample once.
   * @default true
   */
  enableRetries: option<boolean>(),
  /**
   * False lets samples wait without end when nothing makes progress.
   * @default true
   */
  enableStuckDetection: option<boolean>(),
  /** Decides what is tried again; by default lost connections, expired results, 408, 409, 429 and 5xx. */
  isRetryable: option<(error: unknown) => boolean>(),
};

/** How samples are tried again. */
export interface RetryConfig extends OptionsOf<typeof retryConfigOptions> {}

/** A complete and checked `RetryConfig`. */
export type CompleteRetryConfig = Readonly<
  Record<"progressTimeoutMs" | "retryDelayBaseMs" | "retryDelayMaxMs" | "jitterFactor", number> &
    Record<"enableRetries" | "enableStuckDetection", boolean> &
    Pick<RetryConfig, "isRetryable">
>;

/** Fills defaults in and refuses what cannot be meant. */
export function completeRetryConfig(config: RetryConfig = {}): CompleteRetryConfig {
  checkOptions(config, [retryConfigOptions], "retryConfig");
  const complete: CompleteRetryConfig = {
    progressTimeoutMs: config.progressTimeoutMs ?? 7_200_000,
    retryDelayBaseMs: config.retryDelayBaseMs ?? 500,
    retryDelayMaxMs: config.retryDelayMaxMs ?? 10_000,
    jitterFactor: config.jitterFactor ?? 0.25,
    enableRetries: config.enableRetries ?? true,
    enableStuckDetection: config.enableStuckDetection ?? true,
    isRetryable: config.isRetryable,
  };
  const check = (name: keyof RetryConfig, isValid: boolean, wanted: string): void => {
    if (!isValid) throw new ArgumentError(`retryConfig.${name}`, `must be ${wanted}`);
  };
  check("progressTimeoutMs", complete.progressTimeoutMs > 0, "above 0");
  check("retryDelayBaseMs", complete.retryDelayBaseMs >= 0, "0 or more");
  check("retryDelayMaxMs", complete.retryDelayMaxMs >= 0, "0 or more");
  check("jitterFactor", complete.jitterFactor >= 0 && complete.jitterFactor <= 1, "from 0 to 1");
  return complete;
}
