import { decodeJson } from "tinker-ts/wire";
import type { Checkpoints } from "../checkpoints/checkpoints.js";
import type { Context } from "../context/context.js";
import type { Snapshots } from "../engine-host/snapshots.js";
import type { RequestHead } from "../store/requests-table.js";
import type { ModelLanes } from "./model-lanes.js";
import type { SampleQueue } from "./sample-queue.js";
import type { Sessions } from "./sessions.js";

/** What is filled again after a start. */
export interface RecoveryParts {
  readonly sessions: Sessions;
  readonly lanes: ModelLanes;
  readonly snapshots: Snapshots;
  readonly samples: SampleQueue;
  readonly checkpoints: Checkpoints;
}

/**
 * Continues where the last process ended, however it ended.
 *
 * - Files that no record names are leftovers of a crash and go.
 * - Models get their lanes back; their states are brought back when their next request runs.
 * - Requests that were accepted and not finished are queued again.
 */
export async function recover(context: Context, parts: RecoveryParts): Promise<void> {
  const { store, logger } = context;
  await store.write(() => endOrphans(context, parts));
  const removed =
    (await store.blobs.removeOthers(store.retention.blobs())) +
    (await parts.snapshots.removeOrphans()) +
    (await parts.checkpoints.folders.removeOthers(store.checkpoints.folders()));
  for (const model of store.models.open()) parts.lanes.open(model);
  const pending = store.requests.pending();
  for (const request of pending) {
    context.ledger.resume(request);
    await requeue(context, parts, request);
  }
  if (pending.length > 0 || removed > 0) {
    logger.info("continuing after a restart", { pending: pending.length, leftovers: removed });
  }
}

/** Finishes the closing of sessions that a crash has interrupted. */
function endOrphans({ store }: Context, { sessions }: RecoveryParts): void {
  for (const { modelId, sessionId } of store.models.open()) {
    if (!sessions.isOpen(sessionId)) store.models.setState(modelId, "unloaded", "session closed");
  }
  store.journal.dropEnded();
  store.snapshots.removeEnded();
}

async function requeue(
  context: Context,
  { lanes, samples, sessions }: RecoveryParts,
  request: RequestHead,
): Promise<void> {
  const { ledger, clock } = context;
  const { kind, sessionId, modelId } = request;
  const isOpen = sessionId === null || sessions.isOpen(sessionId);
  const lane = lanes.get(modelId ?? "");
  if (isOpen && kind === "sample") {
    const { numSamples } = decodeJson("SampleRequest", await ledger.payload(request.requestId));
    samples.add({ request, numSamples });
  } else if (isOpen && lane) {
    lane.add(request);
  } else {
    const error = isOpen ? `model ${modelId} has ended` : `session ${sessionId} was closed`;
    await ledger.finish(
      request,
      { state: "failed", error, category: "user" },
      { startedAt: null, finishedAt: clock.now(), applied: null, tokens: 0 },
    );
  }
}
