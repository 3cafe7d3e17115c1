import type { Principal } from "../auth/principal.js";
import { gone, notFound } from "../errors/api-error.js";
import type { QueueNote } from "../journal/journal.js";
import type { Sessions } from "../sessions/sessions.js";
import type { CheckpointKind } from "../store/checkpoints-table.js";
import type { Model } from "../store/models-table.js";
import type { RequestRow } from "../store/requests-table.js";
import { refuseEnded, TrainingRun, type RunParts } from "./training-run.js";

/** The runs of all models that can be trained. */
export class TrainingRuns {
  readonly #parts: RunParts;
  readonly #sessions: Sessions;
  readonly #runs = new Map<string, TrainingRun>();
  #isPaused = false;

  constructor(parts: RunParts, sessions: Sessions) {
    this.#parts = parts;
    this.#sessions = sessions;
  }

  /** Requests that wait or run. */
  get pendingCount(): number {
    return [...this.#runs.values()].reduce((sum, run) => sum + run.pendingCount, 0);
  }

  /** Opens the run of a model. */
  open(model: Model): TrainingRun {
    const { modelId } = model;
    const run = new TrainingRun(this.#parts, model);
    this.#runs.set(modelId, run);
    void run.ended.then(() => this.#runs.delete(modelId));
    if (this.#parts.store.logs.isPaused(modelId)) run.hold("paused in the studio");
    return run;
  }

  get(modelId: string): TrainingRun | undefined {
    return this.#runs.get(modelId);
  }

  /** The run of a caller's model, for a request; one that has ended is refused. */
  owned(modelId: string, caller: Principal): TrainingRun {
    const run = this.#runs.get(modelId);
    if (run?.model.owner !== caller.owner) throw this.#refusal(modelId, caller);
    this.#sessions.touch(run.model.sessionId, caller);
    return run;
  }

  /** A model of the caller, live or past. */
  model(modelId: string, { owner }: Pick<Principal, "owner">): Model {
    const model = this.#parts.store.models.get(modelId);
    if (model?.owner === owner) return model;
    throw notFound(`model ${modelId}`);
  }

  /** Accepts the end of a model; repeating it is fine. */
  async unload(caller: Principal, modelId: string): Promise<string> {
    const requestId = `${modelId}:unload`;
    const model = this.model(modelId, caller);
    const run = this.#runs.get(modelId);
    const payload = Buffer.from(modelId);
    if (run) await run.accept({ requestId, seq: null, kind: "unload_model", payload });
    else if (!this.#parts.journal.find(requestId)) refuseEnded(model);
    return requestId;
  }

  /** Why a request has not finished yet. */
  note(request: RequestRow): QueueNote {
    const run = request.modelId === null ? undefined : this.#runs.get(request.modelId);
    return run?.note(request) ?? { queueState: "active", reason: "it is about to finish" };
  }

  /** Ends a run; what waits in it fails with the reason. */
  async end(modelId: string, reason: string): Promise<void> {
    await this.#runs.get(modelId)?.stop(reason);
    this.#runs.delete(modelId);
  }

  /** Saves the weights of a model between two of its requests; returns the path. */
  async saveNow(
    modelId: string,
    save: { readonly type: CheckpointKind; readonly name: string },
  ): Promise<string> {
    const run = this.#runs.get(modelId);
    if (!run) throw gone(`model ${modelId} has ended`);
    return run.saveNow(save);
  }

  /** Writes states of idle models out. */
  async tidy(): Promise<void> {
    const isIdle = (modelId: string): boolean =>
      !this.#isPaused && (this.#runs.get(modelId)?.isIdle ?? true);
    await this.#parts.liveModels.settleIdle(isIdle);
  }

  /** Lets what runs finish, starts nothing more, and writes states out. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    const runs = [...this.#runs.values()];
    await Promise.all(runs.map((run) => run.pause()));
    await Promise.all(runs.map(({ model }) => this.#parts.liveModels.park(model.modelId)));
  }

  /** Why a request for a model without a run is refused. */
  #refusal(modelId: string, caller: Principal): Error {
    refuseEnded(this.model(modelId, caller));
    return gone(`model ${modelId} has ended`);
  }
}
