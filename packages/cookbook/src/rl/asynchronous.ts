import { StepSpans, type Line } from "tinker-ts/run-log";
import { isConstant } from "./advantages.js";
import type { PlayedGroup } from "./play-groups.js";
import type { Policy } from "./policy.js";
import { prepareBatch } from "./batch-update.js";
import type { RlRun } from "./rl-run.js";
import { samplingTimes, type Progress } from "./synchronous.js";
import { groupsOf, type RlDataset, type RlMode } from "./train-options.js";
import type { EnvironmentGroup, Numbers } from "./types.js";

type AsynchronousMode = Extract<RlMode, { readonly kind: "asynchronous" }>;

/** A group with its number in the data set. */
interface NumberedGroup {
  readonly id: number;
  readonly group: EnvironmentGroup;
}

interface ReadyGroup extends NumberedGroup {
  readonly played: PlayedGroup;
  /** Updates that the policy which played it had seen. */
  readonly samplerStep: number;
}

/**
 * Plays groups while others are trained, from a step to the end of the data or to an abort.
 *
 * One loop drives everything, so no wakeup can be lost:
 * - Groups are drawn when there is room, as many as can be trained before they are too old.
 * - A group that is too old goes to the front of the queue and is played again with the current policy.
 * - An update takes a batch of groups; the last one takes the rest.
 * - A checkpoint lists the groups that are not trained, so a resumed run plays those, and no other twice.
 */
export async function trainAsynchronously(
  run: RlRun,
  mode: AsynchronousMode,
  start: Progress,
): Promise<Progress> {
  const { options, keeper } = run;
  const { signal, seed } = options;
  const pipeline = new Pipeline(options.dataset, mode, start.extra);
  const stop = new AbortController();
  let { step, tokens } = start;
  let policy = await run.currentPolicy();
  let evaluatedStep = -1;
  let evaluated = {};

  // Groups that failed since the last one that did not.
  let failed = 0;
  const play = async (next: NumberedGroup, by: Policy, samplerStep: number): Promise<void> => {
    const how = { seeds: [seed, next.id, samplerStep], signal: stop.signal };
    const played = await run.player.play(by, next.group, how);
    failed = played ? 0 : failed + 1;
    const { maxFailedSteps } = options;
    if (maxFailedSteps > 0 && failed >= maxFailedSteps * mode.groupsPerBatch) {
      run.check.fail(`every episode of ${failed} groups in a row failed`);
    }
    pipeline.played(next, played, samplerStep);
  };

  try {
    while (step < run.totalSteps) {
      if (signal?.aborted) break;
      if (evaluatedStep < step) {
        evaluated = await run.evaluateBefore(step);
        evaluatedStep = step;
      }
      for (let next = await pipeline.draw(); next; next = await pipeline.draw()) {
        pipeline.start(next, play(next, policy, step));
      }
      const batch = pipeline.takeBatch(step, options.removeConstantRewardGroups);
      if (batch === "done") break;
      if (batch === "wait") {
        await pipeline.progress();
        continue;
      }
      const spans = new StepSpans();
      keeper.beforeStep(
        { step, batch: step },
        { tokens, logged: Promise.resolve(), extra: pipeline.state },
      );
      const update = run.update(step);
      const prepared = await spans.span("prepare", () =>
        prepareBatch(
          batch.map(({ played }) => played.trajectories),
          { ...options, removeConstantRewardGroups: false },
          { step, training: run.training, signal },
        ),
      );
      await update.pass(prepared.data);
      update.step();
      const trained = await spans.span("train", () => update.settle());
      pipeline.trained(batch);
      policy = await spans.span("sync", () => run.currentPolicy());
      const posted = await run.postKl(update.data);
      run.record(
        step,
        prepared.groups,
        prepared.data,
        batch.map(({ samplerStep }) => samplerStep),
      );
      const metrics = {
        ...evaluated,
        ...prepared.metrics,
        ...trained,
        ...posted,
        ...pipeline.metrics(),
        ...ages(batch, step),
        ...samplingTimes(batch.map(({ played }) => played)),
      };
      evaluated = {};
      const { data } = update;
      run.finishStep({ step, groups: prepared.groups, data, skipped: 0 }, metrics, spans);
      tokens += update.data.reduce((sum, { targets }) => sum + targets.length, 0);
      step++;
    }
  } catch (error) {
    if (!signal?.aborted) throw error;
  } finally {
    stop.abort(new Error("the run is over"));
    await pipeline.settle();
  }
  return { step, tokens, extra: pipeline.state };
}

/** Groups on their way: drawn, playing, ready, trained. */
class Pipeline {
  readonly #source: NumberedGroups;
  readonly #mode: AsynchronousMode;
  /** Numbers of groups that were drawn and have not been trained or given up. */
  readonly #open = new Set<number>();
  /** Those of an earlier attempt that are still to be drawn. */
  readonly #owed: number[];
  readonly #playing = new Map<number, Promise<void>>();
  readonly #again: NumberedGroup[] = [];
  #ready: ReadyGroup[] = [];
  #cursor: number;
  #isExhausted = false;
  #failure: { readonly error: unknown } | undefined;
  #stale = 0;
  #constant = 0;

