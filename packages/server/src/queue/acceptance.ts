import type { Ending } from "../store/requests-table.js";
import type { Store } from "../store/store.js";

/** How a request ended, with what is written besides. */
export interface WholeEnding extends Ending {
  readonly also: () => void;
}

/** What there is to a request that is being accepted. */
export interface AcceptanceParts {
  /** Writes it, with how it ended where that is known already; tells whether it is a new one. */
  readonly record: (ending: WholeEnding | null) => boolean;
  /** The file of its payload. */
  readonly payloadBlob: string | null;
  /** How long its commit may wait: work on it that ends by then shares it. */
  readonly withinMs: number;
}

/**
 * A request on its way into the store, on which work may begin before it is there.
 *
 * - Without the request there is no ending of it.
 * - Where both cannot be written together, the request is written by itself in the same place, so that it stays the
 *   first of its id, and its ending behind it.
 */
export class Acceptance {
  /** What it asks for, while work on it cannot read that from the store. */
  payload: Uint8Array | null = null;
  readonly payloadBlob: string | null;
  /** Whether it is a new one, once it is committed. */
  readonly isNew: Promise<boolean>;
  readonly #store: Pick<Store, "write" | "hurry">;
  #isUnderWay = true;
  #ending: WholeEnding | null = null;
  #isEndingWritten = false;

  constructor(
    store: Pick<Store, "write" | "hurry">,
    { record, payloadBlob, withinMs }: AcceptanceParts,
  ) {
    this.#store = store;
    this.payloadBlob = payloadBlob;
    const write = (): boolean => {
      const ending = this.#ending;
      const isNew = record(ending);
      this.#isEndingWritten = isNew && ending !== null;
      return isNew;
    };
    this.isNew = store.write(write, withinMs, (error) => {
      if (this.#ending === null) throw error;
      this.#ending = null;
      return write();
    });
    const close = (): void => {
      this.#isUnderWay = false;
      this.payload = null;
    };
    this.isNew.then(close, close);
  }

  /** Resolves when it is committed; rejects when there will be no such request. */
  async committed(): Promise<void> {
    if (!(await this.isNew)) throw new Error("the request was accepted before");
  }

  /** Has an ending written with it, if its commit is still to come; tells whether that was so. */
  async endWith(ending: WholeEnding): Promise<boolean> {
    if (this.#isUnderWay) {
      this.#ending = ending;
      this.#store.hurry();
    }
    await this.committed();
    return this.#isEndingWritten;
  }
}
