import { mayHaveBeenApplied } from "../../errors/api-error.js";
import { TrainingOrderError } from "../../errors/training-order-error.js";
import { TurnLine, type Turn } from "../../runtime/turn-line.js";

/**
 * The order of a training client's operations, at this end and at the server.
 *
 * - An operation takes its place when it is called. Its number (`seq_id`) is given out when its turn
 *   comes, so one that is given up before that leaves no gap; the server would wait at a gap for ever.
 * - A number is used up when the server accepted it. One that the server refused goes to the next
 *   operation.
 * - When it is not known whether the server has an operation, no later one may run: the order is
 *   lost, and every later operation fails at once and says so.
 */
export class TrainingSequence {
  readonly #line = new TurnLine();
  #next = 1;
  #lost: TrainingOrderError | undefined;

  /** The number that the operation whose turn it is sends. */
  get next(): number {
    return this.#next;
  }

  /** Whether no other operation waits for the one whose turn it is. */
  get isAlone(): boolean {
    return this.#line.isShort;
  }

  takeTurn(): Turn {
    return this.#line.take();
  }

  /** Throws when an earlier operation is in doubt. */
  assertIntact(): void {
    if (this.#lost) throw this.#lost;
  }

  /** The server accepted this many numbers. */
  advance(count: number): void {
    this.#next += count;
  }

  /** Notes a submission that failed; says whether the order is lost by it. */
  noteFailure(what: string, error: unknown): void {
    if (mayHaveBeenApplied(error)) this.lose(what, error);
  }

  lose(what: string, cause: unknown): void {
    this.#lost ??= new TrainingOrderError(
      `${what} failed, and the server may or may not have applied it; this training client cannot go on, because it no longer knows the state of the model. Create a new one from a checkpoint (createTrainingClientFromStateWithOptimizer, or recoverTrainingClient).`,
      { cause },
    );
  }
}
