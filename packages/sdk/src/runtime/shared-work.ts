import { CancelledError } from "../errors/tinker-error.js";
import { abortable, type Cancellation } from "./cancellation.js";

/** Work with several callers. It goes on without a caller that aborts, and is aborted with the last one. */
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

  /** True when all callers left before the work was done; the next caller must start it again. */
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
        this.#giveUp.abort(new CancelledError("Every caller has cancelled."));
      }
    }
  }
}
