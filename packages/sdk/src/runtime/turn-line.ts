import { defer, type Deferred } from "./deferred.js";

/** A place in a line, taken when it is asked for and given back with `end`. */
export interface Turn {
  /** Resolves when every turn taken earlier has ended. */
  readonly ready: Promise<void>;
  /** Lets the next one go; may be called before the turn was ready, and more than once. */
  end(): void;
}

/**
 * Keeps operations in the order in which they were called.
 *
 * - A turn is taken synchronously, so the order is fixed before anything is awaited.
 * - A turn that ends early (its operation was aborted while it waited) is passed over when the line
 *   gets to it; it never lets a later turn overtake one that is still under way.
 */
export class TurnLine {
  readonly #line = new Set<Place>();

  /** Whether nobody waits behind the turn under way. */
  get isShort(): boolean {
    return this.#line.size <= 1;
  }

  take(): Turn {
    const place = new Place(() => this.#advance());
    this.#line.add(place);
    this.#advance();
    return place;
  }

  #advance(): void {
    for (const place of this.#line) {
      if (!place.hasEnded) {
        place.admit();
        return;
      }
      this.#line.delete(place);
    }
  }
}

class Place implements Turn {
  readonly #admission: Deferred<void> = defer();
  readonly #onEnd: () => void;
  #hasEnded = false;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  get ready(): Promise<void> {
    return this.#admission.promise;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  admit(): void {
    this.#admission.resolve();
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#admission.resolve();
    this.#onEnd();
  }
}
