import { TrainingOrderError } from "../../errors/tinker-error.js";
import type { Operation } from "../../futures/operation.js";
import { pollFuture, type AcceptedRequest } from "../../futures/poll-future.js";
import { abortable, type Cancellation } from "../../runtime/cancellation.js";
import { QueueStateLog } from "../../session/queue-state-log.js";
import type { Session } from "../../session/session.js";
import type { WireTypeName, WireValue } from "../../wire/wire-types.js";

/** One model in training: where its requests go and in which order. */
export class TrainingRun {
  readonly session: Session;
  readonly sequence = new TrainingSequence();
  #modelId: string;
  #queueLog: QueueStateLog;

  constructor(session: Session, modelId: string) {
    this.session = session;
    this.#modelId = modelId;
    this.#queueLog = logFor(session, modelId);
  }

  get modelId(): string {
    return this.#modelId;
  }

  /** Goes on with another model and numbers its requests from the start; within a turn alone. */
  moveTo(modelId: string): void {
    this.#modelId = modelId;
    this.#queueLog = logFor(this.session, modelId);
    this.sequence.next = 1;
  }

  /** Waits for the turn of an operation; gives it back when the operation cannot run any more. */
  async waitForTurn(operation: Operation, turn: Turn): Promise<void> {
    const startedAt = this.session.runtime.clock.now();
    try {
      await abortable(turn.ready, operation.signal);
      if (this.sequence.lost) throw this.sequence.lost;
    } catch (error) {
      turn.end();
      throw error;
    }
    operation.spent("waitMs", startedAt);
  }

  /** Waits for the result of a request that the server accepted. */
  poll<N extends WireTypeName>(
    request: AcceptedRequest<N>,
    operation: Operation,
    signal: Cancellation = operation.signal,
  ): Promise<WireValue<N>> {
    const { session: host } = this;
    return pollFuture(request, { host, queueLog: this.#queueLog, operation, signal });
  }
}

function logFor({ runtime }: Session, name: string): QueueStateLog {
  return new QueueStateLog(runtime, { activity: "Training", name });
}

/** A place in a line, taken when it is asked for and given back with `end`. */
export interface Turn {
  /** Resolves when every turn taken earlier has ended. */
  readonly ready: Promise<void>;
  /** Lets the next one start; may be called before the turn was ready, and more than once. */
  readonly end: () => void;
}

/**
 * Keeps operations in the order in which they were called.
 *
 * - A turn is taken synchronously, so the order is fixed before anything is awaited.
 * - A turn that ends early (its operation was aborted while it waited) is passed over when the line
 *   gets to it; it never lets a later turn overtake one that is still under way.
 */
export class TurnLine {
  #last: Promise<void> = Promise.resolve();
  #count = 0;

  /** True when no turn waits behind the current one. */
  get isShort(): boolean {
    return this.#count <= 1;
  }

  take(): Turn {
    const ready = this.#last;
    let resolve: (() => void) | undefined;
    const ended = new Promise<void>((onEnd) => {
      resolve = onEnd;
    });
    this.#count++;
    this.#last = ready.then(() => ended);
    const end = (): void => {
      if (!resolve) return;
      this.#count--;
      resolve();
      resolve = undefined;
    };
    return { ready, end };
  }
}

/**
 * The order of a training client's operations, at this end and at the server.
 *
 * - An operation takes its place when it is called. Its number (`seq_id`) is given out when its turn
 *   comes, so an operation that is aborted before that leaves no gap; the server would wait at a gap for ever.
 * - A number is used up when the server accepted it. A number that the server refused goes to the next
 *   operation.
 * - When it is unknown whether the server has an operation, no later one may run: the order is
 *   lost, and every later operation fails at once with that error.
 */
export class TrainingSequence extends TurnLine {
  /** The next number to send. */
  next = 1;
  /** Set while an earlier operation is in doubt; every later one fails with it. */
  lost: TrainingOrderError | undefined;

  lose(what: string, cause: unknown): void {
    this.lost ??= new TrainingOrderError(
      `${what} failed, and the server may or may not have applied it; this training client cannot go on, because it no longer knows the state of the model. Create a new one from a checkpoint (createTrainingClientFromStateWithOptimizer, or recoverTrainingClient).`,
      { cause },
    );
  }
}
