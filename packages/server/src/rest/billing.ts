import { decodeJson, type WireInput } from "tinker-ts/wire";
import { badRequest } from "../errors/api-error.js";
import type { CheckpointRecord } from "../store/checkpoints-table.js";
import type { Store } from "../store/store.js";
import { bucketMs, type UsageSum } from "../store/usage-table.js";
import { toTextMetadata } from "./runs.js";

const maxWindowMs = 14 * 24 * bucketMs;
const gigabyte = 1e9;

/** A stretch of whole hours. */
export interface UsageWindow {
  readonly from: number;
  readonly to: number;
}

/** Reads `starting_on` and `ending_before`; they must be whole hours, at most 14 days apart. */
export function windowOf(query: Readonly<Record<string, string>>): UsageWindow {
  const { starting_on, ending_before } = query;
  const request = decodeJson("GetBillingUsageRequest", { starting_on, ending_before });
  const from = request.startingOn.getTime();
  const to = request.endingBefore.getTime();
  if (from % bucketMs !== 0) throw badRequest("starting_on", "must be a whole hour");
  if (to % bucketMs !== 0) throw badRequest("ending_before", "must be a whole hour");
  if (to <= from) throw badRequest("ending_before", "must be later than starting_on");
  if (to - from > maxWindowMs) throw badRequest("ending_before", "the window is at most 14 days");
  return { from, to };
}

/** An owner's usage by hour: tokens and saves as they were counted, storage from the checkpoints. */
export function billingUsage(
  store: Store,
  owner: string,
  { from, to }: UsageWindow,
  now: number,
): WireInput<"BillingUsageResponse"> {
  const counted = store.usage.list(owner, from, to).map((sum) => ({
    bucketStart: sum.bucketStart,
    baseModel: sum.baseModel,
    sessionId: sum.sessionId,
    eventInfo: eventInfoOf(sum),
  }));
  const stored = storage(store.checkpoints.within(owner, from, to), {
    from,
    to: Math.min(to, now),
  });
  const rows = [...counted, ...stored].toSorted((a, b) => a.bucketStart - b.bucketStart);
  const sessionIds = new Set(rows.map(({ sessionId }) => sessionId).filter((id) => id !== null));
  const sessions = [...sessionIds].map((id) => [id, store.sessions.get(id)] as const);
  const projects = new Map(sessions.map(([id, session]) => [id, session?.projectId ?? null]));
  return {
    data: rows.map(({ bucketStart, baseModel, sessionId, eventInfo }) => ({
      bucketStart: new Date(bucketStart),
      bucketEnd: new Date(bucketStart + bucketMs),
      baseModel,
      userId: owner,
      userName: owner,
      sessionId,
      projectId: sessionId === null ? null : (projects.get(sessionId) ?? null),
      eventInfo,
    })),
    sessions: Object.fromEntries(
      sessions.map(([id, session]) => [
        id,
        { userMetadata: toTextMetadata(session?.userMetadata ?? null) },
      ]),
    ),
  };
}

type EventInfo = WireInput<"BillingEventInfo">;

function eventInfoOf({ kind, amount }: UsageSum): EventInfo {
  switch (kind) {
    case "training":
      return { type: "training", tokenCount: amount };
    case "sampling_prefill":
      return { type: "sampling_prefill", cached: false, tokenCount: amount };
    case "sampling_prefill_cached":
      return { type: "sampling_prefill", cached: true, tokenCount: amount };
    case "sampling_sample":
      return { type: "sampling_sample", tokenCount: amount };
    case "checkpoint":
      return { type: "checkpoint", count: amount };
  }
}

/** Gigabyte hours per bucket, session and base model. */
function storage(checkpoints: readonly CheckpointRecord[], { from, to }: UsageWindow) {
  const sums = new Map<string, { bucketStart: number; record: CheckpointRecord; amount: number }>();
  for (const record of checkpoints) {
    const begin = Math.max(from, record.createdAt);
    const end = Math.min(to, record.deletedAt ?? to);
    const firstBucket = Math.floor(begin / bucketMs) * bucketMs;
    for (let bucketStart = firstBucket; bucketStart < end; bucketStart += bucketMs) {
      const overlapMs = Math.min(end, bucketStart + bucketMs) - Math.max(begin, bucketStart);
      const key = JSON.stringify([bucketStart, record.sessionId, record.baseModel]);
      const sum = sums.get(key) ?? { bucketStart, record, amount: 0 };
      sum.amount += (record.sizeBytes / gigabyte) * (overlapMs / bucketMs);
      sums.set(key, sum);
    }
  }
  return [...sums.values()].map(({ bucketStart, record, amount }) => ({
    bucketStart,
    baseModel: record.baseModel,
    sessionId: record.sessionId,
    eventInfo: { type: "storage", gigabyteHours: amount } satisfies EventInfo,
  }));
}
