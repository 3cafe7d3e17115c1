import { CancelledError } from "../errors/cancelled-error.js";
import { abortable } from "./abortable.js";
import type { Cancellation } from "./cancellation.js";

/** Work that several wait for. One who gives up leaves it to the others; with the last one it ends. */
export class SharedWork<T> {
  readonly #giveUp = new AbortController();
  readonly #result: Promise<T>;
  #waiting = 0;
  #isOver = false;

  constructor(work: (signal: AbortSignal) => Promise<T>) {
    const finish = (): void => {
      this.#isOver = true;
    };
    this.#result = work(this.#giveUp.signal);
    this.#result.then(finish, finish);
  }

  /** Whether nobody waited any more before it was done; then it must be begun anew. */
  get isGivenUp(): boolean {
    return this.#giveUp.signal.aborted;
  }

  async wait(signal?: Cancellation): Promise<T> {
    this.#waiting++;
    try {
      return await abortable(this.#result, signal);
    } finally {
      this.#waiting--;
      if (this.#waiting === 0 && !this.#isOver) {
        this.#giveUp.abort(new CancelledError("Nobody waits for the result any more."));
      }
    }
  }
}
