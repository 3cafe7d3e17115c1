import { ModelRunner, type RunnerParts } from "../engine-host/model-runner.js";
import { ModelLane } from "../queue/model-lane.js";
import { FairTurns } from "../queue/fair-turns.js";
import type { QueueNote } from "../queue/queue-note.js";
import { gone } from "../errors/api-error.js";
import type { CheckpointKind } from "../store/checkpoints-table.js";
import type { Model, ModelStanding } from "../store/models-table.js";
import type { RequestHead } from "../store/requests-table.js";

/** States that are written at the same time. */
const maxSaving = 2;

/** The lanes of all models that can be trained. */
export class ModelLanes {
  readonly #parts: RunnerParts;
  readonly #lanes = new Map<string, ModelLane>();
  readonly #runners = new Map<string, ModelRunner>();
  readonly #standings = new Map<string, ModelStanding>();
  #isPaused = false;

  constructor(parts: Omit<RunnerParts, "onEnded" | "turns">) {
    this.#parts = {
      ...parts,
      turns: {
        computing: new FairTurns(1, (modelId) => parts.lives.has(modelId)),
        saving: new FairTurns(maxSaving),
      },
      onEnded: (modelId, reason) => void this.end(modelId, reason),
    };
  }

  /** Requests that wait or run. */
  get pendingCount(): number {
    return [...this.#lanes.values()].reduce((sum, lane) => sum + lane.pendingCount, 0);
  }

  /** Gives a model its lane. */
  open(model: Model): ModelLane {
    const runner = new ModelRunner(this.#parts, model);
    const { computing, saving } = this.#parts.turns;
    const { modelId, owner } = model;
    const lane = new ModelLane(modelId, model.nextSeq, {
      run: (request, nextSeq, signal) => runner.run(request, nextSeq, signal),
      note: () => computing.note(owner, modelId) ?? saving.note(owner, modelId),
      refuse: (request, error) => runner.refuse(request, error),
    });
    this.#lanes.set(modelId, lane);
    this.#runners.set(modelId, runner);
    this.#standings.set(modelId, model);
    if (this.#parts.context.store.logs.isPaused(modelId)) lane.hold("paused in the studio");
    return lane;
  }

  get(modelId: string): ModelLane | undefined {
    return this.#lanes.get(modelId);
  }

  /** Whose a model is that has a lane, without asking the store. One that is just ending may be among them. */
  standing(modelId: string): ModelStanding | undefined {
    return this.#standings.get(modelId);
  }

  note(request: RequestHead): QueueNote {
    const lane = request.modelId === null ? undefined : this.#lanes.get(request.modelId);
    return lane?.note(request) ?? { queueState: "active", reason: "it is about to finish" };
  }

  /** Ends a model's lane; what waits in it fails with the reason. */
  async end(modelId: string, reason: string): Promise<void> {
    const lane = this.#lanes.get(modelId);
    if (!lane) return;
    await lane.stop(`model ${modelId} has ended: ${reason}`);
    this.#lanes.delete(modelId);
    this.#runners.delete(modelId);
    this.#standings.delete(modelId);
  }

  /** Saves the weights of a model between two of its requests; returns the path. */
  async saveNow(
    modelId: string,
    save: { readonly type: CheckpointKind; readonly name: string },
  ): Promise<string> {
    const [lane, runner] = [this.#lanes.get(modelId), this.#runners.get(modelId)];
    if (!lane || !runner) throw gone(`model ${modelId} has ended`);
    return lane.beside((signal) => runner.saveNow(save, signal));
  }

  /** Writes states of idle models out. */
  async tidy(): Promise<void> {
    const isIdle = (modelId: string): boolean =>
      !this.#isPaused && (this.#lanes.get(modelId)?.isIdle ?? true);
    await this.#parts.lives.settleIdle(isIdle);
  }

  /** Lets what runs finish, starts nothing more, and writes states out. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    const lanes = [...this.#lanes.values()];
    const paused = lanes.map((lane) => lane.pause());
    this.#parts.turns.computing.pause();
    this.#parts.turns.saving.pause();
    await Promise.all(paused);
    await Promise.all(lanes.map((lane) => this.#parts.lives.park(lane.modelId)));
  }
}
