import { ArgumentError } from "tinker-ts";
import { StepSpans, type Line } from "tinker-ts/run-log";
import { splitList } from "../data/index.js";
import { type BatchUpdate, prepareBatch, type PreparedBatch } from "./batch-update.js";
import type { PlayedGroup } from "./play-groups.js";
import { mergeMetrics } from "./metrics.js";
import type { RlRun } from "./rl-run.js";
import { groupsOf } from "./train-options.js";
import type { EnvironmentGroup, Numbers, TrajectoryGroup } from "./types.js";

/** The progress of a run, and the state of its mode. */
export interface Progress {
  /** Steps done. */
  readonly step: number;
  /** Positions trained. */
  readonly tokens: number;
  /** The state that the mode needs to resume. */
  readonly extra: Line;
}

/**
 * Plays and trains batch by batch with one policy per batch, from a step to the last one or to an abort.
 *
 * Samples depend on the run's seed, the step and the place in the batch only, so a resumed run samples the same.
 */
export async function trainBatches(run: RlRun, start: Progress): Promise<Progress> {
  const { options, keeper, totalSteps } = run;
  const { signal } = options;
  let { step, tokens } = start;
  for (; step < totalSteps; step++) {
    if (signal?.aborted) break;
    const spans = new StepSpans();
    keeper.beforeStep({ step, batch: step }, { tokens, logged: Promise.resolve(), extra: {} });
    try {
      const found = await spans.span("eval", () => run.evaluateBefore(step));
      const groups = await groupsOf(options.dataset, step);
      const batch = await trainBatch(run, step, groups, spans);
      const posted = await spans.span("post_kl", () => run.postKl(batch.update.data));
      run.finishStep(
        {
          step,
          groups: batch.groups,
          data: batch.update.data,
          skipped: groups.length - batch.groups.length,
        },
        { ...found, ...batch.metrics, ...posted },
        spans,
      );
      tokens += batch.update.data.reduce((sum, { targets }) => sum + targets.length, 0);
      await run.failAfterErrors(step, tokens);
    } catch (error) {
      if (!signal?.aborted) throw error;
      break;
    }
  }
  return { step, tokens, extra: {} };
}

interface TrainedBatch {
  readonly groups: readonly TrajectoryGroup[];
  readonly update: BatchUpdate;
  readonly metrics: Numbers;
}

async function trainBatch(
  run: RlRun,
  step: number,
  groups: readonly EnvironmentGroup[],
  spans: StepSpans,
): Promise<TrainedBatch> {
  const { seed, mode, numSubsteps, signal } = run.options;
  const parts =
    mode.kind === "streaming"
      ? minibatches(groups.length, numSubsteps, mode.minibatches)
      : [{ places: groups.map((_, index) => index), endsSubstep: true }];
  const policy = await spans.span("sync", () => run.currentPolicy());
  const stop = new AbortController();
  const playing = groups.map((group, index) =>
    run.player.play(policy, group, { seeds: [seed, step, index], signal: stop.signal }),
  );
  const update = run.update(step);
  const played: PlayedGroup[] = [];
  const prepared: PreparedBatch[] = [];
  try {
    for (const part of parts) {
      const done = await spans.span("sampling", () =>
        Promise.all(part.places.map((place) => playing[place]!)),
      );
      const kept = done.filter((group) => group !== undefined);
      const batch = await spans.span("prepare", () =>
        prepareBatch(
          kept.map(({ trajectories }) => trajectories),
          run.options,
          { step, training: run.training, signal },
        ),
      );
      signal?.throwIfAborted();
      await submit(update, batch, mode.kind === "streaming" ? 1 : numSubsteps, part.endsSubstep);
      played.push(...kept);
      prepared.push(batch);
    }
  } catch (error) {
    stop.abort(error);
    throw error;
  } finally {
    await Promise.allSettled(playing);
  }
  const trained = await spans.span("train", () => update.settle());
  const trajectories = prepared.flatMap((batch) => batch.groups);
  run.record(
    step,
    trajectories,
    renumbered(prepared),
    trajectories.map(() => step),
  );
  return {
    groups: played.map((group) => group.trajectories),
    update,
    metrics: {
      ...mergeMetrics(
        prepared.map((batch) => batch.metrics),
        isCount,
      ),
      ...trained,
      ...samplingTimes(played),
    },
  };
}

interface Part {
  /** Places of its groups in the batch. */
  readonly places: readonly number[];
  readonly endsSubstep: boolean;
}

/** Submits the data of a part: in several updates, or as a piece of one. */
async function submit(
  update: BatchUpdate,
  { data, groups }: PreparedBatch,
  substeps: number,
  endsSubstep: boolean,
): Promise<void> {
  // An update gets whole groups, because the members of a group were compared with each other.
  const indices = groups.map((_, index) => index);
  const parts = indices.length === 0 ? [] : splitList(indices, Math.min(substeps, indices.length));
  for (const [index, part] of parts.entries()) {
    await update.pass(data.filter(({ group }) => part.includes(group)));
    if (endsSubstep || index < parts.length - 1) update.step();
  }
  if (parts.length === 0 && endsSubstep) update.step();
}

function minibatches(groups: number, substeps: number, perSubstep: number): readonly Part[] {
  const count = substeps * perSubstep;
  if (groups % count !== 0) {
    throw new ArgumentError(
      "mode.minibatches",
      `a batch of ${groups} groups cannot be divided into ${substeps} updates of ${perSubstep} minibatches`,
    );
  }
  const places = Array.from({ length: groups }, (_, index) => index);
  return splitList(places, count).map((part, index) => ({
    places: part,
    endsSubstep: (index + 1) % perSubstep === 0,
  }));
}

/** Data of all parts, their groups counted through. */
function renumbered(batches: readonly PreparedBatch[]): PreparedBatch["data"] {
  let before = 0;
  return batches.flatMap(({ data, groups }) => {
    const offset = before;
    before += groups.length;
    return data.map((datum) => ({ ...datum, group: datum.group + offset }));
  });
}

function isCount(name: string): boolean {
  return name.startsWith("rollouts/");
}

/** The time that groups took. */
export function samplingTimes(played: readonly PlayedGroup[]): Numbers {
  if (played.length === 0) return {};
  const seconds = played.map((group) => group.seconds);
  return {
    "time/sampling_time_max": Math.max(...seconds),
    "time/sampling_time_min": Math.min(...seconds),
    "time/sampling_time_mean": seconds.reduce((sum, value) => sum + value, 0) / seconds.length,
  };
}
