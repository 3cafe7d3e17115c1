import type { Session } from "../session/session.js";

const timeoutMs = 5_000;

/**
 * Unloads a model that nobody will use. The server may end the whole session with it, so this is done
 * only when nothing else lives in the session; the next client then opens a new one.
 */
export async function abandonModel(
  session: Session,
  modelId: string,
  isLastOfSession: boolean,
): Promise<void> {
  const { runtime, connection, closed } = session;
  if (!isLastOfSession) {
    runtime.logger.warn(
      `model ${modelId} was given up while it was being made; the server may keep it until the session ends`,
    );
    return;
  }
  session.stop();
  const giveUp = new AbortController();
  const cancelTimer = runtime.clock.schedule(timeoutMs, () => giveUp.abort());
  try {
    await connection.api.submit(
      "unloadModel",
      { modelId },
      { signal: AbortSignal.any([closed, giveUp.signal]), maxRetries: 1 },
    );
  } catch (error) {
    runtime.logger.debug(`could not unload ${modelId}: ${String(error)}`);
  } finally {
    cancelTimer();
  }
}
