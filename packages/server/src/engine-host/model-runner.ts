import { pathOf } from "../checkpoints/checkpoint-names.js";
import { DamagedError } from "../errors/damaged-error.js";
import { StoppedError, toFailure } from "../errors/failure.js";
import type { FairTurns } from "../queue/fair-turns.js";
import type { CheckpointKind } from "../store/checkpoints-table.js";
import type { RequestHead } from "../store/requests-table.js";
import type { EngineGuard } from "./engine-guard.js";
import type { LiveModel } from "./live-model.js";
import type { LiveModels } from "./live-models.js";
import { operations } from "./operations/index.js";
import { saveBeside } from "./operations/save.js";
import { jsonResult, type OperationOutput, type OperationParts } from "./operations/operation.js";
import { noLeftovers } from "./snapshots.js";

/** Where models take turns. */
export interface TrainingTurns {
  /** At the engine, which does one thing at a time. */
  readonly computing: FairTurns;
  /** At the disk. */
  readonly saving: FairTurns;
}

/** What a runner works with. */
export interface RunnerParts extends OperationParts {
  readonly lives: LiveModels;
  readonly guard: EngineGuard;
  readonly turns: TrainingTurns;
  /** Called when the model has ended: unloaded, or it could not be created. */
  readonly onEnded: (modelId: string, reason: string) => void;
}

/** The model a runner belongs to. */
export interface RunnerModel {
  readonly modelId: string;
  readonly owner: string;
  readonly sessionId: string;
  readonly baseModel: string;
  readonly applied: number;
}

/** What a request has done, and to which state in memory. */
interface Performed {
  readonly output: OperationOutput;
  readonly live: LiveModel | null;
  /** When its turn began. */
  readonly startedAt: number;
  readonly tookMs: number;
}

/** Where a request stands in its lane. */
interface Place {
  /** Whose turn it is afterwards; null when the request never had its turn. */
  readonly nextSeq: number | null;
  readonly startedAt: number | null;
}

/** How often a request is tried when the engine breaks under it. */
const maxAttempts = 2;

/**
 * Carries the requests of one model out.
 *
 * - The outcome, the model's progress, the journal entry and the usage are one transaction.
 * - A request that fails leaves the model as it was. When the engine may have changed it all the same, the
 *   model in memory is thrown away and brought back from its journal.
 */
export class ModelRunner {
  readonly #parts: RunnerParts;
  readonly #model: RunnerModel;
  #applied: number;

  constructor(parts: RunnerParts, model: RunnerModel) {
    this.#parts = parts;
    this.#model = model;
    this.#applied = model.applied;
  }

