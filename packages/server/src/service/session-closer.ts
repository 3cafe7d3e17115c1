import type { Checkpoints } from "../checkpoints/checkpoints.js";
import type { Context } from "../context/context.js";
import type { LiveModels } from "../engine-host/live-models.js";
import type { Snapshots } from "../engine-host/snapshots.js";
import type { ModelLanes } from "./model-lanes.js";
import type { SampleQueue } from "./sample-queue.js";
import { closedMessage, type Sessions } from "./sessions.js";

/** Everything that a session can have left somewhere. */
export interface CloserParts {
  readonly sessions: Sessions;
  readonly lanes: ModelLanes;
  readonly lives: LiveModels;
  readonly snapshots: Snapshots;
  readonly samples: SampleQueue;
  readonly checkpoints: Checkpoints;
}

/** Ends one model whatever its client wants; what waits fails with the reason. */
export async function endModel(
  context: Context,
  parts: CloserParts,
  modelId: string,
  reason: string,
): Promise<void> {
  const { store, logger } = context;
  await store.write(() => store.models.setState(modelId, "unloaded", reason));
  await takeDown(context, parts, modelId, reason);
  logger.info("model ended", { model: modelId, reason });
}

/** Takes a model that has ended out of its lane, of memory and of the disk. */
async function takeDown(
  { store }: Context,
  { lanes, lives, snapshots }: CloserParts,
  modelId: string,
  reason: string,
): Promise<void> {
  await lanes.end(modelId, reason);
  await lives.drop(modelId);
  await snapshots.discard(await store.write(() => snapshots.forget(modelId)));
}

/**
 * Ends a session and what belongs to it: its models are unloaded, what waits fails with the reason,
 * what was kept to bring the models back and its ephemeral sampler weights are deleted. Named
 * checkpoints stay.
 */
export async function closeSession(
  context: Context,
  parts: CloserParts,
  sessionId: string,
  reason: string,
): Promise<void> {
  const { store, clock, logger } = context;
  const closedAt = clock.now();
  const message = closedMessage({ sessionId, closedAt, closeReason: reason });
  const models = await store.write(() => {
    store.sessions.close(sessionId, reason, closedAt);
    const open = store.models
      .bySession(sessionId)
      .filter(({ state }) => state === "creating" || state === "live");
    for (const { modelId } of open) store.models.setState(modelId, "unloaded", reason);
    return open;
  });
  parts.sessions.forget(sessionId);
  const owner = store.sessions.get(sessionId)?.owner ?? "";
  await parts.samples.stopSession(owner, sessionId, message);
  for (const { modelId } of models) await takeDown(context, parts, modelId, reason);
  for (const checkpoint of store.checkpoints.ephemeral()) {
    if (checkpoint.sessionId === sessionId) {
      await parts.checkpoints.remove(checkpoint, "checkpoint.dropped");
    }
  }
  logger.info("session closed", { session: sessionId, reason, models: models.length });
}
