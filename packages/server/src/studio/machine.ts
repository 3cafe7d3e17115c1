import { statfs } from "node:fs/promises";
import { availableParallelism, freemem, totalmem } from "node:os";
import type { StudioLane, StudioMachine, StudioUsage } from "tinker-ts/wire";
import { pathOf } from "../checkpoints/checkpoint-names.js";
import type { Core } from "../core.js";
import { bucketMs } from "../store/usage-table.js";
import type { RunRows } from "./run-rows.js";

const nearlyFullBytes = 2 * 1024 ** 3;
const dayMs = 24 * bucketMs;

/** The queue of each open model of an owner. */
export function laneRows(
  { context, runs, liveModels }: Core,
  rows: RunRows,
  owner: string,
): StudioLane[] {
  const { store } = context;
  return store.models
    .open()
    .filter((model) => model.owner === owner)
    .map(({ modelId }) => {
      const run = store.logs.logOfModel(modelId) ?? modelId;
      const log = store.logs.get(run);
      const view = runs.get(modelId)?.view();
      return {
        model: modelId,
        run,
        runName: log ? rows.row(log).name : modelId,
        running: view?.running ?? null,
        waiting: view?.waiting ?? 0,
        oldestAt: view?.oldestAt ?? null,
        note: view?.note ? { state: view.note.queueState, reason: view.note.reason } : null,
        isPaused: view?.isHeld ?? false,
        isLive: liveModels.has(modelId),
      };
    });
}

/** What the machine does for an owner, and how much room it has. */
export async function machineState(
  core: Core,
  rows: RunRows,
  owner: string,
  { startedAt, threads }: { readonly startedAt: number; readonly threads: number | undefined },
): Promise<StudioMachine> {
  const { context, sampler, sessions, bases } = core;
  const { store, clock, limits, metrics, recorder } = context;
  const now = clock.now();
  const timeline = metrics.timeline.slots(now);
  const lastMinute = timeline.slice(-6);
  const share = (pick: (slot: (typeof timeline)[number]) => number): number =>
    Math.min(1, lastMinute.reduce((sum, slot) => sum + pick(slot), 0) / 60_000);
  const training = share(({ trainingMs }) => trainingMs);
  const sampling = Math.min(
    1 - training,
    share(({ samplingMs }) => samplingMs),
  );
  const disk = await statfs(store.dataDir).catch(() => undefined);
  const freeBytes = (disk?.bavail ?? 0) * (disk?.bsize ?? 0);
  const queue = sampler.view();
  const streams = context.scheduler.load("streams");
  return {
    at: now,
    startedAt,
    engine: {
      threads: threads ?? availableParallelism(),
      device: bases.device,
      training,
      sampling,
      idle: Math.max(0, 1 - training - sampling),
    },
    memory: {
      usedBytes: process.memoryUsage.rss(),
      totalBytes: totalmem(),
      freeBytes: freemem(),
    },
    disk: {
      freeBytes,
      totalBytes: (disk?.blocks ?? 0) * (disk?.bsize ?? 0),
      isNearlyFull: disk !== undefined && freeBytes < nearlyFullBytes,
      largest: store.checkpoints
        .largest(owner, 5)
        .map((record) => ({ what: pathOf(record), sizeBytes: record.sizeBytes })),
    },
    lanes: laneRows(core, rows, owner),
    samples: {
      running: queue.runningSequences,
      places: limits.maxRunningSequences,
      waiting: queue.waiting + streams.waiting,
      sessions: queue.waitingSessions,
      note: queue.note?.reason ?? null,
    },
    accounts: context.scheduler
      .accounts()
      .filter((account) => account.owner === owner)
      .map(({ resource, spent, waiting }) => ({ resource, spent: Math.round(spent), waiting })),
    sessions: store.sessions
      .open()
      .filter((session) => session.owner === owner)
      .map((session) => ({
        id: session.sessionId,
        client: session.sdkVersion,
        tags: session.tags,
        createdAt: session.createdAt,
        lastSeenAt: sessions.lastSeenAt(session.sessionId) ?? session.createdAt,
        models: store.models.bySession(session.sessionId).map(({ modelId }) => modelId),
      })),
    models: bases.names.map((name) => ({ name, isLoaded: bases.isLoaded(name) })),
    timeline,
    kept: {
      seriesBytes: store.series.sizeBytes(),
      maxSeriesBytes: limits.maxSeriesBytes,
      exhibitBytes: store.exhibits.sizeBytes(),
      maxExhibitBytes: limits.maxExhibitBytes,
      capture: recorder.capture,
    },
  };
}

/** What an owner has used, by day, run and session; what is of a base model alone may be of none. */
export function usageRows(
  { context: { store, clock } }: Core,
  rows: RunRows,
  owner: string,
  from: number | null,
  to: number | null,
): StudioUsage {
  const now = clock.now();
  const [first, last] = [from ?? now - 30 * dayMs, to ?? now + bucketMs];
  const sums = new Map<string, StudioUsage["rows"][number]>();
  const runOf = (modelId: string | null, session: string | null): string | null => {
    // What the base model of a session with one model was asked for belongs to that model's run.
    const models = session === null ? [] : store.models.bySession(session);
    const model = modelId ?? (models.length === 1 ? models[0]!.modelId : null);
    const run = model === null ? null : (store.logs.logOfModel(model) ?? model);
    return run !== null && store.logs.get(run)?.owner === owner ? run : null;
  };
  const names = new Map<string, string>();
  const nameOf = (run: string | null): string | null => {
    const log = run === null ? undefined : store.logs.get(run);
    if (run === null || !log) return null;
    if (!names.has(run)) names.set(run, rows.row(log).name);
    return names.get(run)!;
  };
  for (const sum of store.usage.listByModel(owner, first, last)) {
    const day = new Date(sum.bucketStart).toISOString().slice(0, 10);
    const { sessionId: session, baseModel, modelId } = sum;
    const run = runOf(modelId, session);
    const name = JSON.stringify([day, run, session, baseModel]);
    const row = sums.get(name) ?? {
      day,
      run,
      runName: nameOf(run),
      session,
      baseModel,
      trainingTokens: 0,
      prefillTokens: 0,
      sampledTokens: 0,
    };
    const add = (kind: string): number => (sum.kind === kind ? sum.amount : 0);
    sums.set(name, {
      ...row,
      trainingTokens: row.trainingTokens + add("training"),
      prefillTokens: row.prefillTokens + add("sampling_prefill") + add("sampling_prefill_cached"),
      sampledTokens: row.sampledTokens + add("sampling_sample"),
    });
  }
  return { rows: [...sums.values()] };
}