  constructor(dataset: RlDataset, mode: AsynchronousMode, state: Line) {
    this.#source = new NumberedGroups(dataset);
    this.#mode = mode;
    const { next_group: cursor, untrained_groups: owed } = state;
    this.#cursor = typeof cursor === "number" ? cursor : 0;
    this.#owed = Array.isArray(owed) ? owed.filter((id) => typeof id === "number") : [];
  }

  /** What a checkpoint must know to go on. */
  get state(): Line {
    const untrained = [...this.#open, ...this.#owed].toSorted((a, b) => a - b);
    return { next_group: this.#cursor, untrained_groups: untrained };
  }

  /** The next group to play; undefined when there is no room or nothing left. */
  async draw(): Promise<NumberedGroup | undefined> {
    const { groupsPerBatch, maxStepsOffPolicy } = this.#mode;
    const room = groupsPerBatch * (maxStepsOffPolicy + 1) - this.#playing.size - this.#ready.length;
    if (room <= 0) return undefined;
    const again = this.#again.shift();
    if (again) return again;
    const owed = this.#owed.shift();
    const id = owed ?? this.#cursor;
    const group = await this.#source.get(id);
    if (!group) {
      this.#isExhausted = true;
      return undefined;
    }
    if (owed === undefined) this.#cursor++;
    this.#open.add(id);
    return { id, group };
  }

  /** Remembers that a group is being played. */
  start({ id }: NumberedGroup, work: Promise<void>): void {
    const watched = work
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => this.#playing.delete(id));
    this.#playing.set(id, watched);
  }

  /** Takes a group that was played; one that failed is skipped. */
  played(next: NumberedGroup, played: PlayedGroup | undefined, samplerStep: number): void {
    if (played) this.#ready.push({ ...next, played, samplerStep });
    else this.#open.delete(next.id);
  }

  /** Enough groups that are fresh; or what to do until there are. */
  takeBatch(step: number, removesConstant: boolean): ReadyGroup[] | "wait" | "done" {
    if (this.#failure) throw this.#failure.error;
    const { groupsPerBatch, maxStepsOffPolicy } = this.#mode;
    const arrived = this.#ready;
    this.#ready = [];
    for (const group of arrived) {
      if (step - group.samplerStep > maxStepsOffPolicy) {
        this.#stale++;
        this.#again.push(group);
      } else if (removesConstant && isConstant(group.played.trajectories)) {
        this.#constant++;
        this.#open.delete(group.id);
      } else {
        this.#ready.push(group);
      }
    }
    const isLast = this.#isExhausted && this.#playing.size === 0 && this.#again.length === 0;
    if (this.#ready.length >= groupsPerBatch || (isLast && this.#ready.length > 0)) {
      return this.#ready.splice(0, groupsPerBatch);
    }
    return isLast ? "done" : "wait";
  }

  /** Resolves when a group has been played, or at once when another can be drawn. */
  async progress(): Promise<void> {
    if (this.#playing.size > 0) await Promise.race(this.#playing.values());
  }

  /** Forgets a batch that is trained. */
  trained(batch: readonly ReadyGroup[]): void {
    for (const { id } of batch) this.#open.delete(id);
  }

  /** What became of groups since this attempt began. */
  metrics(): Record<string, number> {
    return {
      "rollouts/stale_groups": this.#stale,
      "rollouts/constant_groups": this.#constant,
      "rollouts/groups_playing": this.#playing.size,
    };
  }

  /** Waits for everything that was started. */
  async settle(): Promise<void> {
    await Promise.all(this.#playing.values());
  }
}

/** The groups of a data set, counted through all batches. */
class NumberedGroups {
  readonly #dataset: RlDataset;
  #batch: readonly EnvironmentGroup[] = [];
  #batchIndex = -1;
  #first = 0;

  constructor(dataset: RlDataset) {
    this.#dataset = dataset;
  }

  async get(id: number): Promise<EnvironmentGroup | undefined> {
    if (id < this.#first) {
      this.#batch = [];
      this.#batchIndex = -1;
      this.#first = 0;
    }
    while (id >= this.#first + this.#batch.length) {
      if (this.#batchIndex + 1 >= this.#dataset.length) return undefined;
      this.#first += this.#batch.length;
      this.#batchIndex++;
      this.#batch = await groupsOf(this.#dataset, this.#batchIndex);
    }
    return this.#batch[id - this.#first];
  }
}

/** How old the policies were that played a batch. */
function ages(batch: readonly ReadyGroup[], step: number): Numbers {
  const steps = batch.map(({ samplerStep }) => samplerStep);
  return {
    "training_client/step": step,
    "sampling_client/step_max": Math.max(...steps),
    "sampling_client/step_min": Math.min(...steps),
    "sampling_client/step_mean": steps.reduce((sum, value) => sum + value, 0) / steps.length,
  };
}
