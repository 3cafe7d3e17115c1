import type { WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import type { Checkpoints } from "../checkpoints/checkpoints.js";
import type { BaseModels } from "../engine-host/base-models.js";
import { badRequest, conflict } from "../errors/api-error.js";
import type { CheckpointRecord } from "../store/checkpoints-table.js";
import type { Logger } from "../log/logger.js";
import type { Sessions } from "../sessions/sessions.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import { pathOf } from "../checkpoints/checkpoint-names.js";

/** What copies are made with. */
export interface CopyParts {
  readonly store: Store;
  readonly sessions: Sessions;
  readonly bases: BaseModels;
  readonly checkpoints: Checkpoints;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Copies a checkpoint of either kind into a run of its own that cannot be trained; returns the path of the
 * copy, which has the name of its source. The same request again returns the same copy.
 */
export async function copyWeights(
  { store, sessions, bases, checkpoints, clock, logger }: CopyParts,
  caller: Principal,
  request: WireValue<"CopyWeightsRequest">,
  readers: readonly string[],
): Promise<string> {
  const { sessionId, modelSeqId, sourcePath, ttlSeconds } = request;
  sessions.touch(sessionId, caller);
  if (modelSeqId < 0) throw badRequest("model_seq_id", "must be 0 or more");
  if (ttlSeconds !== null && ttlSeconds <= 0) {
    throw badRequest("ttl_seconds", `must be above 0, got ${ttlSeconds}; leave it out to keep it`);
  }
  const source = checkpoints.readable(sourcePath, readers);
  const runId = `${sessionId}:train:${modelSeqId}`;
  const target = { runId, type: source.type, name: source.name };
  const isCopied = (): boolean => {
    const run = store.models.get(runId);
    if (run === undefined) return false;
    if (run.stateReason === reasonOf(source)) return true;
    throw conflict(`model ${runId} exists already; use another model_seq_id`);
  };
  if (isCopied()) return pathOf(target);

  const { baseModel, lora } = source;
  const base = await bases.find(baseModel);
  const state = await checkpoints.read(source, base.folder);
  const written = await checkpoints.folders.write(
    { lora, baseModel, state },
    { of: pathOf(target) },
  );
  const now = clock.now();
  const { owner } = caller;
  const wasCopied = await store
    .write(() => {
      if (isCopied()) return true;
      store.models.insert({
        modelId: runId,
        sessionId,
        owner,
        baseModel,
        lora,
        precision: bases.precision(baseModel),
        userMetadata: null,
        state: "unloaded",
        stateReason: reasonOf(source),
        nextSeq: 1,
        applied: 0,
        createdAt: now,
        lastRequestAt: now,
      });
      store.checkpoints.insert({
        ...source,
        ...written,
        ...target,
        owner,
        sessionId,
        isPublic: false,
        isEphemeral: false,
        createdAt: now,
        usedAt: now,
        expiresAt: ttlSeconds === null ? null : now + ttlSeconds * 1000,
        deletedAt: null,
      });
      const tinkerPath = pathOf(target);
      store.audit.add({ at: now, owner, event: "checkpoint.copied", modelId: runId, tinkerPath });
      return false;
    })
    .catch(async (error: unknown) => {
      await checkpoints.folders.remove([written.folder]);
      throw error;
    });
  if (wasCopied) await checkpoints.folders.remove([written.folder]);
  else logger.info("checkpoint copied", { from: sourcePath, path: pathOf(target) });
  return pathOf(target);
}

/** Why the run of a copy cannot be trained; it also says which source a run is a copy of. */
function reasonOf(source: CheckpointRecord): string {
  return `it only holds a copy of ${pathOf(source)}`;
}
