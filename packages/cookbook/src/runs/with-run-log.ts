import { RunLog, type Line } from "tinker-ts/run-log";
import { checkSameRun } from "./open-training.js";
import type { RunOptions } from "./run-options.js";

/**
 * Does a run's work with its log open. A folder whose run has another value for one of `fixed` is refused; an
 * error is also written down.
 */
export async function withRunLog<T>(
  { folder, ifExists, sinks }: Pick<RunOptions, "folder" | "ifExists" | "sinks">,
  config: Line,
  fixed: readonly string[],
  work: (log: RunLog) => Promise<T>,
): Promise<T> {
  const log = await RunLog.open({ folder, ifExists, sinks, config });
  try {
    checkSameRun(
      log,
      Object.fromEntries(fixed.map((name) => [name, config[name] as string | number])),
    );
    return await work(log);
  } catch (error) {
    log.text(String(error), "error");
    throw error;
  } finally {
    await log.close();
  }
}
