import { decodeJson } from "tinker-ts/wire";
import { LostAndFound } from "../checkpoints/lost-and-found.js";
import type { UnknownFolder } from "../checkpoints/state-folders.js";
import type { Store } from "../store/store.js";
import type { Checkpoints } from "../checkpoints/checkpoints.js";
import type { Journal } from "../journal/journal.js";
import type { Logger } from "../log/logger.js";
import type { Sampler } from "../sampling/sampler.js";
import type { Sessions } from "../sessions/sessions.js";
import type { RequestRow } from "../store/requests-table.js";
import type { Clock } from "../time/clock.js";
import type { Snapshots } from "../training/snapshots.js";
import type { TrainingRuns } from "../training/training-runs.js";

/** What is filled again after a start. */
export interface RecoveryParts {
  readonly store: Store;
  readonly journal: Journal;
  readonly sessions: Sessions;
  readonly runs: TrainingRuns;
  readonly snapshots: Snapshots;
  readonly sampler: Sampler;
  readonly checkpoints: Checkpoints;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Continues where the last process ended, however it ended.
 *
 * - Files that no record names go when it is known why they are there. What cannot be accounted for is kept
 *   in `lost-and-found`.
 * - The runs of open models are opened; their states are brought back when their next request runs.
 * - Requests that were accepted and not finished are queued again.
 */
export async function recover(parts: RecoveryParts): Promise<void> {
  const { store, journal, runs, logger } = parts;
  await store.write(() => endOrphans(parts));
  const removed = await tidyUp(parts);
  for (const model of store.models.open()) runs.open(model);
  const pending = store.requests.pending();
  for (const request of pending) {
    journal.resume(request);
    await requeue(parts, request);
  }
  if (pending.length > 0 || removed > 0) {
    logger.info("continuing after a restart", { pending: pending.length, leftovers: removed });
  }
}

/** Deletes what a crash has left behind, keeps files without an explanation; returns how much was deleted. */
async function tidyUp({ store, logger, checkpoints, snapshots }: RecoveryParts): Promise<number> {
  if (store.isCutOff) {
    logger.error(
      "the write-ahead log of the database is missing or empty; unless a program for SQLite has opened the database since, the last commits are lost",
    );
  }
  const lost = new LostAndFound({ store, logger });
  let removed = 0;
  let kept = store.isCutOff ? 1 : 0;
  const judge = async (
    kind: "checkpoints" | "snapshots",
    found: UnknownFolder,
    fate: Fate,
    remove: (folder: string) => Promise<void>,
  ): Promise<void> => {
    if (fate === "deleted") {
      removed++;
      await remove(found.folder);
    } else if (fate === "kept") {
      kept++;
      await lost.keep(kind, found.place, found.manifest?.of ?? "it has no manifest");
    }
  };
  for (const found of await checkpoints.folders.findUnknown(store.checkpoints.folders())) {
    const fate = store.checkpoints.isDeleted(found.folder) ? "deleted" : fateOf(store, found);
    await judge("checkpoints", found, fate, (folder) => checkpoints.folders.remove([folder]));
  }
  for (const found of await snapshots.findUnknown()) {
    const fate = isOfKnownState(store, found) ? "deleted" : fateOf(store, found);
    const remove = (folder: string) => snapshots.discard({ folders: [folder], blobs: [] });
    await judge("snapshots", found, fate, remove);
  }
  // Bodies that were being received and results that were about to be committed; when the database has
  // lost something, they may be more than that.
  const blobs = await store.blobs.findUnknown(store.retention.blobs());
  if (kept === 0) await store.blobs.remove(blobs);
  else {
    for (const blob of blobs) {
      await lost.keep("blobs", store.blobs.pathOf(blob), "a payload or result");
    }
  }
  return removed + (kept === 0 ? blobs.length : 0);
}

/** What becomes of a folder without a row. */
type Fate = "deleted" | "left" | "kept";

/** A folder is of no use when it is known how the request ended that wrote it. */
function fateOf(store: Store, { manifest }: UnknownFolder): Fate {
  switch (store.requests.get(manifest?.request ?? "")?.state) {
    case "pending":
      // It will be done again, to another folder; at the start after that this one is of no use.
      return "left";
    case "done":
    case "gone":
      return "deleted";
    default:
      return "kept";
  }
}

/** True when the present state of the snapshot's model is on record, which is not so for a corrupted model. */
function isOfKnownState(store: Store, { manifest }: UnknownFolder): boolean {
  const model = store.models.get(manifest?.of ?? "");
  if (!model || model.state === "failed") return false;
  return (manifest?.applied ?? Infinity) <= model.applied;
}

/** Finishes the closing of sessions that a crash has interrupted. */
function endOrphans({ store, sessions }: RecoveryParts): void {
  for (const { modelId, sessionId } of store.models.open()) {
    if (!sessions.isServed(sessionId)) store.models.setState(modelId, "unloaded", "session closed");
  }
  store.journal.dropEnded();
  store.snapshots.removeEnded();
}

async function requeue(
  { journal, clock, runs, sampler, sessions }: RecoveryParts,
  request: RequestRow,
): Promise<void> {
  const { kind, sessionId, modelId } = request;
  const isOpen = sessionId === null || sessions.isServed(sessionId);
  const run = runs.get(modelId ?? "");
  if (isOpen && kind === "sample") {
    const { numSamples } = decodeJson("SampleRequest", await journal.payload(request.requestId));
    sampler.add(request, numSamples);
  } else if (isOpen && run) {
    run.add(request);
  } else {
    const error = isOpen ? `model ${modelId} has ended` : `session ${sessionId} was closed`;
    await journal.finish(
      request,
      { state: "failed", error, category: "user" },
      { startedAt: null, finishedAt: clock.now(), applied: null, tokens: 0 },
    );
  }
}
