import type { StudioCheckpoint } from "tinker-ts/wire";
import { pathOf } from "../checkpoints/checkpoint-names.js";
import type { Core } from "../core.js";
import { toPlain } from "../store/sql.js";
import type { CheckpointRecord } from "../store/checkpoints-table.js";
import { storedSeries, type RunSeries } from "./run-series.js";
import type { RunRows } from "./run-rows.js";

/** Checkpoints that are shown at a time, the newest ones. */
const maxRows = 2000;

/** Checkpoints of some models, or of all of an owner, newest first. */
export function* checkpointRows(
  { context: { store } }: Core,
  rows: RunRows,
  owner: string,
  models: readonly string[] | null,
): Generator<void, StudioCheckpoint[], void> {
  const records = models
    ? models.flatMap((modelId) => store.checkpoints.byRun(modelId))
    : store.checkpoints.byOwner(owner, maxRows, 0);
  const names = new Map<string, string>();
  const series = new Map<string, RunSeries>();
  const users = usersOf(store.samplers.inUse());
  const checkpoints: StudioCheckpoint[] = [];
  for (const record of records) {
    if (record.owner !== owner) continue;
    const run = store.logs.logOfModel(record.runId) ?? record.runId;
    const log = store.logs.get(run);
    if (!names.has(run)) names.set(run, log ? rows.row(log).name : record.runId);
    const known = series.get(record.runId) ?? storedSeries(store, record.runId);
    series.set(record.runId, known);
    const runName = names.get(run)!;
    checkpoints.push(toRow(record, { run, runName, series: known, users, store }));
    yield;
  }
  return checkpoints;
}

function toRow(
  record: CheckpointRecord,
  {
    run,
    runName,
    series,
    users,
    store,
  }: {
    run: string;
    runName: string;
    series: RunSeries;
    users: ReadonlyMap<string, readonly string[]>;
    store: Core["context"]["store"];
  },
): StudioCheckpoint {
  const path = pathOf(record);
  const step = store.logs.savedMark(path)?.x ?? null;
  const parent = store.logs.lastMark(record.runId, "loaded");
  return {
    path,
    model: record.runId,
    run,
    runName,
    name: record.name,
    kind: record.type,
    baseModel: record.baseModel,
    rank: record.lora.rank,
    step,
    nll: nllBefore(store, series, step),
    sizeBytes: record.sizeBytes,
    isPublic: record.isPublic,
    createdAt: record.createdAt,
    expiresAt: record.expiresAt,
    parent: parent?.subject ?? null,
    usedBy: users.get(path) ?? [],
  };
}

/** The nll of the last pass before a step. */
function nllBefore(
  store: Core["context"]["store"],
  series: RunSeries,
  step: number | null,
): StudioCheckpoint["nll"] {
  if (step === null) return null;
  const last = series
    .attempts("nll")
    .map(({ seriesId }) => store.series.pointBefore(seriesId, step))
    .findLast((point) => point !== undefined);
  return last ? toPlain(last.value) : null;
}

function usersOf(
  samplers: readonly { samplerId: string; modelPath: string | null }[],
): Map<string, string[]> {
  const users = new Map<string, string[]>();
  for (const { samplerId, modelPath } of samplers) {
    if (modelPath === null) continue;
    users.set(modelPath, [...(users.get(modelPath) ?? []), samplerId]);
  }
  return users;
}
