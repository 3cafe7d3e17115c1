import { RunLog, type Line } from "tinker-ts/run-log";
import { checkSameRun } from "./open-training.js";
import type { RunOptions } from "./run-options.js";

/**
 * Does a run's work with its log open, which the service shows in its studio. A folder whose run has another
 * value for one of `fixed` is refused; an error is also written down. The signal ends the work after a step: the
 * caller's own, or somebody who asks for it in the studio.
 */
export async function withRunLog<T>(
  options: Pick<RunOptions, "folder" | "ifExists" | "sinks" | "service" | "signal">,
  config: Line,
  fixed: readonly string[],
  work: (log: RunLog, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { folder, ifExists, sinks, service } = options;
  const log = await RunLog.open({ folder, ifExists, sinks, service, config });
  try {
    checkSameRun(
      log,
      Object.fromEntries(fixed.map((name) => [name, config[name] as string | number])),
    );
    return await work(log, anyOf(options.signal, log.stopRequested));
  } catch (error) {
    log.fail(error);
    throw error;
  } finally {
    await log.close();
  }
}

function anyOf(given: AbortSignal | undefined, asked: AbortSignal): AbortSignal {
  return given ? AbortSignal.any([given, asked]) : asked;
}