  /** Runs a request to its committed outcome; never rejects. */
  async run(request: RequestHead, nextSeq: number, signal: AbortSignal): Promise<void> {
    const { modelId } = this.#model;
    const performed = await this.#takeTurn(request, signal).catch((error: unknown) => ({
      error,
      startedAt: this.#parts.context.clock.now(),
    }));
    if (!performed) return;
    const place = { nextSeq, startedAt: performed.startedAt };
    const problem =
      "error" in performed ? performed : await this.#commit(request, performed, place);
    if (problem) {
      await this.#parts.lives.dropAhead(modelId);
      await this.#fail(request, signal.aborted ? signal.reason : problem.error, place);
    }
    this.#parts.lives.letGo(modelId);
  }

  /** Saves the weights as they are, for somebody else than the client; returns the path. */
  async saveNow(
    save: { readonly type: CheckpointKind; readonly name: string },
    signal: AbortSignal,
  ): Promise<string> {
    const { context, lives, guard, turns } = this.#parts;
    const { store, recorder, clock } = context;
    const { modelId, owner } = this.#model;
    const turn = await turns.saving.take(owner, modelId, signal);
    if (!turn) throw new StoppedError("the server is shutting down", "server");
    try {
      const output = await guard.run(maxAttempts, async () =>
        saveBeside(this.#parts, await lives.hold(this.#model), save),
      );
      const now = clock.now();
      const times = { startedAt: now, finishedAt: now, tookMs: 0, tokens: 0 };
      const request = { kind: "save_weights", acceptedAt: now } as const;
      const note = recorder.note(this.#model, request, output.telling ?? {}, times);
      try {
        await store.write(() => {
          store.usage.add(this.#model, output.usage, now);
          output.commit();
          note.write();
        });
      } catch (error) {
        await this.#quietly(output.undo);
        throw error;
      }
      note.committed();
      await this.#quietly(output.afterCommit);
      return pathOf(output.record);
    } finally {
      turn.end(0);
      lives.letGo(modelId);
    }
  }

  /** Fails a request that never had its turn; never rejects. */
  async refuse(request: RequestHead, error: StoppedError): Promise<void> {
    this.#parts.context.passes.forget(request.requestId);
    await this.#fail(request, error, { nextSeq: null, startedAt: null });
  }

  /** Does a request when it is this model's turn; null when there are no more turns before the next start. */
  async #takeTurn(request: RequestHead, signal: AbortSignal): Promise<Performed | null> {
    const { guard, turns, context } = this.#parts;
    const perform = (): Promise<Performed> => {
      const startedAt = context.clock.now();
      return guard.run(maxAttempts, () => this.#perform(request, startedAt, signal));
    };
    switch (request.kind) {
      case "unload_model":
      case "refused":
        return perform();
      case "save_weights":
      case "save_weights_for_sampler":
        return this.#during(turns.saving, signal, perform);
      default:
        return this.#during(turns.computing, signal, perform);
    }
  }

  async #during(
    turns: FairTurns,
    signal: AbortSignal,
    perform: () => Promise<Performed>,
  ): Promise<Performed | null> {
    const turn = await turns.take(this.#model.owner, this.#model.modelId, signal);
    let cost = 0;
    try {
      const performed = turn && (await perform());
      cost = performed?.output.usage.reduce((sum, { amount }) => sum + amount, 0) ?? 0;
      return performed;
    } finally {
      // Whoever has more models than fit in memory pays for bringing them back.
      turn?.end(cost + this.#parts.lives.takeRepeated(this.#model.modelId));
    }
  }

  async #perform(request: RequestHead, startedAt: number, signal: AbortSignal): Promise<Performed> {
    signal.throwIfAborted();
    if (request.kind === "unload_model") {
      return { output: await this.#unload(), live: null, startedAt, tookMs: 0 };
    }
    if (request.kind === "sample") throw new Error("samples have no place in a model's lane");
    const live = await this.#parts.lives.hold(this.#model);
    const { clock } = this.#parts.context;
    const begunAt = clock.elapsed();
    const { ledger, passes } = this.#parts.context;
    const { requestId } = request;
    const payload = () => this.#unlessDamaged(ledger.payloadOf(request));
    const readPass = async () => {
      await ledger.accepted(request);
      const read = async () => passes.decode(this.#model.owner, ledger.stored(requestId));
      return this.#unlessDamaged(read());
    };
    const input = { live, request, payload, readPass, signal };
    const output = await operations[request.kind](this.#parts, input);
    return { output, live, startedAt, tookMs: clock.elapsed() - begunAt };
  }

  /** A model whose next request is damaged cannot go on. */
  async #unlessDamaged<T>(reading: Promise<T>): Promise<T> {
    try {
      return await reading;
    } catch (error) {
      if (!(error instanceof DamagedError)) throw error;
      return this.#parts.lives.giveUp(this.#model.modelId, error.message);
    }
  }

  async #unload(): Promise<OperationOutput> {
    const { modelId } = this.#model;
    const { context, snapshots, lives } = this.#parts;
    const reason = "its client unloaded it";
    // First of all, because it waits for a snapshot that is being written.
    await lives.drop(modelId);
    let leftovers = noLeftovers;
    return {
      ...jsonResult("UnloadModelResponse", { modelId, type: "unload_model" }),
      usage: [],
      change: "none",
      commit: () => {
        context.store.models.setState(modelId, "unloaded", reason);
        leftovers = snapshots.forget(modelId);
      },
      afterCommit: async () => {
        await snapshots.discard(leftovers);
        this.#parts.onEnded(modelId, reason);
      },
    };
  }

  /** Makes what was done count; returns the problem when it could not. */
  async #commit(
    request: RequestHead,
    { output, live, tookMs }: Performed,
    place: Place & { nextSeq: number },
  ): Promise<{ error: unknown } | undefined> {
    const { store, clock, ledger, recorder } = this.#parts.context;
    const { modelId } = this.#model;
    const finishedAt = clock.now();
    const applied = this.#applied + (output.change === "none" ? 0 : 1);
    // Of a save its number is counted, which is none of tokens.
    const tokens = output.usage
      .filter(({ kind }) => kind !== "checkpoint")
      .reduce((sum, { amount }) => sum + amount, 0);
    const times = { startedAt: place.startedAt, finishedAt, tookMs, tokens };
    const note = recorder.note(this.#model, request, output.telling ?? {}, times);
    try {
      await ledger.finish(
        request,
        output.settled,
        {
          startedAt: place.startedAt,
          finishedAt,
          applied: output.change === "journaled" ? applied : null,
          tokens,
        },
        () => {
          store.models.advance(modelId, place.nextSeq, applied, finishedAt);
          store.usage.add(this.#model, output.usage, finishedAt);
          output.commit?.();
          note.write();
        },
      );
    } catch (error) {
      await this.#quietly(output.undo);
      return { error };
    }
    this.#applied = applied;
    note.committed();
    if (live) this.#noteChange(live, request, output, tookMs);
    await this.#quietly(output.afterCommit);
    return undefined;
  }

  #noteChange(
    live: LiveModel,
    request: RequestHead,
    { change }: OperationOutput,
    tookMs: number,
  ): void {
    if (change === "none") return;
    if (change === "replaced") live.noteReplaced();
    else live.noteApplied(request.kind === "forward_backward", request.payloadBytes, tookMs);
    this.#parts.snapshots.consider(live);
  }

  async #fail(request: RequestHead, error: unknown, place: Place): Promise<void> {
    const { store, clock, ledger, logger, recorder } = this.#parts.context;
    const { modelId } = this.#model;
    const failure = toFailure(error, logger);
    const finishedAt = clock.now();
    const isCreation = request.seq === 0;
    const reason = `it could not be created: ${failure.error}`;
    const facts = { startedAt: place.startedAt, finishedAt, applied: null, tokens: 0 };
    const mark = { kind: "failed", text: failure.error, subject: request.requestId };
    const times = { ...facts, tookMs: 0 };
    // What never had its turn, or was given up, did not fail by itself.
    const isOwnFailure = place.nextSeq !== null && !(error instanceof StoppedError);
    const telling = isOwnFailure ? { mark } : {};
    const note = recorder.note(this.#model, request, telling, times);
    await this.#quietly(async () => {
      await ledger.finish(request, failure, facts, () => {
        if (place.nextSeq !== null) {
          store.models.advance(modelId, place.nextSeq, this.#applied, finishedAt);
        }
        if (isCreation) store.models.setState(modelId, "failed", reason);
        note.write();
      });
      note.committed();
    });
    if (isCreation) this.#parts.onEnded(modelId, reason);
  }

  async #quietly(action: (() => Promise<void>) | undefined): Promise<void> {
    try {
      await action?.();
    } catch (error) {
      this.#parts.context.logger.error("cleaning up after a request failed", {
        model: this.#model.modelId,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }
}
